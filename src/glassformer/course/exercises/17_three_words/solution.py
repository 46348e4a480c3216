"""Row by row: mask the later words, exponentiate, divide by the sum."""

import math

scores = [[10, 8, 5], [9, 12, 11], [4, 7, 9]]

weights = []
for i, row in enumerate(scores):
    masked = [score if j <= i else -math.inf for j, score in enumerate(row)]
    exps = [math.exp(score - max(masked)) for score in masked]
    weights.append([each / sum(exps) for each in exps])
