# mistake: fits a straight line in log–log through the first and last point, as if E were 0
import math


def fit_power_law(sizes, losses):
    alpha = math.log(losses[0] / losses[2]) / math.log(sizes[2] / sizes[0])
    A = losses[0] * sizes[0] ** alpha
    return 0.0, A, alpha


def spend_compute(compute, A, alpha, B, beta):
    N = (alpha * A / (beta * B)) ** (1 / (alpha + beta)) * (compute / 6) ** (beta / (alpha + beta))
    return N, compute / (6 * N)
