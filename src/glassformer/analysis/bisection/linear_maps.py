"""Matrices recovered from what they read and wrote, where a text is longer than they are wide."""

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.bisection.aligned_runs import AlignedRuns
from glassformer.analysis.bisection.kinds import EXPLAINED, Kind, normed
from glassformer.analysis.bisection.stages import Stage
from glassformer.tracing.trace import Run

_SPARE = 8  # positions beyond the width of a matrix, by which it is tested


def find_other_layer(runs: AlignedRuns, stage: Stage) -> Kind | None:
    """The layer of the first run whose matrix gives the values of the second in this one."""
    if stage.operand != "v" or stage.reads is None or stage.a is None or stage.b is None:
        return None
    x, b = stage.reads, stage.b.transpose(0, 1).flatten(1)
    if len(x) < x.shape[1] + _SPARE:
        return None
    whole = (stage.b - stage.a).norm()
    for name, site in runs.first.sites.items():
        if name == stage.name or site.v.shape[1:] != runs.first.sites[stage.name].v.shape[1:]:
            continue
        read = _state_before(runs.first, name, runs.sequence)
        if read is None:
            continue
        v = site.v[runs.sequence].double().cpu().transpose(0, 1).flatten(1)
        read, v = read[: len(x)], v[: len(x)]
        for ours, theirs in zip(normed(read), normed(x), strict=True):
            matrix = torch.linalg.lstsq(_with_one(ours), v).solution
            left = float((_with_one(theirs) @ matrix - b).norm() / whole)
            if left < EXPLAINED:
                layer = name.split(".")[1]
                return Kind(name="other layer", values={"layer": int(layer)}, left=left)
    return None


def _with_one(x: Float[Tensor, "R C"]) -> Float[Tensor, "R X"]:
    """A column of ones for the bias."""
    return torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], dim=1)


def _state_before(run: Run, site: str, sequence: int) -> Float[Tensor, "L C"] | None:
    """The state of the stream that a site read."""
    for stream in run.streams.values():
        for part, border in zip(stream.parts, stream.borders, strict=False):
            if part.site == site and stream.rows is None:
                return stream.after(border)[sequence].double().cpu()
    return None
