# correct: NumPy arrays, log10 throughout, Aitken's formula for E, and D computed by its own formula
import numpy as np


def fit_power_law(sizes, losses):
    n = np.asarray(sizes, dtype=float)
    a, b, c = np.asarray(losses, dtype=float)
    E = (a * c - b * b) / (a - 2 * b + c)
    alpha = np.log10((a - b) / (b - c)) / np.log10(n[1] / n[0])
    A = (a - E) * n[0] ** alpha
    return float(E), float(A), float(alpha)


def spend_compute(compute, A, alpha, B, beta):
    pairs = compute / 6
    D = (beta * B / (alpha * A) * pairs**alpha) ** (1 / (alpha + beta))
    return pairs / D, D
