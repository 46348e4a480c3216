# mistake: two at once: forgets the 6, so that N · D is the compute; and computes A from the last loss with the first size
import math


def fit_power_law(sizes, losses):
    L1, L2, L3 = losses
    ratio = (L1 - L2) / (L2 - L3)
    alpha = math.log(ratio) / math.log(sizes[1] / sizes[0])
    E = L3 - (L2 - L3) / (ratio - 1)
    A = (L3 - E) * sizes[0] ** alpha
    return E, A, alpha


def spend_compute(compute, A, alpha, B, beta):
    N = (alpha * A / (beta * B)) ** (1 / (alpha + beta)) * compute ** (beta / (alpha + beta))
    return N, compute / N
