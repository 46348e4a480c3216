"""The verdict on a chain of reasons: the model runs with the named parts removed, or kept alone."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import torch

from glassformer.analysis.writers import Writer
from glassformer.errors import TraceError
from glassformer.tracing import Ablate, Trace
from glassformer.tracing.interventions.values import Changes
from glassformer.tracing.stream import Stream
from glassformer.tracing.variants import run_variants


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The difference of logits when parts are removed: by running the model, not by arithmetic."""

    whole: float  # nothing is removed
    kept: float  # everything but the named parts is
    removed: float  # the named parts are
    none: float  # every head and every feed-forward is
    how: Literal["mean", "zero"]

    @property
    def carried(self) -> float:
        """The share of the difference that the named parts carry alone."""
        return (self.kept - self.none) / (self.whole - self.none)

    @property
    def needed(self) -> float:
        """The share of the difference that is lost without them."""
        return (self.whole - self.removed) / (self.whole - self.none)

    @property
    def is_faithful(self) -> bool:
        """Whether the named parts carry most of the difference, and most of it is lost without."""
        return min(self.carried, self.needed) >= 0.5


def judge(
    trace: Trace,
    stream: Stream,
    named: Collection[Writer],
    asked: tuple[int, int],
    position: int,
    how: Literal["mean", "zero"],
) -> Verdict:
    """Run the model with the named parts removed, with all others removed, and with all removed."""
    everything = {
        part.name: None if part.site is None else range(trace[part.site].n_heads)
        for part in stream.parts
        if part.kind != "change"
    }
    chosen: dict[str, set[int] | None] = {}
    for writer in named:
        heads = chosen.setdefault(writer.part, None if writer.head is None else set())
        if heads is not None and writer.head is not None:
            heads.add(writer.head)

    def ablate(part: str, heads: list[int] | None) -> Ablate:
        of = trace if how == "mean" else None
        return Ablate(part, head=heads, how=how, of=of)

    removed, kept = [], []
    for part, heads in everything.items():
        if heads is None:
            (removed if part in chosen else kept).append(ablate(part, None))
            continue
        mine = sorted(chosen.get(part) or ())
        others = [h for h in heads if h not in mine]
        if mine:
            removed.append(ablate(part, mine))
        if others:
            kept.append(ablate(part, others))
    none = [
        ablate(part, None if heads is None else list(heads)) for part, heads in everything.items()
    ]
    readout = stream.require_readout()
    variants = [Changes.of_variants(each) for each in (removed, kept, none)]
    ends = run_variants(trace, variants, stack=stream.name)
    ends = torch.cat([ends[:, [position]], stream.end[:1, [position]].to(ends.device)])
    logits = readout(ends)[:, 0].double().cpu()
    without, alone, nothing, whole = (logits[:, asked[0]] - logits[:, asked[1]]).tolist()
    if abs(whole - nothing) < 1e-6 * max(abs(whole), 1.0):
        raise TraceError("the difference is the same when every part is removed")
    return Verdict(whole=whole, kept=alone, removed=without, none=nothing, how=how)
