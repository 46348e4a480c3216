# mistake: views the width as (D, H), so that neighbouring numbers go to different heads
def split_heads(x, n_heads):
    B, L, C = x.shape
    return x.view(B, L, C // n_heads, n_heads).permute(0, 3, 1, 2)
