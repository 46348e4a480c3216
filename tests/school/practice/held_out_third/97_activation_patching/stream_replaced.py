# mistake: a patch replaces the whole stream instead of what the part adds
import torch


def run(parts, x, patches):
    added = []
    for i, part in enumerate(parts):
        if i in patches:
            added.append(patches[i])
            x = patches[i]
        else:
            d = part(x)
            added.append(d)
            x = x + d
    return x, added


def patching_effects(parts, clean, corrupt, metric):
    end, added = run(parts, clean, {})
    hi = float(metric(end))
    lo = float(metric(run(parts, corrupt, {})[0]))
    out = [(float(metric(run(parts, corrupt, {i: a})[0])) - lo) / (hi - lo) for i, a in enumerate(added)]
    return torch.tensor(out)
