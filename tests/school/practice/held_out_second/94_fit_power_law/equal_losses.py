# mistake: spend_compute makes the two terms A / N^alpha and B / D^beta equal, without alpha and beta as factors
import math


def fit_power_law(sizes, losses):
    L1, L2, L3 = losses
    ratio = (L1 - L2) / (L2 - L3)
    alpha = math.log(ratio) / math.log(sizes[1] / sizes[0])
    E = L3 - (L2 - L3) / (ratio - 1)
    return E, (L1 - E) * sizes[0] ** alpha, alpha


def spend_compute(compute, A, alpha, B, beta):
    N = (A / B) ** (1 / (alpha + beta)) * (compute / 6) ** (beta / (alpha + beta))
    return N, compute / 6 / N
