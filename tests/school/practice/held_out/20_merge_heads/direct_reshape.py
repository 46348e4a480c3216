# mistake: reshapes to (B, L, H · D) without moving the heads next to the width.
def merge_heads(x):
    B, H, L, D = x.shape
    return x.reshape(B, L, H * D)
