# mistake: the width is split as (D, H): every H-th number belongs to a head
def split_heads(x, n_heads):
    return x.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2)
