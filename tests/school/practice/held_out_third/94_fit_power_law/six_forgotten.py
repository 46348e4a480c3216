# mistake: the 6 is forgotten: N D = compute
import math


def fit_power_law(sizes, losses):
    l1, l2, l3 = losses
    r = sizes[1] / sizes[0]
    q = (l1 - l2) / (l2 - l3)
    alpha = math.log(q) / math.log(r)
    E = l3 - (l2 - l3) / (q - 1)
    return E, (l1 - E) * sizes[0] ** alpha, alpha


def spend_compute(compute, A, alpha, B, beta):
    N = (alpha * A / (beta * B)) ** (1 / (alpha + beta)) * compute ** (beta / (alpha + beta))
    return N, compute / N
