# mistake: permutes to (B, L, D, H), so that the heads are the inner dimension
def merge_heads(x):
    return x.permute(0, 2, 3, 1).flatten(2)
