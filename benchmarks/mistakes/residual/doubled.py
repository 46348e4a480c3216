# mistake: x added twice
def post_norm(x, sublayer, norm):
    return norm(x + x + sublayer(x))
def pre_norm(x, sublayer, norm):
    return x + sublayer(norm(x))
