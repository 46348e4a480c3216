# mistake: the correct token keeps weight 1 and epsilon / V is added on top
def smoothed_loss(logits, targets, smoothing):
    log_p = logits.log_softmax(dim=-1)
    nll = -log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    smooth = -log_p.mean(dim=-1)
    return (nll + smoothing * smooth).mean()
