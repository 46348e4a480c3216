"""Sweeps: the same patch at every place, and how much of the answer it brings back.

Activation patching (Vig et al. 2020, Meng et al. 2022): a model reads a corrupted text, and one
place at a time is given what it was in the clean run. Where the answer returns, that place carried
what the corruption had taken away. 0 is the corrupted run, 1 the clean one; effects do not add up.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.analysis.attribution_patching import estimate_changes
from glassformer.analysis.lens import label_tokens
from glassformer.analysis.path_patching import Paths
from glassformer.analysis.sweep_file import SweepFile, count_done, describe_run
from glassformer.analysis.sweep_places import Cell, Edge, Over, Places, list_places
from glassformer.analysis.sweep_result import Method, Sweep
from glassformer.analysis.vocabulary import resolve_token
from glassformer.errors import InterventionError
from glassformer.text import Tokenizer
from glassformer.tracing import Patch, Trace, watch
from glassformer.tracing.readout import Readout
from glassformer.tracing.variants import Variants

Metric = Callable[[Float[Tensor, "N V"]], Float[Tensor, " N"]]
Text = str | Tensor | Trace
Report = Callable[[int, int], None]  # how many of how many places are done


def sweep(
    model: nn.Module,
    clean: Text,
    corrupted: Text,
    *,
    over: Over = "heads",
    metric: Metric | tuple[int | str, int | str],
    method: Method = "patch",
    tokenizer: Any = None,
    stack: str | None = None,
    position: int = -1,
    senders: Sequence[str] | None = None,
    receivers: Sequence[str] | None = None,
    batch: int = 16,
    resume: str | Path | None = None,
    report: Report | None = None,
) -> Sweep:
    """Patch every place of the corrupted run with what it was in the clean one.

    Texts of the same number of tokens; `metric` is a pair of tokens whose logits are subtracted, or
    a function of the logits (N, V) at `position`. Each pass runs `batch` patches side by side, from
    the layer that they change on.

    method="gradient" estimates every patch from one forward and one backward pass (attribution
    patching); "both" also says how far that is off. over="edges" patches the direct path from a
    head or a part to a later part or to the logits, all others frozen (path patching); `senders`
    and `receivers` name some of them. `resume` is a file that keeps what is done, so that a sweep
    that was interrupted continues there.

    >>> import glassformer as gf
    >>> model = gf.load("writer")
    >>> found = gf.sweep(model, "The old man sat", "The old men sat", over="parts",
    ...                  metric=(" down", " up"), method="both")
    >>> found.values.shape
    torch.Size([10, 1])
    >>> found.agreement.correlation > 0.5
    True
    """
    _check_options(over, method, batch, resume)
    if over != "edges" and (senders is not None or receivers is not None):
        raise InterventionError(f"senders and receivers are of over='edges'; got over={over!r}.")
    before, after = (_as_trace(model, text, tokenizer) for text in (clean, corrupted))
    readout = _check_traces(before, after, stack, position)
    measure = _Measure.of(metric, readout, after.residual(stack).end, position)
    start, goal = (float(measure(each.residual(stack).end)) for each in (after, before))
    if start == goal:
        raise InterventionError(
            f"The clean and the corrupted run must differ in {measure.name}; both give {goal:.4g}."
        )
    with Variants(after, stack=stack) as variants:
        paths = Paths(variants, before) if over == "edges" else None
        if paths is None:
            places = list_places(before, stack, over)
        else:
            places = paths.list_places(senders, receivers)
        nothing = torch.full(
            (len(places.rows), len(places.columns)), float("nan"), dtype=torch.float64
        )
        found = Sweep(
            over=over,
            measured=measure.name,
            rows=places.rows,
            columns=places.columns,
            values=nothing,
            clean=goal,
            corrupted=start,
            method=method,
            model=after.model,
        )
        if method != "patch":
            estimates = _estimate(variants, before, places, measure, found)
            if method == "gradient":
                return replace(found, values=estimates)
            found = replace(found, estimates=estimates)
        file = None
        if resume is not None:
            file = SweepFile(resume, describe_run(variants, before, position))
            found = replace(found, values=file.read(found))
        _run_cells(variants, paths, places.cells, measure, found, batch, report, file)
    return found


def _run_cells(
    variants: Variants,
    paths: Paths | None,
    cells: list[Cell],
    measure: "_Measure",
    found: Sweep,
    batch: int,
    report: Report | None,
    file: SweepFile | None,
) -> None:
    """Run every change that has no value yet, and write the metric into the values."""
    todo = [cell for cell in cells if found.values[cell.row, cell.column].isnan()]
    done = count_done(found.values)
    is_finished = False
    try:
        for _, group in groupby(todo, key=lambda cell: cell.group):
            # Side by side run those of one position: tokens before it are not read again.
            for some in _split(sorted(group, key=lambda cell: cell.column), batch):
                changes = [cell.change for cell in some]
                if paths is None:
                    ends = variants.run([each for each in changes if isinstance(each, Patch)])
                else:
                    ends = paths.run([each for each in changes if isinstance(each, Edge)])
                for cell, value in zip(some, measure(ends), strict=True):
                    found.values[cell.row, cell.column] = value
                done += len(some)
                if file is not None:
                    file.write(found)
                if report is not None:
                    report(done, len(cells))
        is_finished = True
    finally:  # also when it is interrupted
        if file is not None and (todo or not file.path.exists()):
            file.write(found, is_finished=is_finished, is_last=True)


def _estimate(
    variants: Variants, clean: Trace, places: Places, measure: "_Measure", found: Sweep
) -> Float[Tensor, "R C"]:
    patches = [cell.change for cell in places.cells if isinstance(cell.change, Patch)]
    changes = estimate_changes(variants, clean, patches, measure.differentiate)
    values = found.values.clone()
    for cell, change in zip(places.cells, changes, strict=True):
        values[cell.row, cell.column] = found.corrupted + change
    return values


def _check_options(over: Any, method: Any, batch: int, resume: Any) -> None:
    if over not in get_args(Over):
        raise InterventionError(f"over must be one of {', '.join(get_args(Over))}; got {over!r}.")
    if method not in get_args(Method):
        known = ", ".join(get_args(Method))
        raise InterventionError(f"method must be one of {known}; got {method!r}.")
    if over == "edges" and method != "patch":
        raise InterventionError(f"Edges are patched alone; got method={method!r}.")
    if method == "gradient" and resume is not None:
        raise InterventionError("Gradients are one pass, with nothing to resume; got resume=.")
    if batch < 1:
        raise InterventionError(f"batch must be at least 1; got batch={batch}.")


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


@dataclass(eq=False, frozen=True)
class _Measure:
    """The metric of an end of the stream."""

    metric: Metric
    name: str
    readout: Readout
    position: int

    @classmethod
    def of(
        cls,
        metric: Metric | tuple[int | str, int | str],
        readout: Readout,
        end: Float[Tensor, "1 L C"],
        position: int,
    ) -> "_Measure":
        if callable(metric):
            return cls(metric, getattr(metric, "__name__", "the metric"), readout, position)
        try:
            answer, other = metric
        except (TypeError, ValueError):
            raise InterventionError(
                f"A metric must be two tokens, or a function of logits; got {metric!r}."
            ) from None
        n_tokens = readout(end[:, :1]).shape[-1]
        a, b = (resolve_token(token, n_tokens, readout.vocabulary) for token in (answer, other))
        named = label_tokens(readout, [a, b])
        name = f"logit {named[0]!r} − {named[1]!r}"
        return cls(lambda logits: logits[:, a] - logits[:, b], name, readout, position)

    def __call__(self, ends: Float[Tensor, "N L C"]) -> Float[Tensor, " N"]:
        with torch.no_grad():
            return self.differentiate(ends).double().cpu()

    def differentiate(self, ends: Float[Tensor, "N L C"]) -> Float[Tensor, " N"]:
        """The same, with its graph of gradients."""
        values = self.metric(self.readout.scores(ends[:, [self.position]])[:, 0])
        if values.shape != (len(ends),) or not values.isfinite().all():
            raise InterventionError(
                f"A metric must be one finite number for each of {len(ends)} rows of logits; got "
                f"{tuple(values.shape)} with {int((~values.isfinite()).sum())} not finite."
            )
        return values


def _split(cells: list[Cell], n: int) -> Iterator[list[Cell]]:
    for i in range(0, len(cells), n):
        yield cells[i : i + n]
