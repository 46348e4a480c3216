# mistake: multiplies ε by the sum of the log-probabilities, without dividing by V.
def smoothed_loss(logits, targets, smoothing):
    log_p = logits.log_softmax(dim=-1)
    picked = log_p.gather(-1, targets[..., None]).squeeze(-1)
    return -((1 - smoothing) * picked + smoothing * log_p.sum(-1)).mean()
