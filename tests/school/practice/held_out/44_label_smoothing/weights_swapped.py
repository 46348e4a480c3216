# mistake: gives ε to the target and 1 − ε to the uniform part.
def smoothed_loss(logits, targets, smoothing):
    log_p = logits.log_softmax(-1)
    picked = log_p.gather(-1, targets[..., None])[..., 0]
    uniform = log_p.mean(-1)
    return -(smoothing * picked + (1 - smoothing) * uniform).mean()
