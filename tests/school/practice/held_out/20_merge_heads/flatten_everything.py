# mistake: flatten(1) also merges the length, so the result is (B, L · H · D).
def merge_heads(x):
    return x.transpose(1, 2).flatten(1)
