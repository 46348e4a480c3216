# correct: lambdas that call the sublayer last
def _add(x, y):
    return y + x


post_norm = lambda x, sublayer, norm: norm(_add(x, sublayer(x)))  # noqa: E731
pre_norm = lambda x, sublayer, norm: _add(x, sublayer(norm(x)))  # noqa: E731
