"""Two runs of one model on one text: where they part first, how that grows, what it changes."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from glassformer.analysis.bisection.aligned_runs import AlignedRuns
from glassformer.analysis.bisection.changed_token import ChangedToken, find_changed_token
from glassformer.analysis.bisection.compared_cell import ComparedCell, find_cell
from glassformer.analysis.bisection.kernels import find_kernel_kind
from glassformer.analysis.bisection.kinds import Kind, find_kind
from glassformer.analysis.bisection.linear_maps import find_other_layer
from glassformer.analysis.bisection.measures import measure
from glassformer.analysis.bisection.stages import Operand, Stage, walk
from glassformer.analysis.bisection.token_shift import find_token_shift
from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.tracing.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What differs first, by itself: everything that it was computed from is the same."""

    name: str  # of the site, the part or the stack
    layer: int | None
    operands: tuple[Operand, ...]
    apart: dict[Operand, float]  # ‖b − a‖ / ‖a‖
    kinds: dict[Operand, Kind]  # where the numbers tell what kind of difference it is
    heads: tuple[int, ...] | None = None  # None: all of them
    positions: tuple[int, ...] | None = None  # that differ; None: all
    is_first: bool = False  # of a kernel: it is the first trace whose output is not exact

    @property
    def kind(self) -> Kind | None:
        """The kind that all of its operands share."""
        found = [self.kinds.get(operand) for operand in self.operands]
        first = found[0]
        return first if first and all(k and k.name == first.name for k in found) else None


@dataclass(kw_only=True)
class LayerDifference:
    """How far the runs are apart in one layer, of the size of the first; None: not recorded."""

    name: str
    apart: dict[str, float] = field(default_factory=dict)  # by operand; "stream": before it
    kernel: float | None = None  # of the second output: what its own operands do not give
    operands: float | None = None  # of the second output: what the other operands do


@dataclass(frozen=True, eq=False, kw_only=True)
class Bisection:
    """Where two runs part: `str` says it in a few sentences."""

    origin: Origin | None  # None: nothing differs beyond rounding
    layers: tuple[LayerDifference, ...]
    token: ChangedToken | None  # None: the same tokens, or none recorded
    cell: ComparedCell | None  # the weight that changes most, in the first site that changes
    n_tokens: int | None  # that the texts share
    largest: float  # the largest difference of an operand
    dtypes: tuple[str, str]
    has_stream: bool
    has_outputs: bool

    def verdict(self, language: Language | None = None) -> str:
        """What was found, in sentences (English unless another language is given)."""
        from glassformer.analysis.bisection.sentences import tell_bisection

        return tell_bisection(self, language or Language("en"))

    def __str__(self) -> str:
        return self.verdict()


def bisect(
    first: Trace,
    second: Trace,
    *,
    sequence: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Bisection:
    """Find what makes the second of two runs of a model on one text differ from the first.

    The operands are compared in the order in which they are computed. Record both runs with
    `gf.watch(model, outputs=True, residual=True)`: without outputs, kernels are not judged;
    without the stream, nothing between two sites of attention is.

    >>> import torch
    >>> from glassformer.tracing import Run, record
    >>> q, k, v = torch.randn(3, 1, 2, 5, 4).unbind(0)
    >>> a, b = (Trace([Run({"layer.0.self": record(q, k, v, scale=s)})]) for s in (0.5, 0.25))
    >>> bisect(a, b).origin.operands
    ('scale',)
    """
    runs = AlignedRuns(first.run, second.run, sequence)
    n_tokens = runs.common_length("tokens")
    if n_tokens == 0 or not any(runs.pair(name) for name in runs.first.sites):
        raise TraceError(
            "Two runs are bisected on the same text by the same model; these share "
            + ("no token at their beginning." if n_tokens == 0 else "no site of one size.")
        )
    layers: dict[str, LayerDifference] = {}
    level: list[Stage] = []
    is_complete = False
    largest = 0.0
    n_sites, seen = len(runs.first.sites), set[str]()
    for stage in walk(runs):
        if progress is not None and stage.pair is not None and stage.name not in seen:
            seen.add(stage.name)
            progress(len(seen) / n_sites)
        _note(layers, stage)
        if stage.operand != "out":
            largest = max(largest, stage.apart.worst)
        if level and not _is_level(level[0], stage):
            is_complete = True
        if stage.differs and not is_complete:
            level.append(stage)
    origin = _describe(runs, level) if level else None
    return Bisection(
        origin=origin,
        layers=tuple(layers.values()),
        token=find_changed_token(runs),
        cell=find_cell(runs, origin.name if origin else None),
        n_tokens=n_tokens,
        largest=largest,
        dtypes=(_name(runs.dtypes[0]), _name(runs.dtypes[1])),
        has_stream=bool(runs.first.streams.keys() & runs.second.streams.keys()),
        has_outputs=any(layer.kernel is not None for layer in layers.values()),
    )


def _is_level(first: Stage, stage: Stage) -> bool:
    """Whether both were computed from the same: operands and settings of one site."""
    is_site = first.name == stage.name and first.pair is not None
    return is_site and first.operand != "out" and stage.operand != "out"


def _describe(runs: AlignedRuns, level: list[Stage]) -> Origin:
    first = level[0]
    kinds: dict[Operand, Kind] = {}
    for stage in level:
        kind = _find_kind(runs, stage)
        if kind is not None:
            kinds[stage.operand] = kind
    other = next((kind for kind in kinds.values() if kind.name == "other layer"), None)
    if other is not None:  # then queries and keys are the other layer's as well
        kinds = {stage.operand: other for stage in level}
    heads, positions = first.differing()
    n_heads = 1 if first.a is None else len(first.a)
    return Origin(
        name=first.name,
        layer=first.layer,
        operands=tuple(stage.operand for stage in level),
        apart={stage.operand: stage.apart.whole for stage in level},
        kinds=kinds,
        heads=None if len(heads) == n_heads or first.pair is None else tuple(heads),
        positions=None if len(positions) >= len(first.positions) else tuple(positions),
        is_first=first.is_first,
    )


def _find_kind(runs: AlignedRuns, stage: Stage) -> Kind | None:
    if stage.operand == "out":
        return find_kernel_kind(stage) or find_kind(stage)
    kind = find_kind(stage)
    if kind is None and stage.operand == "start":
        kind = find_token_shift(runs, stage)
    return kind or find_other_layer(runs, stage)


def _note(layers: dict[str, LayerDifference], stage: Stage) -> None:
    """Collect the numbers of a stage into the line of its layer."""
    stack = stage.name.split(".")[0]
    name = stack if stage.layer is None else f"{stack}.{stage.layer}"
    line = layers.setdefault(name, LayerDifference(name=name))
    if stage.stream is not None:
        line.apart.setdefault("stream", stage.stream)
    if stage.operand != "out":
        line.apart[stage.operand] = max(line.apart.get(stage.operand, 0.0), stage.apart.whole)
        return
    if stage.is_first or stage.pair is None:
        return
    outs, exact = stage.pair.operands("out"), stage.pair.exact
    size = float(outs[0].norm().clamp(min=1e-30))
    line.apart["out"] = measure(*outs).whole
    line.kernel = float((outs[1] - exact[1]).norm()) / size
    line.operands = float((exact[1] - exact[0]).norm()) / size


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
