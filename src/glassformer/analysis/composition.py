"""How much later heads read of what earlier heads write, by their weights alone.

For a writer W_OV and what a reader does with the stream, the score is ‖W_read W_OV‖ relative to the
product of their norms (Elhage et al. 2021). All of it is computed from D × D matrices.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.site_weights import SiteWeights, carry
from glassformer.errors import TraceError
from glassformer.tracing.stream import Transform

if TYPE_CHECKING:
    from glassformer.analysis.weight_circuits import Circuits

CompositionKind = Literal["q", "k", "v"]
_DRAWS = 32  # random pairs that the baseline is a mean of
Head = tuple[str, int]


@dataclass(eq=False, frozen=True, kw_only=True)
class Composition:
    """Scores from 0 to 1, NaN where the reader is not after the writer."""

    kind: CompositionKind
    writers: list[Head]
    readers: list[Head]
    scores: Float[Tensor, "N M"]
    baseline: float  # what random matrices of these shapes score

    def top(self, n: int = 10) -> list[tuple[Head, Head, float]]:
        """The pairs that compose most: writer, reader, and the score above the baseline."""
        excess = (self.scores - self.baseline).nan_to_num(-torch.inf).flatten()
        best = excess.topk(min(n, int(self.scores.isfinite().sum())))
        M = len(self.readers)
        return [
            (self.writers[i // M], self.readers[i % M], value)
            for value, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]

    def __str__(self) -> str:
        lines = [f"{self.kind.upper()}-composition, above {self.baseline:.3f} of random matrices"]
        for (writer, i), (reader, j), value in self.top():
            lines.append(f"  {value:+.3f}  {writer}.{i} → {reader}.{j}")
        return "\n".join(lines)

    __repr__ = __str__


def compose(
    circuits: "Circuits",
    kind: CompositionKind,
    writers: list[str] | None,
    readers: list[str] | None,
) -> Composition:
    """The score of every head that writes with every head that reads after it."""
    if kind not in ("q", "k", "v"):
        raise TraceError(f"Composition is by 'q', 'k' or 'v'; got {kind!r}.")
    reads = ("v", "o") if kind == "v" else ("q", "k")
    behind = [circuits[n] for n in readers or circuits.sites]
    before = [circuits[n] for n in writers or circuits.sites]
    if readers is None:
        behind = [each for each in behind if not {*reads} & each.refusals.keys()]
    if writers is None:
        before = [each for each in before if not {"v", "o"} & each.refusals.keys()]
    rows = [torch.zeros(0, 0)]
    for writer in before if behind else ():
        writer.require("v", "o")
        cells = []
        for reader in behind:
            reader.require(*reads)
            steps = _find_steps(circuits, writer, reader, kind)
            if steps is None:
                cells.append(torch.full((writer.n_heads, reader.n_heads), torch.nan))
            else:
                cells.append(_score(writer, reader, kind, steps))
        rows.append(torch.cat(cells, dim=1))
    scores = torch.cat(rows[1:] or rows)
    if not bool(scores.isfinite().any()):
        raise TraceError("Composition needs a head that reads after one that writes; none does.")
    return Composition(
        kind=kind,
        writers=[(each.name, h) for each in before for h in range(each.n_heads)],
        readers=[(each.name, h) for each in behind for h in range(each.n_heads)],
        scores=scores,
        baseline=_measure_baseline(before[0], behind[-1], kind),
    )


def _find_steps(
    circuits: "Circuits", writer: SiteWeights, reader: SiteWeights, kind: CompositionKind
) -> list[Transform] | None:
    """What lies on the stream between a writer and a reader; None if it is not after it."""
    stack = "encoder" if reader.is_cross and kind != "q" else reader.stack
    if writer.stack != stack:
        return None
    steps = circuits.streams[stack]
    start = steps.index(writer.name)
    stop = len(steps) if stack != reader.stack else steps.index(reader.name)
    if stop <= start:
        return None
    return [step for step in steps[start:stop] if isinstance(step, Transform)]


def _score(
    writer: SiteWeights, reader: SiteWeights, kind: CompositionKind, steps: list[Transform]
) -> Float[Tensor, "N M"]:
    assert writer.o is not None
    o = carry(writer.o.double().mT, steps).mT  # n C E
    v = _of_heads(writer, writer.v).double()  # n E X
    near, far = _reading_pair(reader, kind)
    return _frobenius(near, far, o, v).float().cpu()


def _reading_pair(
    reader: SiteWeights, kind: CompositionKind
) -> tuple[Float[Tensor, "M D C"], Float[Tensor, "M D X"]]:
    """What a head does with the stream, farᵀ near: `near` is what it reads the writer with."""
    if kind == "v":
        assert reader.o is not None
        return _of_heads(reader, reader.v).double(), reader.o.double().mT
    q, k = reader.q.double(), _of_heads(reader, reader.k).double()
    return (q, k) if kind == "q" else (k, q)


def _frobenius(
    near: Float[Tensor, "M D C"],
    far: Float[Tensor, "M D X"],
    o: Float[Tensor, "N C E"],
    v: Float[Tensor, "N E Y"],
) -> Float[Tensor, "N M"]:
    """‖farᵀ near o v‖ / ‖farᵀ near‖ ‖o v‖, for all pairs of heads."""
    small = torch.einsum("mdc,nce->nmde", near, o)
    far_gram, v_gram = far @ far.mT, v @ v.mT
    whole = torch.einsum("nmde,mdf,nmfg,neg->nm", small, far_gram, small, v_gram)
    reading = ((near @ near.mT) * far_gram).sum((-1, -2))
    writing = ((o.mT @ o) * v_gram).sum((-1, -2))
    return (whole.clamp(min=0) / (reading * writing[:, None]).clamp(min=1e-300)).sqrt()


def _measure_baseline(writer: SiteWeights, reader: SiteWeights, kind: CompositionKind) -> float:
    """The score of random matrices of the same shapes."""
    generator = torch.Generator().manual_seed(0)
    assert writer.o is not None
    near, far = _reading_pair(reader, kind)
    shapes = near.shape[1:], far.shape[1:], writer.o.shape[1:], writer.v.shape[1:]
    found = []
    for _ in range(_DRAWS):
        drawn = [torch.randn(1, *s, generator=generator, dtype=torch.float64) for s in shapes]
        found.append(float(_frobenius(*drawn)))
    return sum(found) / len(found)


def _of_heads(site: SiteWeights, weight: Float[Tensor, "K D C"]) -> Float[Tensor, "H D C"]:
    return weight.repeat_interleave(site.n_heads // len(weight), dim=0)
