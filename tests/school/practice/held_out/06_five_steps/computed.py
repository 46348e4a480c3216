# correct: computes every number with math in place of filling it in
import math

dots = [12.5, 30.8, 25.1]
values = [[0, 0], [2, 0], [0, 3]]

scaled = [dot / 64**0.5 for dot in dots]
exps = [math.exp(s - max(scaled)) for s in scaled]
weights = [e / sum(exps) for e in exps]
out = [sum(w * row[c] for w, row in zip(weights, values)) for c in range(2)]
