# mistake: spreads ε over the V − 1 other tokens, without the correct one
def smoothed_loss(logits, targets, smoothing):
    V = logits.shape[-1]
    log_p = logits.log_softmax(-1)
    right = log_p.gather(-1, targets[..., None]).squeeze(-1)
    others = (log_p.sum(-1) - right) / (V - 1)
    return -((1 - smoothing) * right + smoothing * others).mean()
