# correct: the corrupt stream is kept before each part, so a patched run starts there
import torch


def run(parts, x, patches):
    stream, added = x, []
    for number in range(len(parts)):
        if number in patches:
            delta = patches[number]
        else:
            delta = parts[number](stream)
        stream = stream + delta
        added.append(delta)
    return stream, added


def patching_effects(parts, clean, corrupt, metric):
    with torch.no_grad():
        clean_end, clean_added = run(parts, clean, {})
        before, stream = [], corrupt
        for part in parts:
            before.append(stream)
            stream = stream + part(stream)
        low = float(metric(stream))
        span = float(metric(clean_end)) - low
        effects = []
        for i, start in enumerate(before):
            end, _ = run(parts[i + 1 :], start + clean_added[i], {})
            effects.append((float(metric(end)) - low) / span)
    return torch.tensor(effects)
