"""The five steps, as on a calculator."""

import math

dots = [12.5, 30.8, 25.1]  # The, cat, sat
values = [[0, 0], [2, 0], [0, 3]]
width = 64

scaled = [dot / math.sqrt(width) for dot in dots]
exps = [math.exp(score - max(scaled)) for score in scaled]
weights = [each / sum(exps) for each in exps]
out = [sum(w * value[i] for w, value in zip(weights, values, strict=True)) for i in range(2)]
