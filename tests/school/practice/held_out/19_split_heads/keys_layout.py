# mistake: moves the length to the end, (B, H, D, L), as keys are transposed.
def split_heads(x, n_heads):
    B, L, C = x.shape
    return x.view(B, L, n_heads, -1).permute(0, 2, 3, 1)
