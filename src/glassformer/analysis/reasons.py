"""Why a model wrote a token: from its logit down to heads, feed-forwards and source tokens.

Every edge is an exact product of recorded numbers, with what is frozen stated, and what is left out
is shown as the rest. Direct contributions are not causes, so a verdict follows: the named parts
alone are kept, or alone removed, the model runs, and the numbers say how much they carry.
"""

from dataclasses import dataclass
from math import fsum
from typing import Literal, NamedTuple

import torch

from glassformer.analysis.attribution import Attribution, Share, attribute
from glassformer.analysis.vocabulary import resolve_token
from glassformer.errors import GlassformerError, TraceError
from glassformer.tracing import Ablate, Trace
from glassformer.tracing.interventions.values import Changes
from glassformer.tracing.stream import Stream
from glassformer.tracing.variants import run_variants


class Source(NamedTuple):
    """What a head takes from one token."""

    token: str
    position: int
    value: float


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A head or a feed-forward network that writes towards the token, or away from it."""

    name: str
    part: str
    head: int | None
    value: float
    sources: tuple[Source, ...] = ()  # of a head: the largest
    rest: float = 0.0  # what the head takes from all other tokens


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


@dataclass(frozen=True, kw_only=True)
class Why:
    """The chain of one prediction."""

    token: str
    against: str
    position: str
    logit: float  # of the token less that of the other
    reasons: list[Reason]
    rest: float  # what all others add: heads, feed-forwards, embedding, biases
    remainder: float  # rounding
    frozen: list[str]
    verdict: Verdict | None
    without_verdict: str = ""  # why there is none

    def __str__(self) -> str:
        lines = [f"{self.token} − {self.against} after {self.position}: {self.logit:+.3f}"]
        for reason in self.reasons:
            lines.append(f"  {reason.value:+8.3f}  {reason.name}")
            lines += [f"      {s.value:+8.3f}  {s.token} ({s.position})" for s in reason.sources]
            if reason.sources:
                lines.append(f"      {reason.rest:+8.3f}  other tokens")
        lines.append(f"  {self.rest:+8.3f}  everything else")
        found = self.verdict
        if found is None:
            lines.append(f"  not tested: {self.without_verdict}")
        else:
            lines.append(
                f"  kept alone they carry {found.carried:.0%} of the difference; without them "
                f"{found.needed:.0%} of it is lost ({'' if found.is_faithful else 'not '}faithful)"
            )
        return "\n".join(lines)

    __repr__ = __str__


def why(
    trace: Trace,
    token: int | str | None = None,
    *,
    against: int | str | None = None,
    position: int = -1,
    top: int = 8,
    sources: int = 3,
    how: Literal["mean", "zero"] = "mean",
    stack: str | None = None,
    sequence: int = 0,
) -> Why:
    """Why a model prefers one token to another: what wrote it, from which tokens, and a verdict.

    Without `token`, the most probable one at `position`; without `against`, the most probable other
    one. The `top` heads and feed-forwards are named by the size of what they add to the difference.
    The verdict runs the model with the named parts of this stack kept alone, and with them removed,
    by mean or zero ablation at all positions; it needs a trace of one sequence, and the model.

    >>> import torch
    >>> import glassformer as gf
    >>> model = gf.load("writer")
    >>> with gf.watch(model, residual=True) as trace:
    ...     _ = model(torch.tensor([model.tokenizer.encode("The cat sat on the")]))
    >>> found = gf.why(trace, top=4)
    >>> len(found.reasons), found.verdict is not None
    (4, True)
    """
    if how not in ("mean", "zero"):
        raise TraceError(f"how must be 'mean' or 'zero'; got {how!r}.")
    if top < 1 or sources < 0:
        raise TraceError(
            f"top must be at least 1 and sources at least 0; got top={top}, sources={sources}."
        )
    stream = trace.residual(stack)
    asked = _choose_tokens(stream, token, against, position, sequence)
    where = {"position": position, "stack": stream.name, "sequence": sequence}
    found = attribute(trace, asked[0], against=asked[1], by="head", **where)
    kinds = {part.name: part.kind for part in stream.parts}
    named = [
        share
        for share in sorted(found.shares, key=lambda share: -abs(share.value))
        if share.head is not None or kinds.get(share.name) in ("mlp", "mixer")
    ][:top]
    split = attribute(trace, asked[0], against=asked[1], by="source", **where)
    verdict, reason = None, ""
    try:
        verdict = _judge(trace, stream, named, asked, position, how)
    except GlassformerError as error:
        reason = str(error).rstrip(".")
    assert found.against is not None
    return Why(
        token=found.token,
        against=found.against,
        position=found.position,
        logit=found.logit,
        reasons=[_explain(share, split, sources) for share in named],
        rest=fsum(s.value for s in found.shares) - fsum(s.value for s in named),
        remainder=found.remainder,
        frozen=split.frozen,
        verdict=verdict,
        without_verdict=reason,
    )


def _choose_tokens(
    stream: Stream,
    token: int | str | None,
    against: int | str | None,
    position: int,
    sequence: int,
) -> tuple[int, int]:
    """The tokens asked for; where one is not given, the most probable that is left."""
    n = stream.start.shape[1]
    if not -n <= position < n:
        raise TraceError(f"There are {n} positions; got position={position}.")
    readout = stream.require_readout()
    logits = readout(stream.end[sequence : sequence + 1, [position]])[0, 0]
    best = logits.topk(2).indices.tolist()
    chosen = [
        None if each is None else resolve_token(each, len(logits), readout.tokenizer)
        for each in (token, against)
    ]
    for i, each in enumerate(chosen):
        if each is None:
            chosen[i] = next(j for j in best if j not in chosen)
    first, second = chosen
    assert first is not None and second is not None
    return first, second


def _explain(share: Share, split: Attribution, n: int) -> Reason:
    looks = [s for s in split.shares if s.part == share.part and s.head == share.head]
    looks = [s for s in looks if s.source is not None]
    looks.sort(key=lambda look: -abs(look.value))
    sources = tuple(
        Source(look.name.partition(" ← ")[2], look.source, look.value)
        for look in looks[:n]
        if look.source is not None
    )
    return Reason(
        name=share.name,
        part=share.part,
        head=share.head,
        value=share.value,
        sources=sources,
        rest=fsum(look.value for look in looks[n:]),
    )


def _judge(
    trace: Trace,
    stream: Stream,
    named: list[Share],
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
    for share in named:
        heads = chosen.setdefault(share.part, None if share.head is None else set())
        if heads is not None and share.head is not None:
            heads.add(share.head)

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
