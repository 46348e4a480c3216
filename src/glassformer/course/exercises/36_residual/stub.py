def post_norm(x, sublayer, norm):
    """Add, then normalise the sum."""
    ...


def pre_norm(x, sublayer, norm):
    """Normalise what the sublayer reads, then add to x."""
    ...
