# mistake: write returns begin too and so one token less of the word.
import torch
import torch.nn.functional as F


def loss(model, source, target, begin):
    first = torch.full_like(target[:, :1], begin)
    logits = model(source, torch.cat([first, target[:, :-1]], dim=1))
    return F.cross_entropy(logits.transpose(1, 2), target)


def train(model, source, target, begin, steps, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(model, source, target, begin)
        value.backward()
        optimizer.step()
        losses.append(float(value))
    return losses


def write(model, source, begin, length):
    tokens = torch.full((source.shape[0], 1), begin)
    while tokens.shape[1] < length:
        best = model(source, tokens)[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, best], dim=1)
    return tokens
