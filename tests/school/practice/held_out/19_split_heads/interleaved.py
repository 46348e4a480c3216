# mistake: splits the width as (D, H), so that every H-th number belongs to a head.
def split_heads(x, n_heads):
    B, L, C = x.shape
    return x.view(B, L, C // n_heads, n_heads).permute(0, 3, 1, 2)
