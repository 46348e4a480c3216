# correct: finds the best N by bisection of the derivative in log N
import math


def fit_power_law(sizes, losses):
    r = sizes[2] / sizes[1]
    first_fall, second_fall = losses[0] - losses[1], losses[1] - losses[2]
    shrink = second_fall / first_fall
    alpha = -math.log(shrink, r)
    still_to_come = second_fall * shrink / (1 - shrink)
    E = losses[2] - still_to_come
    return E, still_to_come * sizes[2] ** alpha, alpha


def spend_compute(compute, A, alpha, B, beta):
    low, high = 0.0, math.log(compute / 6)
    low -= 200
    high += 200
    for _ in range(300):
        middle = (low + high) / 2
        log_d = math.log(compute / 6) - middle
        gain = math.log(alpha * A) - alpha * middle
        cost = math.log(beta * B) - beta * log_d
        if gain > cost:
            low = middle
        else:
            high = middle
    N = math.exp(low)
    return N, compute / (6 * N)
