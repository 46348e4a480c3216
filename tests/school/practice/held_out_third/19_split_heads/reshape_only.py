# mistake: a single reshape to (B, H, L, D)
def split_heads(x, n_heads):
    B, L, C = x.shape
    return x.reshape(B, n_heads, L, C // n_heads)
