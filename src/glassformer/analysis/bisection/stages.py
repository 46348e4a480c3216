"""The operands of a run in the order in which they are computed, each held against its twin.

    start → [ q, k, v → mask, bias, scale, softcap → out → written → mlp ] of every layer

A stage differs by itself if it is further apart than rounding, and than what it was computed from,
times GROWTH. The output of attention is held against what its own operands give in float64: that
part of its difference is the kernel's.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.bisection.aligned_runs import AlignedRuns, SitePair
from glassformer.analysis.bisection.measures import GROWTH, Apart, differing, measure, tolerance
from glassformer.analysis.bisection.scoring import compare_scoring
from glassformer.tracing.stream import Part, Stream, Transform

Operand = Literal[
    "start", "q", "k", "v", "mask", "bias", "scale", "softcap", "out", "written", "mlp", "norm"
]


@dataclass(eq=False, frozen=True, kw_only=True)
class Stage:
    """One operand in both runs."""

    operand: Operand
    name: str  # of the site, the part or the stack
    layer: int | None
    apart: Apart
    threshold: float  # beyond which it differs by itself
    a: Float[Tensor, "H R D"] | None = None
    b: Float[Tensor, "H R D"] | None = None
    positions: list[int] = field(default_factory=list)
    reads: Float[Tensor, "R C"] | None = None  # what it was computed from, where that is the same
    pair: SitePair | None = None
    found: dict[str, Any] = field(default_factory=dict)  # of masks, scales and caps
    is_first: bool = False  # of the kernel: it is the first trace whose output is not exact
    stream: float | None = None  # how far apart the stream is before it

    @property
    def differs(self) -> bool:
        return self.apart.worst > self.threshold

    def differing(self) -> tuple[list[int], list[int]]:
        """Its heads and its positions that differ."""
        heads, rows = differing(self.apart, self.threshold)
        numbers = self.pair.first.head_numbers if self.pair is not None else None
        if numbers is not None and self.operand in ("q", "out"):
            heads = [numbers[h] for h in heads]
        return heads, [self.positions[row] for row in rows]


def walk(runs: AlignedRuns) -> Iterator[Stage]:
    """Every stage, in order; those of a level (q, k, v of a site) follow each other."""
    left = [name for name in runs.first.sites if runs.pair(name) is not None]
    for stack, a in runs.first.streams.items():
        b = runs.second.streams.get(stack)
        if b is not None and a.start.shape[-1] == b.start.shape[-1]:
            yield from _walk_stream(runs, a, b, left)
    given = 0.0
    for name in left:
        pair = runs.pair(name)
        assert pair is not None
        for stage in _walk_site(pair, given, None):
            given = max(given, stage.apart.worst if stage.a is not None else 0.0)
            yield stage


def _walk_stream(runs: AlignedRuns, a: Stream, b: Stream, left: list[str]) -> Iterator[Stage]:
    positions, at_a, at_b = runs.stream_rows(a, b)

    def both(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        x, y = x[runs.sequence, at_a], y[runs.sequence, at_b]
        return x[None].double().cpu(), y[None].double().cpu()

    def stage(
        operand: Operand, part: tuple[str, int | None], x: Tensor, y: Tensor, given: float,
        reads: Tensor | None = None, stream: float | None = None,
    ) -> Stage:  # fmt: skip
        x, y = both(x, y)
        return Stage(
            operand=operand,
            name=part[0],
            layer=part[1],
            stream=stream,
            apart=measure(x, y),
            threshold=runs.tolerance + GROWTH * given,
            a=x,
            b=y,
            positions=positions,
            reads=reads,
        )

    yield stage("start", (a.name, None), a.start, b.start, 0.0)
    theirs = {step.name: step for step in b.steps}
    borders = [dict(s.states()) for s in (a, b)]
    names = [border for border in a.borders if border in borders[1]]
    before = {part.name: border for part, border in zip(a.parts, a.borders, strict=False)}
    for step in a.steps:
        twin = theirs.get(step.name)
        if isinstance(step, Transform):
            if isinstance(twin, Transform):
                yield from _compare_norms(step, twin)
            continue
        if not isinstance(twin, Part) or before[step.name] not in names:
            continue
        state = both(*(states[before[step.name]] for states in borders))
        distance, x = measure(*state), state[0][0]
        given = inner = distance.worst
        for name in _sites_before(step, a.name, left):
            left.remove(name)
            pair = runs.pair(name)
            assert pair is not None
            yield from _walk_site(pair, given, x if pair.positions == positions else None)
            if step.kind != "mlp":
                inner = max(inner, measure(*pair.exact).worst)
        operand: Operand = "mlp" if step.kind not in ("self", "cross") else "written"
        outs = _merged_output(runs, step) if operand == "written" else x
        which = step.name, step.layer
        yield stage(operand, which, step.value, twin.value, inner, outs, distance.whole)


def _sites_before(part: Part, stack: str, left: list[str]) -> list[str]:
    """The sites that ran before a part was added: its own, and any of its layer."""
    found = []
    for name in left:
        match = re.match(rf"{re.escape(stack)}\.(\d+)\.(\w+)", name)
        if match is None:
            continue
        layer, kind = int(match[1]), match[2]
        is_here = layer == part.layer and (part.site == name or kind == part.kind)
        if layer < part.layer or is_here or (layer == part.layer and part.kind == "mlp"):
            found.append(name)
    return found


def _merged_output(runs: AlignedRuns, part: Part) -> Float[Tensor, "R X"] | None:
    """What the matrix that writes read: the outputs of the heads beside each other."""
    pair = runs.pair(part.site) if part.site is not None else None
    if pair is None or pair.first.heads is not None:
        return None
    return pair.exact[0].transpose(0, 1).flatten(1)


def _walk_site(pair: SitePair, given: float, reads: Tensor | None) -> Iterator[Stage]:
    site = pair.first
    layer = re.match(r"\w+\.(\d+)\.", site.name)
    shared: dict[str, Any] = {
        "name": site.name,
        "layer": None if layer is None else int(layer[1]),
        "pair": pair,
    }
    for operand in ("q", "k", "v"):
        a, b = pair.operands(operand)
        is_query = operand == "q"
        yield Stage(
            operand=operand,
            apart=measure(a, b),
            threshold=pair.tolerance + GROWTH * given,
            a=a,
            b=b,
            positions=pair.positions if is_query else list(range(pair.n_columns)),
            reads=reads if reads is not None and reads.shape[0] == a.shape[1] else None,
            **shared,
        )
    for operand, apart, found in compare_scoring(pair):
        yield Stage(
            operand=operand,
            apart=apart,
            threshold=0.0,
            found=found,
            positions=pair.positions,
            **shared,
        )
    if pair.has_outputs():
        yield from _walk_kernels(pair, shared)


def _walk_kernels(pair: SitePair, shared: dict[str, Any]) -> Iterator[Stage]:
    """The outputs against what their own operands give; that of the second trace first."""
    outs, closed = pair.operands("out"), ~pair.open_rows[..., None]
    for i in (1, 0):
        site = (pair.first, pair.second)[i]
        assert site.out is not None
        exact = pair.exact[i].masked_fill(closed, 0.0)
        out = outs[i].masked_fill(closed, 0.0)
        yield Stage(
            operand="out",
            apart=measure(exact, out),
            threshold=tolerance(site.q.dtype, site.out.dtype),
            a=exact,
            b=out,
            positions=pair.positions,
            is_first=i == 0,
            **shared,
        )


def _compare_norms(a: Transform, b: Transform) -> Iterator[Stage]:
    """Norms that the stream itself passes: their numbers are in the trace."""
    if a.norm is None or b.norm is None:
        return
    found: dict[str, Any] = {}
    if a.norm.eps != b.norm.eps:
        found = {"kind": "epsilon", "first": a.norm.eps, "second": b.norm.eps}
    elif not (_is_same(a.norm.gain, b.norm.gain) and _is_same(a.norm.bias, b.norm.bias)):
        found = {"kind": "gain"}
    if found:
        one = torch.ones(1, 1)
        layer = re.match(r"\w+\.(\d+)\.", a.name)
        yield Stage(
            operand="norm",
            name=a.name,
            layer=None if layer is None else int(layer[1]),
            apart=Apart(1.0, 1.0, one),
            threshold=0.0,
            found=found,
        )


def _is_same(a: Tensor | None, b: Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    return torch.equal(a.double().cpu(), b.double().cpu())
