# mistake: the sum is written into x with +=, which changes the caller's tensor
def post_norm(x, sublayer, norm):
    x += sublayer(x)
    return norm(x)


def pre_norm(x, sublayer, norm):
    h = sublayer(norm(x))
    x += h
    return x
