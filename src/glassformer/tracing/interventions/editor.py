"""The interventions of one context, by the place where they apply, and whether they did."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import InterventionError
from glassformer.tracing.interventions.attention_edits import (
    Rows,
    choose_sequences,
    edit_attention,
    find_rows,
    replace_by_others,
)
from glassformer.tracing.interventions.numbers import resolve_numbers
from glassformer.tracing.interventions.probes import Probe, Put
from glassformer.tracing.interventions.values import (
    Ablate,
    Changes,
    Freeze,
    Intervention,
    Knockout,
    Patch,
    Scale,
    Skip,
    Steer,
    Swap,
)
from glassformer.tracing.layout import Place
from glassformer.tracing.site_steps import Step
from glassformer.tracing.trace import Trace

_OF_SITES = (Knockout, Freeze, Swap)


class Editor:
    """Applies interventions where the model computes what they change."""

    def __init__(self, changes: Changes) -> None:
        self.changes = changes
        self.applied: set[Intervention] = set()
        self.site_names: Sequence[str] = ()  # of the model, once it is attached to one
        self.n_blocks: dict[str, int] = {}  # of each stack; 0: one module may be many layers

    def begin(self, changes: Changes) -> None:
        """Apply these from the next pass on, in place of those before."""
        self.changes, self.applied = changes, set()
        self.check_places(self.site_names, self.n_blocks)

    def check_places(self, site_names: Sequence[str], n_blocks: dict[str, int]) -> None:
        """Reject places that the model does not have, before anything runs."""
        self.site_names, self.n_blocks = site_names, n_blocks
        for edit in self.changes:
            stack, layer = edit.layer
            if stack not in n_blocks:
                raise InterventionError(
                    f"The stacks of this model are {', '.join(n_blocks)}; got {edit.place!r}."
                )
            if layer >= n_blocks[stack] > 0:
                raise InterventionError(
                    f"This model has {stack}.0 … {stack}.{n_blocks[stack] - 1}; got {edit.place!r}."
                )
            is_shared = not n_blocks[stack] and layer > 0  # its sites are named as they run
            if changes_site(edit) and edit.place not in site_names and not is_shared:
                near = [n for n in site_names if n.startswith(f"{stack}.{layer}.")] or site_names
                raise InterventionError(
                    f"{edit} needs a site of attention, {', '.join(list(near)[:4])} for example; "
                    f"got {edit.place!r}."
                )

    @property
    def lowest(self) -> dict[str, int]:
        """The first layer of each stack that is changed."""
        found: dict[str, int] = {}
        for edit in self.changes:
            stack, layer = edit.layer
            found[stack] = min(layer, found.get(stack, layer))
        return found

    def of_site(self, name: str) -> list[Intervention]:
        return [edit for edit in self.changes if edit.place == name and changes_site(edit)]

    def changes_attention(self, name: str) -> bool:
        """Whether the calls of attention at this site are changed."""
        return bool(self.of_site(name))

    def of_block(self, stack: str, layer: int) -> list[Intervention]:
        """What changes the stream inside a block, or after it."""
        return [
            edit
            for edit in self.changes
            if edit.layer == (stack, layer) and not changes_site(edit) and not _is_at_start(edit)
        ]

    def edit_attention(
        self,
        place: Place,
        out: Float[Tensor, "B H L E"],
        start: int,
        make_step: Callable[[], Step],
    ) -> tuple[Tensor, Step | None, str | None]:
        """See `attention_edits.edit_attention`."""
        edits = self.of_site(place.name)
        if not edits:
            return out, None, None
        self.applied |= {edit for edit in edits if not _swaps_positions(edit)}
        rows = Rows(start, start + out.shape[2], place.is_cross)
        changed, step, reason = edit_attention(edits, out, rows, make_step)
        for edit in edits:
            if isinstance(edit, Probe):
                edit.held.append(changed)
        return changed, step, reason

    def edit_part(
        self, name: str, value: Float[Tensor, "B L C"], start: int
    ) -> Float[Tensor, "B L C"] | None:
        """What a part adds instead; None for the same."""
        rows, changed = Rows(start, start + value.shape[1]), value
        for kinds in ((Ablate, Patch, Put), (Scale,)):  # replaced first, then scaled
            for edit in self._at(name, kinds):
                if isinstance(edit, Patch | Put) and edit.what == "state":
                    continue
                assert isinstance(edit, Ablate | Patch | Put | Scale)
                self.applied.add(edit)
                b, r = _select(edit, changed, rows)
                if isinstance(edit, Scale):
                    new = changed[b][:, r] * edit.factor
                elif isinstance(edit, Patch | Put):
                    new = _read_stream(edit, value, b, [i + start for i in r])
                elif edit.how == "zero":
                    new = value.new_zeros(())
                else:
                    new = replace_by_others(edit, value, rows, r, _read_part)
                    new = new.expand(len(value), len(r), -1)[b]
                changed = value.clone() if changed is value else changed
                _put(changed, b, r, new)
        self._hold(name, "added", changed)
        return None if changed is value else changed

    def edit_sum(
        self, parts: Sequence[str], border: str | None, x: Float[Tensor, "B L C"], start: int
    ) -> Float[Tensor, "B L C"] | None:
        """The stream where parts have just been added, or at a border, instead."""
        changed = None if border is None else self.edit_state(border, x, start)
        probed = [e for part in parts for e in self._at(part, (Probe,)) if _holds(e, "sum")]
        if border is not None:
            probed += [e for e in self._at(border, (Probe,)) if _holds(e, "state")]
        if not probed:
            return changed
        held = x.clone() if changed is None else changed
        if torch.is_grad_enabled() and not held.requires_grad:
            held.requires_grad_()
        for edit in probed:
            self._keep(edit, held)
        return held.clone() if held.is_leaf else held  # blocks may add to a leaf in place

    def edit_state(
        self, border: str, x: Float[Tensor, "B L C"], start: int
    ) -> Float[Tensor, "B L C"] | None:
        """The state of the stream at a border instead; None for the same."""
        rows, changed = Rows(start, start + x.shape[1]), x
        for edit in self._at(border, (Patch, Put)):
            assert isinstance(edit, Patch | Put)
            if edit.what == "state" or _is_at_start(edit):
                self.applied.add(edit)
                b, r = _select(edit, changed, rows)
                new = _read_stream(edit, x, b, [i + start for i in r])
                changed = x.clone() if changed is x else changed
                _put(changed, b, r, new)
        for edit in self._at(border, (Steer,)):
            assert isinstance(edit, Steer)
            self.applied.add(edit)
            b, r = _select(edit, changed, rows)
            vector = edit.vector.to(x)
            if vector.shape[-1] != x.shape[-1]:
                raise InterventionError(
                    f"A vector for {border} must have {x.shape[-1]} numbers; got "
                    f"{vector.shape[-1]}."
                )
            new = changed[b][:, r] + edit.factor * vector
            changed = x.clone() if changed is x else changed
            _put(changed, b, r, new)
        return None if changed is x else changed

    def find_skip(self, stack: str, layer: int) -> Skip | None:
        for edit in self._at(f"{stack}.{layer}", (Skip,)):
            assert isinstance(edit, Skip)
            self.applied.add(edit)
            return edit
        return None

    def find_swapped_positions(self, name: str) -> Swap | None:
        """The swap that takes the positions of a site away; it is applied around its attention."""
        found = (e for e in self.changes if e.place == name and isinstance(e, Swap))
        return next((edit for edit in found if _swaps_positions(edit)), None)

    def check_applied(self) -> None:
        """Interventions that the model never reached changed nothing, and must not seem to."""
        left = [edit for edit in self.changes if edit not in self.applied]
        if left:
            raise InterventionError(
                f"{left[0]} was never applied: the model ran, but not through {left[0].place}. "
                "trace.names lists sites, trace.residual().borders the borders of its stream."
            )

    def _hold(self, place: str, what: str, value: Tensor) -> None:
        for edit in self._at(place, (Probe,)):
            if _holds(edit, what):
                self._keep(edit, value)

    def _keep(self, edit: Intervention, value: Tensor) -> None:
        assert isinstance(edit, Probe)
        self.applied.add(edit)
        edit.held.append(value)

    def _at(self, place: str, kinds: tuple[type, ...]) -> list[Intervention]:
        return [
            edit
            for edit in self.changes
            if edit.place == place and isinstance(edit, kinds) and not changes_site(edit)
        ]


def changes_site(edit: Intervention) -> bool:
    """Whether it changes the weights or the heads of attention, rather than the stream."""
    return isinstance(edit, _OF_SITES) or getattr(edit, "head", None) is not None


def changes_state(edit: Intervention) -> bool:
    """Whether it changes the state at a border, rather than what a part adds."""
    return isinstance(edit, Steer) or getattr(edit, "what", None) == "state"


def _holds(edit: Intervention, what: str) -> bool:
    return isinstance(edit, Probe) and edit.what == what


def _swaps_positions(edit: Intervention) -> bool:
    return isinstance(edit, Swap) and edit.positions != "same"


def _is_at_start(edit: Intervention) -> bool:
    return edit.place.endswith(".start")


def _select(edit: Any, x: Tensor, rows: Rows) -> tuple[list[int], list[int]]:
    return resolve_numbers(edit.sequences, len(x), "sequences"), rows.find(edit.positions)


def _put(x: Tensor, b: list[int], r: list[int], values: Tensor) -> None:
    if b and r:
        at = [torch.tensor(numbers, device=x.device) for numbers in (b, r)]
        x[at[0][:, None], at[1]] = values.to(x.dtype)


def _read_part(trace: Trace, name: str) -> Tensor:
    return trace.residual(name.partition(".")[0]).part(name).value


def _read_stream(edit: Patch | Put, like: Tensor, b: list[int], positions: list[int]) -> Tensor:
    """What another run added here, or its state here, at these positions."""
    if isinstance(edit, Put):
        return choose_sequences(edit.values[:, positions], b, len(like), edit.place).to(like.device)
    stream = edit.trace.residual(edit.place.partition(".")[0])
    is_state = edit.what == "state" or _is_at_start(edit)
    values = stream.after(edit.place) if is_state else stream.part(edit.place).value
    if values.shape[-1] != like.shape[-1]:
        raise InterventionError(
            f"The trace must be of the same model; the stream of this one is {like.shape[-1]} "
            f"wide, that of the trace {values.shape[-1]}."
        )
    at = find_rows(stream.rows, values.shape[1], positions, edit.place)
    return choose_sequences(values[:, at], b, len(like), edit.place).to(like.device)
