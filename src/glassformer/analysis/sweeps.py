"""Sweeps: the same patch at every place, and how much of the answer it brings back.

Activation patching (Vig et al. 2020, Meng et al. 2022): a model reads a corrupted text, and one
place at a time is given what it was in the clean run. Where the answer returns, that place carried
what the corruption had taken away. 0 is the corrupted run, 1 the clean one; effects do not add up.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.analysis.drawings import drawing_module
from glassformer.analysis.head_roles import Role
from glassformer.analysis.lens import label_tokens, name_positions
from glassformer.analysis.vocabulary import resolve_token
from glassformer.errors import InterventionError, TraceError
from glassformer.text import Tokenizer
from glassformer.tracing import Patch, Trace, watch
from glassformer.tracing.readout import Readout
from glassformer.tracing.variants import Variants

Over = Literal["heads", "heads × positions", "parts", "parts × positions", "borders × positions"]
Metric = Callable[[Float[Tensor, "N V"]], Float[Tensor, " N"]]
Text = str | Tensor | Trace
Report = Callable[[int, int], None]  # how many of how many places are done


class _Cell(NamedTuple):
    """One place that is patched, and where its effect is shown."""

    patch: Patch
    row: int
    column: int


@dataclass(eq=False, frozen=True, kw_only=True)
class Sweep:
    """What each patch brings back of the answer: 0 nothing, 1 all of it."""

    over: Over
    measured: str  # what the metric is
    rows: list[str]  # sites, heads, parts or borders
    columns: list[str]  # heads, positions, or the one column "all"
    values: Float[Tensor, "R C"]  # of the metric; NaN where there is no such place
    clean: float
    corrupted: float
    model: dict[str, Any] = field(default_factory=dict)  # what the trace says of it

    @property
    def effects(self) -> Float[Tensor, "R C"]:
        """The share of the way from the corrupted to the clean value."""
        return (self.values - self.corrupted) / (self.clean - self.corrupted)

    def top(self, n: int = 10) -> list[tuple[str, str, float]]:
        """The largest effects, by size: row, column, effect."""
        effects = self.effects.nan_to_num(0.0)
        chosen = effects.abs().flatten().argsort(descending=True)[:n].tolist()
        at = [divmod(i, len(self.columns)) for i in chosen]
        return [(self.rows[i], self.columns[j], float(effects[i, j])) for i, j in at]

    def figure(self, path: str | Path, *, roles: Iterable[Role] = ()) -> None:
        """Write the effects, PNG, SVG or PDF; beside them the `roles` of heads, if given."""
        drawing_module().sweep_figure(self, path, roles=roles)

    def page(self, path: str | Path, *, roles: Iterable[Role] = ()) -> None:
        """Write one HTML file with the effects; it tells the numbers of every cell."""
        drawing_module().sweep_page(self, path, roles=roles)

    def __str__(self) -> str:
        lines = [
            f"patching {self.over}: {self.measured} is {self.clean:.3f} in the clean run, "
            f"{self.corrupted:.3f} in the corrupted one"
        ]
        lines += [f"  {effect:+7.1%}  {row}  {column}" for row, column, effect in self.top()]
        return "\n".join(lines)

    __repr__ = __str__


def sweep(
    model: nn.Module,
    clean: Text,
    corrupted: Text,
    *,
    over: Over = "heads",
    metric: Metric | tuple[int | str, int | str],
    tokenizer: Any = None,
    stack: str | None = None,
    position: int = -1,
    batch: int = 16,
    report: Report | None = None,
) -> Sweep:
    """Patch every place of the corrupted run with what it was in the clean one.

    Texts of the same number of tokens; `metric` is a pair of tokens whose logits are subtracted, or
    a function of the logits (N, V) at `position`. Each pass runs `batch` patches side by side, from
    the layer that they change on.

    >>> import glassformer as gf
    >>> model = gf.load("writer")
    >>> found = gf.sweep(model, "The old man sat", "The old men sat", over="parts",
    ...                  metric=(" down", " up"))
    >>> found.values.shape
    torch.Size([10, 1])
    """
    if over not in get_args(Over):
        raise InterventionError(f"over must be one of {', '.join(get_args(Over))}; got {over!r}.")
    if batch < 1:
        raise InterventionError(f"batch must be at least 1; got batch={batch}.")
    before, after = (_as_trace(model, text, tokenizer) for text in (clean, corrupted))
    readout = _check_traces(before, after, stack, position)
    n_tokens = readout(after.residual(stack).end[:, :1]).shape[-1]
    measure, measured = _as_metric(metric, readout, n_tokens)

    def score(ends: Float[Tensor, "N L C"]) -> Float[Tensor, " N"]:
        values = measure(readout(ends[:, [position]])[:, 0]).double().cpu()
        if values.shape != (len(ends),) or not values.isfinite().all():
            raise InterventionError(
                f"A metric must be one finite number for each of {len(ends)} rows of logits; got "
                f"{tuple(values.shape)} with {int((~values.isfinite()).sum())} not finite."
            )
        return values

    start, goal = (float(score(each.residual(stack).end)) for each in (after, before))
    if start == goal:
        raise InterventionError(
            f"The clean and the corrupted run must differ in {measured}; both give {goal:.4g}."
        )
    rows, columns, cells = _list_cells(before, stack, over)
    values = torch.full((len(rows), len(columns)), float("nan"), dtype=torch.float64)
    done = 0
    with Variants(after, stack=stack) as variants:
        for _, layer in groupby(cells, key=lambda cell: cell.patch.layer):
            for some in _split(list(layer), batch):
                found = score(variants.run([cell.patch for cell in some]))
                for cell, value in zip(some, found, strict=True):
                    values[cell.row, cell.column] = value
                done += len(some)
                if report is not None:
                    report(done, len(cells))
    return Sweep(
        over=over,
        measured=measured,
        rows=rows,
        columns=columns,
        values=values,
        clean=goal,
        corrupted=start,
        model=after.model,
    )


def _as_trace(model: nn.Module, text: Text, tokenizer: Any) -> Trace:
    if isinstance(text, Trace):
        return text
    tokenizer = tokenizer or getattr(model, "tokenizer", None)
    tokens = _encode(tokenizer, text) if isinstance(text, str) else text
    with torch.no_grad(), watch(model, tokenizer, residual=True) as trace:
        model(tokens.to(next(model.parameters()).device))
    return trace


def _encode(tokenizer: Any, text: str) -> Int[Tensor, "1 L"]:
    if tokenizer is None:
        raise InterventionError(f"A text needs a tokenizer; got {text!r} alone.")
    if isinstance(tokenizer, Tokenizer):
        return torch.tensor([tokenizer.encode(text)])
    return tokenizer(text, return_tensors="pt")["input_ids"]


def _check_traces(clean: Trace, corrupted: Trace, stack: str | None, position: int) -> Readout:
    streams = [trace.residual(stack) for trace in (clean, corrupted)]
    lengths = [tuple(stream.start.shape[:2]) for stream in streams]
    if lengths[0] != lengths[1] or lengths[0][0] != 1:
        shown = " and ".join(f"{B} × {L}" for B, L in lengths)
        raise InterventionError(
            f"The clean and the corrupted text must be one sequence each, of the same number of "
            f"tokens; got {shown}."
        )
    L = lengths[0][1]
    if not -L <= position < L:
        raise InterventionError(f"There are {L} positions; got position={position}.")
    return streams[1].require_readout()


def _as_metric(
    metric: Metric | tuple[int | str, int | str], readout: Readout, n_tokens: int
) -> tuple[Metric, str]:
    if callable(metric):
        return metric, getattr(metric, "__name__", "the metric")
    try:
        answer, other = metric
    except (TypeError, ValueError):
        raise InterventionError(
            f"A metric must be two tokens, or a function of logits; got {metric!r}."
        ) from None
    a, b = (resolve_token(token, n_tokens, readout.tokenizer) for token in (answer, other))
    named = label_tokens(readout, [a, b])
    return lambda logits: logits[:, a] - logits[:, b], f"logit {named[0]!r} − {named[1]!r}"


def _list_cells(
    clean: Trace, stack: str | None, over: Over
) -> tuple[list[str], list[str], list[_Cell]]:
    """Every place, in the order of its layers."""
    stream = clean.residual(stack)
    positions = name_positions(clean, stream, 0)
    kind, _, by = over.partition(" × ")
    each: list[tuple[str, dict[str, Any]]] = []  # the name of a row, and what is patched there
    if kind == "heads":
        sites = [clean[p.site] for p in stream.parts if p.site in clean.run.sites]
        if not sites:
            raise TraceError(f"No attention of {stream.name} was recorded whose heads are known.")
        for site in sites:
            each += [
                (f"{site.name}.{h}", {"place": site.name, "head": h}) for h in range(site.n_heads)
            ]
    elif kind == "parts":
        each = [(part.name, {"place": part.name}) for part in stream.parts]
    else:
        each = [(name, {"place": name, "what": "state"}) for name in stream.states_of_model()]
    if by:
        cells = [
            _Cell(Patch(trace=clean, positions=[j], **what), i, j)
            for i, (_, what) in enumerate(each)
            for j in range(len(positions))
        ]
        columns = [f"{j} {label}" for j, label in enumerate(positions)]
        return [name for name, _ in each], columns, cells
    if kind == "heads":
        rows = list(dict.fromkeys(str(what["place"]) for _, what in each))
        n = max(int(what["head"]) for _, what in each) + 1
        cells = [
            _Cell(Patch(trace=clean, **what), rows.index(str(what["place"])), int(what["head"]))
            for _, what in each
        ]
        return rows, [str(h) for h in range(n)], cells
    cells = [_Cell(Patch(trace=clean, **what), i, 0) for i, (_, what) in enumerate(each)]
    return [name for name, _ in each], ["all"], cells


def _split(cells: list[_Cell], n: int) -> Iterator[list[_Cell]]:
    for i in range(0, len(cells), n):
        yield cells[i : i + n]
