# mistake: the corrupt activations are patched into the clean run
import torch


def run(parts, x, patches):
    added = []
    for i, part in enumerate(parts):
        delta = patches.get(i)
        if delta is None:
            delta = part(x)
        added.append(delta)
        x = x + delta
    return x, added


def patching_effects(parts, clean, corrupt, metric):
    good, _ = run(parts, clean, {})
    bad, added = run(parts, corrupt, {})
    lo, hi = float(metric(bad)), float(metric(good))
    effects = []
    for i in range(len(parts)):
        y, _ = run(parts, clean, {i: added[i]})
        effects.append((float(metric(y)) - lo) / (hi - lo))
    return torch.tensor(effects)
