# mistake: takes n_heads for the width of a head: unflattens into (C / n_heads) heads of n_heads numbers
def split_heads(x, n_heads):
    return x.unflatten(-1, (-1, n_heads)).transpose(1, 2)
