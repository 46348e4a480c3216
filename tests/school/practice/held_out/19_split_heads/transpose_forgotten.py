# mistake: leaves the heads after the length, (B, L, H, D).
def split_heads(x, n_heads):
    B, L, C = x.shape
    return x.view(B, L, n_heads, C // n_heads)
