# mistake: merges (D, H) instead of (H, D), so the heads are interleaved.
def merge_heads(x):
    return x.permute(0, 2, 3, 1).flatten(2)
