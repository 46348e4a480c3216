# correct: keeps the log of the sum with logaddexp, column by column
import torch


def online_softmax(blocks):
    top = log_sum = None
    for block in blocks:
        for column in block.unbind(1):
            if top is None:
                top, log_sum = column.clone(), column.clone()
            else:
                top = torch.maximum(top, column)
                log_sum = torch.logaddexp(log_sum, column)
    return top, torch.exp(log_sum - top)
