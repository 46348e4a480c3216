# correct: collects columns in a list, finished sentences as a Python list
import torch


@torch.no_grad()
def greedy(model, source, begin, end, pad, max_new):
    batch = len(source)
    columns = [torch.full((batch,), begin, dtype=torch.long)]
    done = [False] * batch
    while len(columns) <= max_new and not all(done):
        scores = model(source, torch.stack(columns, dim=1))[:, -1, :]
        best = scores.max(dim=-1).indices.tolist()
        best = [pad if finished else token for finished, token in zip(done, best)]
        done = [finished or token == end for finished, token in zip(done, best)]
        columns.append(torch.tensor(best))
    return torch.stack(columns[1:], dim=1)
