# mistake: fills up with the end token instead of the padding token
import torch
def greedy(model, source, begin, end, pad, max_new):
    t = torch.full((source.shape[0], 1), begin)
    done = torch.zeros(source.shape[0], dtype=torch.bool)
    for _ in range(max_new):
        n = model(source, t)[:, -1].argmax(-1)
        n[done] = end
        t = torch.cat([t, n.unsqueeze(1)], 1)
        done |= n == end
        if done.all():
            break
    return t[:, 1:]
