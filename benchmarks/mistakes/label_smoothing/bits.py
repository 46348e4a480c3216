# mistake: logarithm to base 2
import math
def smoothed_loss(logits, targets, smoothing):
    lp = logits.log_softmax(-1) / math.log(2)
    r = lp.gather(-1, targets[..., None]).squeeze(-1)
    return -((1 - smoothing) * r + smoothing * lp.mean(-1)).mean()
