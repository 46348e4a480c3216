# mistake: reshapes to (B, H, L, D) in one step, which mixes tokens.
def split_heads(x, n_heads):
    B, L, C = x.shape
    return x.reshape(B, n_heads, L, C // n_heads)
