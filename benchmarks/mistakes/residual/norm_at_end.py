# mistake: pre-norm normalizes the sum as well
def post_norm(x, sublayer, norm):
    return norm(x + sublayer(x))
def pre_norm(x, sublayer, norm):
    return norm(x + sublayer(norm(x)))
