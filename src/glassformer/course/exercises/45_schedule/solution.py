"""The learning rate of the paper: linearly up, then down as 1 / √step."""


def learning_rate(step: int, dim: int, warmup: int) -> float:
    """dim^(−0.5) · min(step^(−0.5), step · warmup^(−1.5))"""
    return dim**-0.5 * min(step**-0.5, step * warmup**-1.5)  # they meet at step = warmup
