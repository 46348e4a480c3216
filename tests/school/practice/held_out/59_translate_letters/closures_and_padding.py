# correct: F.pad puts begin in front, log-probabilities gathered by hand, a closure for the optimizer
import torch
import torch.nn.functional as F


def loss(model, source, target, begin):
    inputs = F.pad(target[:, :-1], (1, 0), value=begin)
    log_p = model(source, inputs).log_softmax(dim=-1)
    return -log_p.gather(2, target.unsqueeze(2)).mean()


def train(model, source, target, begin, steps, lr):
    adam = torch.optim.Adam(model.parameters(), lr)

    def closure():
        adam.zero_grad()
        value = loss(model, source, target, begin)
        value.backward()
        return value

    return [adam.step(closure).item() for _ in range(steps)]


def write(model, source, begin, length):
    text = source.new_full((source.size(0), length + 1), begin)
    with torch.inference_mode():
        for t in range(length):
            text[:, t + 1] = model(source, text[:, : t + 1])[:, t].max(-1).indices
    return text[:, 1:]
