# mistake: view after transpose fails, because the numbers are not contiguous.
def merge_heads(x):
    B, H, L, D = x.shape
    return x.transpose(1, 2).view(B, L, H * D)
