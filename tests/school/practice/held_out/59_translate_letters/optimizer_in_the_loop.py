# mistake: makes a new Adam in every step, so its state is always empty.
import torch
import torch.nn.functional as F


def loss(model, source, target, begin):
    first = torch.full((len(target), 1), begin)
    logits = model(source, torch.cat([first, target[:, :-1]], dim=1))
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


def train(model, source, target, begin, steps, lr):
    losses = []
    for _ in range(steps):
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        value = loss(model, source, target, begin)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def write(model, source, begin, length):
    tokens = torch.full((source.shape[0], 1), begin)
    for _ in range(length):
        tokens = torch.cat([tokens, model(source, tokens)[:, -1:].argmax(-1)], dim=1)
    return tokens[:, 1:]
