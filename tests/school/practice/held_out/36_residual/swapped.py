# mistake: the two functions are swapped.
def post_norm(x, sublayer, norm):
    return x + sublayer(norm(x))


def pre_norm(x, sublayer, norm):
    return norm(x + sublayer(x))
