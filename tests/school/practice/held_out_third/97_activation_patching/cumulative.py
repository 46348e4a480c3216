# mistake: the patches accumulate: run i patches all parts up to i
import torch


def run(parts, x, patches):
    added = []
    for i, part in enumerate(parts):
        added.append(patches[i] if i in patches else part(x))
        x = x + added[-1]
    return x, added


def patching_effects(parts, clean, corrupt, metric):
    best, added = run(parts, clean, {})
    worst, _ = run(parts, corrupt, {})
    hi, lo = float(metric(best)), float(metric(worst))
    patches, effects = {}, []
    for i in range(len(parts)):
        patches[i] = added[i]
        effects.append((float(metric(run(parts, corrupt, patches)[0])) - lo) / (hi - lo))
    return torch.tensor(effects)
