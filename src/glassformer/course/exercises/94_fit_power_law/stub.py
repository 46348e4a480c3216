import math


def fit_power_law(sizes, losses):
    """Three sizes in a constant ratio and their losses → E, A, alpha"""
    ...


def spend_compute(compute, A, alpha, B, beta):
    """The N and D with 6 N D = compute and the least loss"""
    ...
