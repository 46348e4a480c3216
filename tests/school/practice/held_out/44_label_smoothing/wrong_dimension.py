# mistake: log_softmax runs over the length, dimension 1.
def smoothed_loss(logits, targets, smoothing):
    log_p = logits.log_softmax(1)
    picked = log_p.gather(-1, targets[..., None]).squeeze(-1)
    return -((1 - smoothing) * picked + smoothing * log_p.mean(-1)).mean()
