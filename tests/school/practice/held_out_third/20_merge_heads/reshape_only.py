# mistake: flattened without the transpose
def merge_heads(x):
    B, H, L, D = x.shape
    return x.reshape(B, L, H * D)
