# mistake: two at once: the token begin is returned, and writing goes on until max_new
import torch


def greedy(model, source, begin, end, pad, max_new):
    B = source.size(0)
    tokens = source.new_full((B, 1), begin)
    done = source.new_zeros(B, dtype=torch.bool)
    for _ in range(max_new):
        step = model(source, tokens)[:, -1, :].argmax(dim=-1)
        step = step.masked_fill(done, pad)
        done = done | (step == end)
        tokens = torch.cat((tokens, step.unsqueeze(1)), dim=1)
    return tokens
