"""What interventions do to one call of attention: to its weights, and to the output of its heads.

Kernels compute the call as they would without interventions. Where weights are changed, the rows
and heads concerned are computed again from the operands; where heads are, their output is replaced
before the output matrix reads it. All other numbers stay the kernel's own, to the bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import InterventionError
from glassformer.functional import Bias, Explicit, Mask, attention
from glassformer.functional.cells import Extent
from glassformer.functional.masks import as_mask
from glassformer.tracing.interventions.numbers import resolve_numbers
from glassformer.tracing.interventions.values import (
    Ablate,
    Freeze,
    Intervention,
    Knockout,
    Patch,
    Scale,
    Swap,
)
from glassformer.tracing.mask_rules import MaskFormula
from glassformer.tracing.selection import select_heads, select_rows
from glassformer.tracing.site import Site
from glassformer.tracing.site_steps import Step, prepend_sink
from glassformer.tracing.trace import Trace

_MOST_ROWS = 1024  # whose weights are computed at a time
_MOST_CELLS = 1 << 24  # of a mask that a trace keeps


class Rows(NamedTuple):
    """Where the rows of a call lie in the text: `start` … `stop` − 1."""

    start: int
    stop: int
    is_cross: bool = False  # whether its keys are of another text

    def find(self, positions: Any, what: str = "positions") -> list[int]:
        """Which rows of the call these positions are; those of other calls are left out."""
        chosen = resolve_positions(positions, self.stop, what)
        return [i - self.start for i in chosen if i >= self.start]


def resolve_positions(positions: Any, stop: int, what: str) -> list[int]:
    """Positions of a text that has this many tokens so far; those still to come are left out."""
    if positions is None or isinstance(positions, slice):
        return resolve_numbers(positions, stop, what)
    chosen = [positions] if isinstance(positions, int) else list(positions)
    return resolve_numbers([i for i in chosen if i < stop], stop, what)


def edit_attention(
    edits: Sequence[Intervention],
    out: Float[Tensor, "B H L E"],
    rows: Rows,
    make_step: Callable[[], Step],
) -> tuple[Tensor, Step | None, str | None]:
    """The changed output; the changed step, where its weights change; why it has none."""
    step: Step | None = None
    reason = None
    out = out.clone(memory_format=torch.preserve_format)
    for edit in edits:
        if isinstance(edit, Knockout | Swap | Freeze):
            step = make_step() if step is None else step
            if isinstance(edit, Freeze):
                _freeze(edit, out, step, rows)
                reason = f"its weights are those of {edit}"
            elif isinstance(edit, Swap):
                b = resolve_numbers(edit.sequences, len(out), "sequences")
                step = _swap(edit, step)
                h, r = (list(range(n)) for n in out.shape[1:3])
                _put(out, b, h, r, _attend(step, None, None)[b])
                if len(b) < len(out):
                    reason = f"only some of its sequences are changed by {edit}"
            else:
                step = _knock_out(edit, out, step, rows)
    for edit in edits:  # weights first, then what the heads read by them
        if isinstance(edit, Ablate | Patch):
            _replace_heads(edit, out, rows)
    for edit in edits:
        if isinstance(edit, Scale):
            b, h, r = _select(edit, out, rows)
            _put(out, b, h, r, out[b][:, h][:, :, r] * edit.factor)
    return out, step, reason


def _select(edit: Any, out: Tensor, rows: Rows, positions: Any = ...) -> tuple[list[int], ...]:
    chosen = edit.positions if positions is ... else positions
    return (
        resolve_numbers(edit.sequences, len(out), "sequences"),
        resolve_numbers(edit.head, out.shape[1], f"Heads of {edit.place}"),
        rows.find(chosen),
    )


def _put(out: Tensor, b: list[int], h: list[int], r: list[int], values: Tensor) -> None:
    """Write these values at these sequences, heads and rows."""
    if b and r:
        at = [torch.tensor(numbers, device=out.device) for numbers in (b, h, r)]
        out[at[0][:, None, None], at[1][:, None], at[2]] = values.to(out.dtype)


def _replace_heads(edit: Ablate | Patch, out: Tensor, rows: Rows) -> None:
    b, h, r = _select(edit, out, rows)
    if not r:
        return
    if isinstance(edit, Patch):
        values = read_heads(edit.trace, edit.place, out, b, h, [i + rows.start for i in r])
    elif edit.how == "zero":
        values = out.new_zeros(())
    else:
        values = replace_by_others(edit, out.transpose(1, 2), rows, r, _read_site_outputs)
        values = values.expand(len(out), len(r), -1, -1)[b].transpose(1, 2)[:, h]
    _put(out, b, h, r, values)


def replace_by_others(
    edit: Ablate,
    values: Float[Tensor, "B L *X"],
    rows: Rows,
    r: list[int],
    read: Callable[[Trace, str], Tensor],
) -> Tensor:
    """The mean of all positions, (1, 1, …), or the values at other positions, (B, R, …)."""
    if edit.of is not None:
        others = read(edit.of, edit.place).to(values)[:, edit.skip :]
        if not others.shape[1]:
            raise InterventionError(f"{edit} skips all positions of the trace that it names.")
        if others.shape[2:] != values.shape[2:]:
            raise _other_model(edit.place, others.shape[2:], values.shape[2:])
    elif rows.start:
        raise InterventionError(
            f"{edit} needs all positions at once, and generation has one at a time. Record a trace "
            "first, and name it by of=trace."
        )
    else:
        others = values
    if edit.how == "mean":
        return others.mean(dim=(0, 1), keepdim=True)
    generator = torch.Generator().manual_seed(edit.seed)
    flat = others.flatten(0, 1)
    drawn = torch.randint(len(flat), (len(values), len(r)), generator=generator)
    return flat[drawn.to(flat.device)]


def _read_site_outputs(trace: Trace, name: str) -> Tensor:
    return site_outputs(trace[name]).transpose(1, 2)


def read_heads(
    trace: Trace, name: str, like: Tensor, b: list[int], h: list[int], positions: list[int]
) -> Float[Tensor, "b h r E"]:
    """What these heads read at these positions in another run."""
    site = trace[name]
    if (
        site.heads is not None
        or site.n_heads != like.shape[1]
        or site.v.shape[-1] != like.shape[-1]
    ):
        raise _other_model(name, (site.n_heads, site.v.shape[-1]), (like.shape[1], like.shape[-1]))
    values = site_outputs(site, h, find_rows(site.rows, site.shape[2], positions, name))
    return choose_sequences(values, b, len(like), name).to(like.device)


def site_outputs(
    site: Site, heads: list[int] | None = None, rows: list[int] | None = None
) -> Float[Tensor, "B h r E"]:
    """Σ α v of some heads and rows of a recorded site; computed once for all of them."""
    out = site.out if site.out is not None else site.head_outputs()
    out = out if heads is None else out[:, heads]
    return out if rows is None else out[:, :, rows]


def find_rows(
    kept: tuple[int, ...] | None, n_rows: int, positions: list[int], name: str
) -> list[int]:
    """Where a recording keeps these positions."""
    known = {p: i for i, p in enumerate(range(n_rows) if kept is None else kept)}
    if missing := [p for p in positions if p not in known]:
        raise InterventionError(
            f"The trace to patch {name} from must have the positions that are patched; it has "
            f"{len(known)} and lacks {missing[0]}. Use texts of one length, or name positions."
        )
    return [known[p] for p in positions]


def choose_sequences(values: Tensor, b: list[int], n: int, name: str) -> Tensor:
    """The sequences of another trace that go with those of a batch of n: each its own, or one."""
    if len(values) == 1:
        return values.expand(len(b), *values.shape[1:])
    if len(values) != n:
        raise InterventionError(
            f"The trace for {name} must have one sequence, or as many as the batch, {n}; it has "
            f"{len(values)}."
        )
    return values[b]


def _other_model(name: str, theirs: Sequence[int], ours: Sequence[int]) -> InterventionError:
    shapes = (" × ".join(map(str, each)) for each in (ours, theirs))
    return InterventionError(
        "The trace must be of the same model; at {} this one has {} numbers at a position, the "
        "trace {}.".format(name, *shapes)
    )


def _knock_out(edit: Knockout, out: Tensor, step: Step, rows: Rows) -> Step:
    b, h, r = _select(edit, out, rows, edit.queries)
    n_sink = int(step.sink is not None)
    # A sliding window's cache holds the last keys alone.
    first = 0 if rows.is_cross else max(0, rows.stop - step.S)
    keys = resolve_positions(edit.keys, step.S + first, "keys")
    columns = [key - first + n_sink for key in keys if key >= first]
    if not b or not r or not columns:
        return step
    for i in range(0, len(r), _MOST_ROWS):
        some = r[i : i + _MOST_ROWS]
        is_open = torch.ones(1, 1, len(some), step.S + n_sink, dtype=torch.bool, device=out.device)
        is_open[..., columns] = False
        _put(out, b, h, some, _attend(step, h, some, also=Explicit(is_open))[b])
    return _cut_mask(step, b, h, r, columns, out.shape)


def _cut_mask(
    step: Step, b: list[int], h: list[int], r: list[int], columns: list[int], shape: torch.Size
) -> Step:
    """The step with these cells closed in its mask, so that a trace shows what was computed."""
    n_sink = int(step.sink is not None)
    B, H, L = shape[:3]
    if B * H * L * step.S > _MOST_CELLS:
        raise InterventionError(
            f"its mask of {B} × {H} × {L} × {step.S} cells was changed, and is too large to keep"
        )
    device = step.q.device
    at = [torch.tensor(numbers, device=device) for numbers in (b, h, r, columns)]
    is_open = torch.ones(B, H, L, step.S + n_sink, dtype=torch.bool, device=device)
    is_open[at[0][:, None, None, None], at[1][:, None, None], at[2][:, None], at[3]] = False
    known = step.rule.mask(B=B, has_sink=step.sink is not None)
    whole = Explicit(is_open) if known is None else known & Explicit(is_open)
    return replace(step, rule=MaskFormula(L=step.L, S=step.S, formula=whole), lse=None)


def _swap(edit: Swap, step: Step) -> Step:
    given = dict(edit.given)
    if "mask" in given:
        mask = given.pop("mask")
        formula = None if mask is None else as_mask(mask).to(step.q.device)
        given["rule"] = MaskFormula(L=step.L, S=step.S, formula=formula)
    if isinstance(given.get("bias"), Bias):
        given["bias"] = given["bias"].to(step.q.device)
    return replace(step, **given, lse=None)


def _freeze(edit: Freeze, out: Tensor, step: Step, rows: Rows) -> None:
    assert step.v is not None
    b, h, r = _select(edit, out, rows)
    group = out.shape[1] // step.v.shape[1]
    v = prepend_sink(step.v, step.sink, dim=2)[:, [i // group for i in h]]
    for i in range(0, len(r), _MOST_ROWS):
        chosen = r[i : i + _MOST_ROWS]
        weights = _read_weights(edit, out, h, [i + rows.start for i in chosen], v.shape[2])
        weights = choose_sequences(weights, b, len(out), edit.place)
        _put(out, b, h, chosen, weights.to(v) @ v[b])


def _read_weights(
    edit: Freeze, out: Tensor, h: list[int], positions: list[int], S: int
) -> Float[Tensor, "B h r S"]:
    given = edit.weights
    if isinstance(given, Trace):
        site = given[edit.place]
        at = find_rows(site.rows, site.shape[2], positions, edit.place)
        weights = torch.stack([site.weights(rows=at, sequence=i)[h] for i in range(len(site.q))])
    else:
        four = given.view((1,) * (4 - given.ndim) + given.shape)
        heads = h if four.shape[1] > 1 else [0]
        if max(heads) >= four.shape[1] or (positions and positions[-1] >= four.shape[2]):
            raise InterventionError(
                f"Weights for {edit.place} must have {out.shape[1]} heads or one, and a row for "
                f"each query; got {' × '.join(map(str, given.shape))}."
            )
        weights = four[:, heads][:, :, positions].expand(-1, len(h), -1, -1)
    if weights.shape[-1] != S:
        raise InterventionError(
            f"Weights for {edit.place} must have a column for each of {S} keys; got "
            f"{weights.shape[-1]}."
        )
    return weights


def _attend(
    step: Step, heads: list[int] | None, rows: list[int] | None, also: Mask | None = None
) -> Float[Tensor, "B h r E"]:
    """A step computed again, for some heads and rows, under one more mask for these rows."""
    assert step.k is not None and step.v is not None
    k, v = (prepend_sink(t, step.sink, dim=2) for t in (step.k, step.v))
    return _attend_rows(step.q, k, v, step.options(), heads, rows, also)


def _attend_rows(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    options: dict[str, Any],
    heads: list[int] | None,
    rows: list[int] | None,
    also: Mask | None = None,
) -> Tensor:
    extent = Extent(len(q), q.shape[1], q.shape[2], k.shape[2])
    options = dict(options)
    if rows is not None:
        at = torch.tensor(rows, dtype=torch.long, device=q.device)
        for name in ("mask", "bias"):
            options[name] = select_rows(options[name], at, extent)
        q = q[:, :, rows]
    if heads is not None and len(heads) < q.shape[1]:
        group = q.shape[1] // k.shape[1]
        read = [h // group for h in heads]
        for name in ("mask", "bias"):
            options[name] = select_heads(options[name], tuple(heads))
        q, k, v = q[:, heads], k[:, read], v[:, read]
    if also is not None:
        options["mask"] = also if options["mask"] is None else options["mask"] & also
    return attention(q, k, v, **options)
