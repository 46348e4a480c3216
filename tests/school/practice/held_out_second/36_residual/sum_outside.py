# mistake: post_norm adds x after the norm instead of before it
def post_norm(x, sublayer, norm):
    return x + norm(sublayer(x))


def pre_norm(x, sublayer, norm):
    return x + sublayer(norm(x))
