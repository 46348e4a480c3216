# mistake: pre_norm normalizes the result of the sublayer instead of what it reads
def post_norm(x, sublayer, norm):
    return norm(x + sublayer(x))


def pre_norm(x, sublayer, norm):
    return x + norm(sublayer(x))
