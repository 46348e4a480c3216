"""A power law with a floor through three points, and the size that a compute is best spent on."""

import math


def fit_power_law(sizes: list[float], losses: list[float]) -> tuple[float, float, float]:
    """Three sizes in a constant ratio and their losses → E, A, alpha"""
    ratio = sizes[1] / sizes[0]
    fall, next_fall = losses[0] - losses[1], losses[1] - losses[2]
    factor = fall / next_fall  # ratio ** alpha: each fall is so many times smaller
    alpha = math.log(factor) / math.log(ratio)
    floor = losses[2] - next_fall / (factor - 1)  # what a geometric series of falls leaves
    return floor, (losses[0] - floor) * sizes[0] ** alpha, alpha


def spend_compute(
    compute: float, A: float, alpha: float, B: float, beta: float
) -> tuple[float, float]:
    """The N and D with 6 N D = compute and the least loss"""
    # Where the slopes in log N cancel: alpha A / N^alpha = beta B / D^beta.
    scale = (alpha * A / (beta * B)) ** (1 / (alpha + beta))
    N = scale * (compute / 6) ** (beta / (alpha + beta))
    return N, compute / (6 * N)
