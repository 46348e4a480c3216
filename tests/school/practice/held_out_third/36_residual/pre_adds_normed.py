# mistake: pre_norm adds the result to the normalised x
def post_norm(x, sublayer, norm):
    return norm(x + sublayer(x))


def pre_norm(x, sublayer, norm):
    x = norm(x)
    return x + sublayer(x)
