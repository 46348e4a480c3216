# correct: the stream is folded with functools.reduce
from functools import reduce

import torch


def run(parts, x, patches):
    def step(state, numbered):
        stream, added = state
        number, part = numbered
        delta = patches[number] if number in patches else part(stream)
        return stream + delta, [*added, delta]

    return reduce(step, enumerate(parts), (x, []))


def patching_effects(parts, clean, corrupt, metric):
    end, added = run(parts, clean, {})
    best, worst = metric(end), metric(run(parts, corrupt, {})[0])
    gains = [metric(run(parts, corrupt, {i: delta})[0]) - worst for i, delta in enumerate(added)]
    return torch.tensor([float(gain / (best - worst)) for gain in gains])
