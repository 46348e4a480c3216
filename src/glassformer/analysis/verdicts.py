"""The verdict on a chain of reasons: the model runs with the named parts removed, or kept alone.

Removed means replaced by the mean over a text. The first position is neither changed nor counted,
unless it is the one that is read: many models keep a sink there, whose size would be spread over
all others. What any other parts
would have done says whether the named ones are special: random sets of as many parts run beside.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import copysign
from random import Random
from typing import Any, Literal

from glassformer.analysis.writers import Writer
from glassformer.errors import TraceError
from glassformer.tracing import Ablate, Trace
from glassformer.tracing.stream import Stream
from glassformer.tracing.variants import Variants

_MOST_TOKENS = 4096  # of one pass
_BY_CHANCE = 0.1  # of the random sets may do as well


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The difference of logits when parts are removed: by running the model, not by arithmetic."""

    whole: float  # nothing is removed
    kept: float  # everything but the named parts is
    removed: float  # the named parts are
    none: float  # every head and every feed-forward is
    how: Literal["mean", "zero"]
    n_parts: int  # that are named
    random_kept: tuple[float, ...] = ()  # the same with random sets of as many parts
    random_removed: tuple[float, ...] = ()

    @property
    def carried(self) -> float:
        """The share of the difference that the named parts carry alone."""
        return (self.kept - self.none) / (self.whole - self.none)

    @property
    def needed(self) -> float:
        """The share of the difference that is lost without them."""
        return (self.whole - self.removed) / (self.whole - self.none)

    @property
    def is_telling(self) -> bool:
        """Whether removing everything takes at least half of the difference away.

        Otherwise the means themselves know the answer, and shares say nothing.
        """
        return (self.whole - self.none) * copysign(1.0, self.whole) >= 0.5 * abs(self.whole)

    @property
    def as_close(self) -> int:
        """How many random sets, kept alone, come as close to the whole."""
        return sum(
            abs(each - self.whole) <= abs(self.kept - self.whole) for each in self.random_kept
        )

    @property
    def as_needed(self) -> int:
        """Without how many random sets as much is lost."""
        sign = copysign(1.0, self.whole)
        return sum(sign * each <= sign * self.removed for each in self.random_removed)

    @property
    def is_enough(self) -> bool:
        """Whether the named parts alone come within half of the difference, as few others do."""
        is_close = self.is_telling and abs(self.carried - 1) <= 0.5
        return is_close and self.as_close <= _BY_CHANCE * len(self.random_kept)

    @property
    def is_needed(self) -> bool:
        """Whether at least half of the difference is lost without them, as without few others."""
        is_lost = self.is_telling and self.needed >= 0.5
        return is_lost and self.as_needed <= _BY_CHANCE * len(self.random_removed)

    @property
    def is_faithful(self) -> bool:
        """Whether the named parts are enough, and needed."""
        return self.is_enough and self.is_needed


class _Parts:
    """The heads and feed-forwards of a stack, and how a set of them is removed."""

    def __init__(
        self,
        trace: Trace,
        stream: Stream,
        row: int,
        how: Literal["mean", "zero"],
        reference: Trace | None,
    ) -> None:
        self.how, self.reference = how, None if how == "zero" else reference or trace
        self.everything = [
            Writer(part.name, head)
            for part in stream.parts
            if part.kind != "change"
            for head in ([None] if part.site is None else range(trace[part.site].n_heads))
        ]
        self.skip = 1 if row else 0
        self.positions = range(self.skip, stream.start.shape[1])

    def remove(self, sets: Sequence[Collection[Writer]]) -> list[Ablate]:
        """The removal of one set of parts in each sequence of a batch."""
        options: dict[str, Any] = {"how": self.how, "positions": self.positions}
        if self.reference is not None:
            options |= {"of": self.reference, "skip": self.skip}
        where = {
            writer: [i for i, chosen in enumerate(sets) if writer in chosen]
            for writer in self.everything
        }
        return [
            Ablate(writer.part, head=writer.head, sequences=sequences, **options)
            for writer, sequences in where.items()
            if sequences
        ]

    def complement(self, chosen: Collection[Writer]) -> list[Writer]:
        return [writer for writer in self.everything if writer not in set(chosen)]

    def draw(self, like: Collection[Writer], n: int, seed: int) -> Iterator[list[Writer]]:
        """Random sets with as many heads and as many other parts."""
        random = Random(seed)
        for _ in range(n):
            chosen = []
            for is_head in (True, False):
                all_of_kind = [w for w in self.everything if (w.head is not None) == is_head]
                k = sum((w.head is not None) == is_head for w in like)
                chosen += random.sample(all_of_kind, min(k, len(all_of_kind)))
            yield chosen


def judge(
    trace: Trace,
    stream: Stream,
    named: Sequence[Writer],
    asked: tuple[int, int],
    row: int,
    how: Literal["mean", "zero"],
    *,
    draws: int = 10,
    seed: int = 0,
    reference: Trace | None = None,
) -> Verdict:
    """Run the model without the named parts, without all others, and without any."""
    parts = _Parts(trace, stream, row, how, reference)
    sets = [list(named)]
    if set(named) < set(parts.everything):  # otherwise there is nothing to choose from
        sets += parts.draw(named, draws, seed)
    absent = [parts.everything, *sets, *(parts.complement(each) for each in sets)]
    whole, none, *found = _run(trace, stream, parts, [[], *absent], asked, row)
    removed, kept = found[: len(sets)], found[len(sets) :]
    if abs(whole - none) < 1e-6 * max(abs(whole), 1.0):
        raise TraceError("the difference is the same when every part is removed")
    return Verdict(
        whole=whole,
        kept=kept[0],
        removed=removed[0],
        none=none,
        how=how,
        n_parts=len(named),
        random_kept=tuple(kept[1:]),
        random_removed=tuple(removed[1:]),
    )


def _run(
    trace: Trace,
    stream: Stream,
    parts: _Parts,
    sets: list[list[Writer]],
    asked: tuple[int, int],
    row: int,
) -> list[float]:
    """The difference of the two logits without each of these sets of parts."""
    readout = stream.require_readout()
    n = max(_MOST_TOKENS // stream.start.shape[1], 2)
    values: list[float] = []
    with Variants(trace, stack=stream.name) as variants:
        for start in range(0, len(sets), n):
            some = [set(each) for each in sets[start : start + n]]
            ends = variants.run_together(parts.remove(some), len(some))
            logits = readout(ends[:, [row]])[:, 0].double().cpu()
            values += (logits[:, asked[0]] - logits[:, asked[1]]).tolist()
    return values
