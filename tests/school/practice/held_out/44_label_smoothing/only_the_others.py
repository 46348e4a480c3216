# mistake: spreads ε over the other V − 1 tokens alone.
def smoothed_loss(logits, targets, smoothing):
    log_p = logits.log_softmax(-1)
    V = logits.shape[-1]
    target = log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    others = (log_p.sum(-1) - target) / (V - 1)
    return -((1 - smoothing) * target + smoothing * others).mean()
