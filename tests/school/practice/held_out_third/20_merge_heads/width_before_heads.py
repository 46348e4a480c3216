# mistake: the width is before the heads when they are merged, so heads interleave
def merge_heads(x):
    return x.permute(0, 2, 3, 1).flatten(2)
