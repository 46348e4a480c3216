# correct: chooses by the logits and takes the softmax over the k chosen ones, which equals dividing by their sum; gathers the experts of each token
import torch


def mixture(x, router, up, down, k):
    chosen_logits, chosen = (x @ router.T).topk(k, dim=-1)
    share = chosen_logits.softmax(dim=-1)
    hidden = torch.einsum("tkfc,tc->tkf", up[chosen], x).relu()
    answers = torch.einsum("tkcf,tkf->tkc", down[chosen], hidden)
    return (share.unsqueeze(-1) * answers).sum(dim=1)
