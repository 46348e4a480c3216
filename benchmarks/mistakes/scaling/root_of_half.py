# mistake: uses the square root of 2 D
import math
def scaled_scores(q, k):
    return q @ k.mT / math.sqrt(2 * q.shape[-1])
