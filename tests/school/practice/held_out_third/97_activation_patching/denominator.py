# mistake: the effect is not divided by the difference of clean and corrupt
import torch


def run(parts, x, patches):
    added = []
    for i, part in enumerate(parts):
        new = patches[i] if i in patches else part(x)
        added.append(new)
        x = x + new
    return x, added


def patching_effects(parts, clean, corrupt, metric):
    _, added = run(parts, clean, {})
    base = metric(run(parts, corrupt, {})[0])
    return torch.tensor([float(metric(run(parts, corrupt, {i: added[i]})[0]) - base) for i in range(len(parts))])
