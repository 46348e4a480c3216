# mistake: adds the heads up in place of concatenating them.
def merge_heads(x):
    return x.sum(dim=1)
