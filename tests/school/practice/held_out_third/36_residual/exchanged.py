# mistake: the two functions have each other's order
def post_norm(x, sublayer, norm):
    return x + sublayer(norm(x))


def pre_norm(x, sublayer, norm):
    return norm(x + sublayer(x))
