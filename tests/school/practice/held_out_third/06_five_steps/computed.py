# correct: computed with plain Python instead of typed numbers
import math

dots = [12.5, 30.8, 25.1]
values = [[0, 0], [2, 0], [0, 3]]
width = 64

scaled = [d / math.sqrt(width) for d in dots]
top = max(scaled)
exps = [math.exp(s - top) for s in scaled]
weights = [e / sum(exps) for e in exps]
out = [sum(w * value[c] for w, value in zip(weights, values)) for c in range(2)]
