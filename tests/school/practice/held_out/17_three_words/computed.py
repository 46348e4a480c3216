# correct: computes the rows, masking by the length of a slice
from math import exp

scores = [[10, 8, 5], [9, 12, 11], [4, 7, 9]]
weights = []
for i, row in enumerate(scores):
    seen = [exp(s) for s in row[: i + 1]]
    weights.append([e / sum(seen) for e in seen] + [0.0] * (2 - i))
