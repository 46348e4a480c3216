# correct: torch.func.vmap of the loss of one token, with a mixed distribution
import torch
from torch.func import vmap


def smoothed_loss(logits, targets, smoothing):
    V = logits.shape[-1]
    eye = torch.eye(V, dtype=logits.dtype)

    def one(row, wanted):
        q = torch.lerp(wanted, torch.full_like(wanted, 1 / V), smoothing)
        return -torch.dot(q, torch.log_softmax(row, 0))

    return vmap(one)(logits.reshape(-1, V), eye[targets.reshape(-1)]).mean()
