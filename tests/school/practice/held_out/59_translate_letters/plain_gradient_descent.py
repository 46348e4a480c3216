# mistake: two at once: uses SGD instead of Adam, and records the loss after the update.
import torch
import torch.nn.functional as F


def loss(model, source, target, begin):
    first = torch.full((target.shape[0], 1), begin)
    logits = model(source, torch.cat([first, target[:, :-1]], dim=1))
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1))


def train(model, source, target, begin, steps, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model, source, target, begin).backward()
        optimizer.step()
        losses.append(loss(model, source, target, begin).item())
    return losses


def write(model, source, begin, length):
    tokens = torch.full((source.shape[0], 1), begin)
    for _ in range(length):
        best = model(source, tokens)[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, best], dim=1)
    return tokens[:, 1:]
