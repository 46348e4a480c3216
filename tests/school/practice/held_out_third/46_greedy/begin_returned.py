# mistake: begin is returned as well
import torch


def greedy(model, source, begin, end, pad, max_new):
    B = source.shape[0]
    out = torch.full((B, 1), begin, dtype=torch.long)
    finished = torch.zeros(B, dtype=torch.bool)
    for _ in range(max_new):
        nxt = model(source, out)[:, -1, :].argmax(-1)
        nxt = nxt.masked_fill(finished, pad)
        out = torch.cat((out, nxt[:, None]), dim=1)
        finished = finished | nxt.eq(end)
        if bool(finished.all()):
            break
    return out
