# correct: spend_compute by bisection of the derivative in log N; Aitken for E
import math


def fit_power_law(sizes, losses):
    x, y, z = (float(l) for l in losses)
    E = (x * z - y * y) / (x + z - 2 * y)
    alpha = math.log((x - E) / (z - E)) / math.log(sizes[2] / sizes[0])
    return E, (y - E) * sizes[1] ** alpha, alpha


def spend_compute(compute, A, alpha, B, beta):
    budget = math.log(compute / 6)

    def slope(n):
        return -alpha * A * math.exp(-alpha * n) + beta * B * math.exp(-beta * (budget - n))

    low, high = -50.0, budget + 50.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    N = math.exp(low)
    return N, compute / (6 * N)
