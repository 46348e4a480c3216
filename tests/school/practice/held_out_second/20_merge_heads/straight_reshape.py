# mistake: reshapes (B, H, L, D) to (B, L, H · D) without moving the heads behind the length
def merge_heads(x):
    B, H, L, D = x.shape
    return x.reshape(B, L, H * D)
