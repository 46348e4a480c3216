# correct: keeps top and the log of the total, joined with logaddexp, and exponentiates at the end
import torch


def online_softmax(blocks):
    top = log_sum = None
    for block in blocks:
        here = block.max(dim=1).values
        here_log = here + torch.exp(block - here[:, None]).sum(dim=1).log()
        top = here if top is None else torch.maximum(top, here)
        log_sum = here_log if log_sum is None else torch.logaddexp(log_sum, here_log)
    return top, torch.exp(log_sum - top)
