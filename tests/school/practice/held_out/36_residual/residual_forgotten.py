# mistake: two at once: post_norm leaves out the residual, and pre_norm normalizes the result once more.
def post_norm(x, sublayer, norm):
    return norm(sublayer(x))


def pre_norm(x, sublayer, norm):
    return norm(x + sublayer(norm(x)))
