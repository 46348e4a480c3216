def post_norm(x, sublayer, norm):
    """Add, then normalize the sum."""
    ...


def pre_norm(x, sublayer, norm):
    """Normalize what the sublayer reads, then add to x."""
    ...
