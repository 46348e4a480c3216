# mistake: the smoothing is spread over the V - 1 other tokens only
def smoothed_loss(logits, targets, smoothing):
    log_p = logits.log_softmax(-1)
    V = logits.shape[-1]
    own = log_p.gather(-1, targets[..., None]).squeeze(-1)
    rest = (log_p.sum(-1) - own) / (V - 1)
    return -((1 - smoothing) * own + smoothing * rest).mean()
