# mistake: spend_compute forgets the factor 6
import math


def fit_power_law(sizes, losses):
    (n1, n2, _), (l1, l2, l3) = sizes, losses
    alpha = math.log((l1 - l2) / (l2 - l3)) / math.log(n2 / n1)
    A = (l1 - l2) / (n1**-alpha - n2**-alpha)
    return l1 - A * n1**-alpha, A, alpha


def spend_compute(compute, A, alpha, B, beta):
    N = (alpha * A / (beta * B) * compute**beta) ** (1 / (alpha + beta))
    return N, compute / N
