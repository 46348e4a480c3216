"""What an intervention did: one text, with it and without it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.comparison import Comparison, compare
from glassformer.analysis.lens import check_top, label_tokens, name_positions
from glassformer.errors import TraceError
from glassformer.tracing.stream import Part, Stream
from glassformer.tracing.trace import Trace

_MOST_ROWS = 256  # read out at once: a row of scores is as wide as the vocabulary
_CHANGE, _SKIP = ".change", ".skip"  # what an intervention adds is a part of its own


class TokenShift(NamedTuple):
    """The probability of a token, without the intervention and with it."""

    token: str
    before: float
    after: float


class PartShift(NamedTuple):
    """How much of what a part adds is changed: |after − before| / |before|, at one position."""

    name: str
    change: float


@dataclass(eq=False, frozen=True, kw_only=True)
class Effect:
    """A run with an intervention against the run without it."""

    positions: list[str]
    position: int
    tokens: list[TokenShift]  # the most probable of either run, at the position
    divergence: Float[Tensor, " L"]  # Σ p_before log(p_before / p_after), in nats
    parts: list[PartShift]  # the most changed first
    heads: Comparison | None  # None where the runs share no attention

    @property
    def best_before(self) -> TokenShift:
        return max(self.tokens, key=lambda shift: shift.before)

    @property
    def best_after(self) -> TokenShift:
        return max(self.tokens, key=lambda shift: shift.after)

    def most_changed_head(self) -> tuple[str, int, float] | None:
        """Site, number and distance of the head whose attention changed most; None for none."""
        if self.heads is None:
            return None
        found = [
            (name, number, float(distance))
            for name, numbers in self.heads.heads.items()
            for number, distance in zip(numbers, self.heads.by_head(name), strict=True)
        ]
        best = max(found, key=lambda head: head[2])
        return best if best[2] > 1e-6 else None


def measure_effect(
    before: Trace,
    after: Trace,
    *,
    position: int | None = -1,
    top: int = 5,
    sequence: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Effect:
    """Compare a changed run with the unchanged one; both record the residual stream.

    `position` is where tokens and parts are compared; None is where the prediction moved most.

    >>> import glassformer as gf
    >>> model = gf.load("translator")
    >>> with gf.watch(model, residual=True) as trace:
    ...     _ = gf.translate(model, "The cat sat.", to="fr", beams=1)
    >>> found = measure_effect(trace, gf.rerun(trace, gf.Ablate("decoder.2.cross")), position=1)
    >>> found.best_before.token, float(found.divergence[1]) > 0
    ('␣chat', True)
    """
    check_top(top)
    first, second = before.residual(), after.residual()
    if first.start.shape != second.start.shape:
        raise TraceError(
            "To be compared, two runs must read the same text; their streams have shapes "
            f"{tuple(first.start.shape)} and {tuple(second.start.shape)}."
        )
    positions = name_positions(before, first, sequence)
    if position is not None and not -len(positions) <= position < len(positions):
        raise TraceError(f"There are {len(positions)} positions; got position={position}.")
    readout = first.require_readout()
    ends = [stream.end[sequence] for stream in (first, second)]
    chunks = []
    for rows in zip(*(end.split(_MOST_ROWS) for end in ends), strict=True):
        p, q = (readout(x[None])[0].float().log_softmax(-1) for x in rows)
        chunks.append((p.exp() * (p - q)).nan_to_num(0.0).sum(-1).clamp(min=0).cpu())
    divergence = torch.cat(chunks)
    row = int(divergence.argmax()) if position is None else position % len(positions)
    p, q = (readout(x[None, [row]])[0, 0].float().softmax(-1).cpu() for x in ends)
    best = dict.fromkeys([*p.topk(min(top, len(p))).indices.tolist(), *q.topk(1).indices.tolist()])
    labels = label_tokens(readout, list(best))
    return Effect(
        positions=positions,
        position=row,
        tokens=[
            TokenShift(label, float(p[token]), float(q[token]))
            for label, token in zip(labels, best, strict=True)
        ],
        divergence=divergence,
        parts=_compare_parts(first, second, sequence, row),
        heads=_compare_heads(before, after, sequence, progress),
    )


def _compare_parts(first: Stream, second: Stream, sequence: int, row: int) -> list[PartShift]:
    a, b = (_sum_parts(stream, sequence, row) for stream in (first, second))
    found = []
    for name, value in a.items():
        size = float(value.norm())
        apart = float((b.get(name, torch.zeros_like(value)) - value).norm())
        if apart > 1e-6 * max(size, 1e-30):
            found.append(PartShift(name, apart / max(size, 1e-30)))
    return sorted(found, key=lambda part: -part.change)


def _sum_parts(stream: Stream, sequence: int, row: int) -> dict[str, Tensor]:
    """What each part adds at a position, what an intervention adds there included."""
    found: dict[str, Tensor] = {}
    for part in stream.parts:
        value = part.value[sequence, row].double().cpu()
        if part.name.endswith(_SKIP) and value.any():  # it takes back what the block has added
            found |= {p.name: torch.zeros_like(value) for p in _list_block(stream, part.layer)}
            continue
        name = part.name.removesuffix(_CHANGE)
        found[name] = found[name] + value if name in found else value
    return found


def _list_block(stream: Stream, layer: int) -> list[Part]:
    return [part for part in stream.parts if part.layer == layer and part.kind != "change"]


def _compare_heads(
    before: Trace, after: Trace, sequence: int, progress: Callable[[float], None] | None
) -> Comparison | None:
    try:
        return compare(before, after, sequence=sequence, progress=progress)
    except TraceError:  # the changed sites are all of another size, or were not recorded
        return None
