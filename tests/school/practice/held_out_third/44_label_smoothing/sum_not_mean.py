# mistake: epsilon times the sum of log p, not divided by V
def smoothed_loss(logits, targets, smoothing):
    log_p = logits.log_softmax(dim=-1)
    own = log_p.gather(-1, targets[..., None]).squeeze(-1)
    return -((1 - smoothing) * own + smoothing * log_p.sum(-1)).mean()
