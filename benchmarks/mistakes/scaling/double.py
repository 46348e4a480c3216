# mistake: divides by the root twice
import math
def scaled_scores(q, k):
    d = q.shape[-1]
    q = q / math.sqrt(d)
    k = k / math.sqrt(d)
    s = q @ k.transpose(-2, -1)
    return s / math.sqrt(d)
