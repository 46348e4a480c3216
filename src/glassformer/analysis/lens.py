"""The logit lens: what a model would say, were its residual stream to end here.

At every border of the stream and every position, the state is read out as the model reads its last
one (nostalgebraist 2020). Early borders are read in a basis that later layers may still change: a
lens shows what the unembedding sees, not what the model "believes". An `AffineLens`, trained or
measured, maps each state before it is read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.analysis.affine_lens import AffineLens, LensKind
from glassformer.analysis.drawings import drawing_module
from glassformer.errors import TraceError
from glassformer.tracing.readout import Readout
from glassformer.tracing.stream import Stream
from glassformer.tracing.text_labels import label_rows
from glassformer.tracing.trace import Trace

_MOST_ROWS = 1024  # read out at once: a row of scores is as wide as the vocabulary


@dataclass(eq=False, frozen=True, kw_only=True)
class Lens:
    """What each border says at each position; N borders, L positions."""

    borders: list[str]
    positions: list[str]  # the labels of the tokens read
    tokens: Int[Tensor, "N L k"]  # the most probable tokens, the first first
    probabilities: Float[Tensor, "N L k"]
    entropy: Float[Tensor, "N L"]  # in nats
    divergence: Float[Tensor, "N L"]  # from the end: Σ p_end log(p_end / p), in nats
    rank: Int[Tensor, "N L"]  # of the token that the end puts first; 0 is the first
    labels: list[list[list[str]]]  # of `tokens`
    pooled: int | None = None  # a classifier reads this position; others are read as if it were
    kind: LensKind | None = None  # of the maps that states were read through
    model: dict[str, Any] = field(default_factory=dict)  # what the trace says of it

    def settled(self, position: int) -> int:
        """The first border from which on the final token stays the first, at a position."""
        ranks = self.rank[:, position].tolist()
        wrong = [i for i, rank in enumerate(ranks) if rank > 0]
        return wrong[-1] + 1 if wrong else 0

    def figure(
        self, path: str | Path, *, parts: bool = False, positions: Sequence[int] | None = None
    ) -> None:
        """Write the grid of top tokens, PNG, SVG or PDF; with `parts`, a row for each part."""
        drawing_module().lens_figure(self, path, parts=parts, positions=positions)

    def page(
        self, path: str | Path, *, parts: bool = False, positions: Sequence[int] | None = None
    ) -> None:
        """Write one HTML file with the grid; it tells the top tokens of every cell."""
        drawing_module().lens_page(self, path, parts=parts, positions=positions)

    def __repr__(self) -> str:
        first = ", ".join(f"{row[-1][0]!r}" for row in self.labels[-3:])
        return f"Lens({len(self.borders)} borders, {len(self.positions)} positions; … {first})"


def logit_lens(
    trace: Trace,
    *,
    lens: AffineLens | None = None,
    stack: str | None = None,
    sequence: int = 0,
    top: int = 5,
    positions: Sequence[int] | None = None,
) -> Lens:
    """What the model would say after every part of every block, at every position or some.

    The trace is recorded with residual=True. With a tuned or Jacobian `lens`, its borders and the
    end are read, each mapped by it. Of a classifier, classes take the place of tokens; it reads one
    position, `pooled`, and every other one is read as if it were that one.

    >>> import torch
    >>> import glassformer as gf
    >>> model = gf.load("writer")
    >>> with gf.watch(model, residual=True) as trace:
    ...     _ = model(torch.tensor([model.tokenizer.encode("The cat sat")]))
    >>> lens = gf.logit_lens(trace)
    >>> lens.borders[0], lens.borders[-1]
    ('decoder.start', 'decoder.4.mlp')
    >>> int(lens.rank[-1].max())
    0
    """
    stream = trace.residual(stack)
    readout = stream.require_readout()
    check_top(top)
    _check_sequence(stream, sequence)
    if lens is not None:
        lens.check(stream, readout)
    labels = name_positions(trace, stream, sequence)
    chosen = list(range(len(labels))) if positions is None else _check_positions(positions, labels)
    found = ((name, x[sequence, chosen]) for name, x in stream.states())
    names, states = zip(*(found if lens is None else _map_states(found, lens)), strict=True)
    rows = torch.arange(states[0].shape[0]).split(_MOST_ROWS)
    chunks = [_read_rows(readout, [x[r[0] : r[-1] + 1] for x in states], top) for r in rows]
    tokens, probabilities, entropy, divergence, rank = (
        torch.cat(parts, dim=1) for parts in zip(*chunks, strict=True)
    )
    return Lens(
        borders=list(names),
        positions=[labels[i] for i in chosen],
        tokens=tokens,
        probabilities=probabilities,
        entropy=entropy,
        divergence=divergence,
        rank=rank,
        labels=[[label_tokens(readout, cell) for cell in row] for row in tokens.tolist()],
        pooled=_find_pooled_row(stream, readout, sequence, chosen),
        kind=None if lens is None else lens.kind,
        model=trace.model,
    )


def _check_positions(positions: Sequence[int], labels: list[str]) -> list[int]:
    n = len(labels)
    for position in positions:
        if not -n <= position < n:
            raise TraceError(f"There are {n} positions; got position={position}.")
    return [position % n for position in positions]


def _find_pooled_row(
    stream: Stream, readout: Readout, sequence: int, chosen: list[int]
) -> int | None:
    pooled = readout.find_pooled(sequence)
    if pooled is not None and stream.rows is not None:
        pooled = stream.rows.index(pooled) if pooled in stream.rows else None
    return chosen.index(pooled) if pooled in chosen else None


def _map_states(states: Iterable[tuple[str, Tensor]], lens: AffineLens) -> list[tuple[str, Tensor]]:
    """The states at the borders of a lens, mapped; the last one as it is."""
    *early, last = states
    return [*((name, lens.map(name, x)) for name, x in early if name in lens.borders), last]


def check_top(top: int) -> None:
    """Reject a number of tokens that nobody could read."""
    if not 1 <= top <= 100:
        raise TraceError(f"top must be 1 … 100 tokens; got top={top}.")


def _read_rows(readout: Readout, states: list[Tensor], top: int) -> tuple[Tensor, ...]:
    end = _log_probabilities(readout, states[-1])
    best = end.argmax(-1, keepdim=True)
    found = []
    for x in states:
        logs = _log_probabilities(readout, x)
        shares, tokens = logs.topk(min(top, logs.shape[-1]), dim=-1)
        p = logs.exp()
        entropy = -(p * logs).nan_to_num(0.0).sum(-1)
        divergence = (end.exp() * (end - logs)).nan_to_num(0.0).sum(-1).clamp(min=0)
        rank = (logs > logs.gather(-1, best)).sum(-1)
        found.append((tokens, shares.exp(), entropy, divergence, rank))
    return tuple(torch.stack(each) for each in zip(*found, strict=True))


def _log_probabilities(readout: Readout, x: Float[Tensor, "L C"]) -> Float[Tensor, "L V"]:
    return readout(x[None])[0].float().log_softmax(-1)


def name_positions(trace: Trace, stream: Stream, sequence: int) -> list[str]:
    """The labels of the positions of a stream; numbers where the tokens are not known."""
    rows = range(stream.start.shape[1]) if stream.rows is None else stream.rows
    if stream.text not in trace.run.texts:
        return [str(i) for i in rows]
    labels = trace.labels(stream.text, sequence=sequence)
    return [labels[i] for i in rows]


def label_tokens(readout: Readout, tokens: list[int]) -> list[str]:
    """How tokens read, each by itself; their numbers without a tokenizer."""
    if readout.vocabulary is None:
        return [str(token) for token in tokens]
    return [row[0] for row in label_rows(readout.vocabulary, torch.tensor(tokens)[:, None])]


def _check_sequence(stream: Stream, sequence: int) -> None:
    B = len(stream.start)
    if not 0 <= sequence < B:
        raise TraceError(f"This trace has sequences 0 … {B - 1}; got sequence={sequence}.")
