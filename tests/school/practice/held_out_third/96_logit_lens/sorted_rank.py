# correct: the rank from a sort: where the final token is in the order of each state
import torch


def logit_lens(states, gain, unembed):
    N, L, C = states.shape
    scale = torch.rsqrt(torch.einsum("nlc,nlc->nl", states, states) / C)
    logits = torch.einsum("nlc,nl,c,vc->nlv", states, scale, gain, unembed)
    final = torch.argmax(logits[N - 1], dim=1)
    order = logits.argsort(dim=-1, descending=True)
    ranks = (order == final[None, :, None]).int().argmax(dim=-1)
    return logits, ranks
