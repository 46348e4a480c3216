# mistake: post_norm normalises only the result of the sublayer and adds x after it
def post_norm(x, sublayer, norm):
    return x + norm(sublayer(x))


def pre_norm(x, sublayer, norm):
    return x + sublayer(norm(x))
