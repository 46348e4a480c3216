# mistake: a patched part adds the tensor to its own result
import torch


def run(parts, x, patches):
    added = []
    for i, part in enumerate(parts):
        delta = part(x)
        if i in patches:
            delta = delta + patches[i]
        added.append(delta)
        x = x + delta
    return x, added


def patching_effects(parts, clean, corrupt, metric):
    clean_end, clean_added = run(parts, clean, {})
    corrupt_end, _ = run(parts, corrupt, {})
    low, high = metric(corrupt_end), metric(clean_end)
    effects = []
    for i in range(len(parts)):
        patched, _ = run(parts, corrupt, {i: clean_added[i]})
        effects.append(float((metric(patched) - low) / (high - low)))
    return torch.tensor(effects)
