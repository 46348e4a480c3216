# mistake: multiplies the sum of all log-probabilities by ε without dividing by V
def smoothed_loss(logits, targets, smoothing):
    log_p = logits.log_softmax(-1)
    right = log_p.gather(-1, targets[..., None]).squeeze(-1)
    return -((1 - smoothing) * right + smoothing * log_p.sum(-1)).mean()
