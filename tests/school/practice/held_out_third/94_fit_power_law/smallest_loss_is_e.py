# mistake: E is guessed to lie just below the last loss; A and alpha then come from the first two
import math


def fit_power_law(sizes, losses):
    E = losses[2] * 0.999
    alpha = math.log((losses[0] - E) / (losses[1] - E)) / math.log(sizes[1] / sizes[0])
    A = (losses[0] - E) * sizes[0] ** alpha
    return E, A, alpha


def spend_compute(compute, A, alpha, B, beta):
    N = (alpha * A / (beta * B)) ** (1 / (alpha + beta)) * (compute / 6) ** (beta / (alpha + beta))
    return N, compute / (6 * N)
