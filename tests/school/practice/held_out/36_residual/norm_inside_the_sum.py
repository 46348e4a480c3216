# mistake: post_norm normalizes the sublayer's result before it is added, not the sum.
def post_norm(x, sublayer, norm):
    return x + norm(sublayer(x))


def pre_norm(x, sublayer, norm):
    return x + sublayer(norm(x))
