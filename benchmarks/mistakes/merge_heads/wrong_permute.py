# mistake: permutes to (B, D, H, L) before joining
def merge_heads(x):
    B, H, L, D = x.shape
    return x.permute(0, 3, 1, 2).reshape(B, L, H * D)
