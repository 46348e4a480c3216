# correct: two lambdas
post_norm = lambda x, sublayer, norm: norm(sublayer(x).add(x))
pre_norm = lambda x, sublayer, norm: sublayer(norm(x)).add(x)
