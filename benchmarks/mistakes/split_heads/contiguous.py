# mistake: swaps length and width within a head
def split_heads(x, n_heads):
    B, L, C = x.shape
    return x.reshape(B, L, n_heads, C // n_heads).permute(0, 2, 3, 1)
