# mistake: divided by the length of the vector instead of the root mean square
import torch


def logit_lens(states, gain, unembed):
    logits = torch.nn.functional.normalize(states, dim=-1) * gain @ unembed.T
    final = logits[-1].argmax(dim=-1)
    own = torch.stack([l[torch.arange(len(final)), final] for l in logits])
    return logits, (logits > own.unsqueeze(-1)).sum(-1)
