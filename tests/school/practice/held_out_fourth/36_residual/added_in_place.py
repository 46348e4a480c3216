# mistake: pre_norm adds to x in place
def post_norm(x, sublayer, norm):
    return norm(x + sublayer(x))


def pre_norm(x, sublayer, norm):
    x += sublayer(norm(x))
    return x
