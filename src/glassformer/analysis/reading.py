"""What each attention module reads of the residual stream, proved on a short run.

What a module is given must be the state of the stream before it, or a norm of that state; for the
context of cross-attention, the end of the encoder's stream, or a norm of it.
"""

import re
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.analysis.token_model import TokenModel
from glassformer.errors import TraceError
from glassformer.tracing.context import watch
from glassformer.tracing.layout import Place
from glassformer.tracing.norm_form import NormForm
from glassformer.tracing.stream import Part, Stream
from glassformer.tracing.trace import Trace

_LENGTH = 4


@dataclass(eq=False)
class Reading:
    """What one site reads, and by which norms."""

    place: Place
    part: Part
    at: int  # the steps of the stream before it
    widths: tuple[int, ...]  # of what it reads: the stream, and the context of cross-attention
    query_norm: NormForm | None
    key_norm: NormForm | None
    norms: dict[nn.Module, NormForm] = field(default_factory=dict)  # inside the module

    @property
    def operand_widths(self) -> tuple[int, int, int]:
        return self.widths[0], self.widths[-1], self.widths[-1]


def is_norm(module: nn.Module) -> bool:
    return bool(re.search("norm", type(module).__name__, re.IGNORECASE))


def is_state(value: Any) -> bool:
    """Whether an argument may be a state of the stream."""
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim == 3


class ReadingFinder:
    """Runs a model once and notes what its norms and its attention modules are given."""

    def __init__(self, model: TokenModel) -> None:
        self.model = model
        self.norms: list[tuple[nn.Module, Tensor, Tensor]] = []
        self.given: list[tuple[Place, nn.Module, list[Tensor]]] = []
        self.tokens = model.draw(1, _LENGTH)

    def run(self) -> Trace:
        with ExitStack() as stack:
            for module in self.model.tree.paths:
                if is_norm(module):
                    stack.callback(module.register_forward_hook(self._note_norm).remove)
                if module in self.model.places:
                    hook = module.register_forward_pre_hook(self._note_attention, with_kwargs=True)
                    stack.callback(hook.remove)
            with watch(self.model.model, residual=True) as trace:
                self.model(self.tokens)
        return trace

    def _note_norm(self, module: nn.Module, args: tuple, out: Any) -> None:
        if args and isinstance(args[0], Tensor) and isinstance(out, Tensor):
            self.norms.append((module, args[0].clone(), out.clone()))

    def _note_attention(self, module: nn.Module, args: tuple, options: dict[str, Any]) -> None:
        states = [x.clone() for x in (*args, *options.values()) if is_state(x)]
        again = sum(each is module for _, each, _ in self.given)
        place = self.model.places[module].in_later_layer(again)
        self.given.append((place, module, states[: 2 if place.is_cross else 1]))

    def read(self, trace: Trace) -> tuple[dict[str, Reading], dict[str, str]]:
        """The reading of each site, or why there is none."""
        readings, refusals = {}, {}
        for place, module, states in self.given:
            try:
                if place.name not in trace.run.sites:
                    trace[place.name]  # says why
                readings[place.name] = self._read_site(trace, place, module, states)
            except TraceError as error:
                refusals[place.name] = str(error)
        return readings, refusals

    def _read_site(
        self, trace: Trace, place: Place, module: nn.Module, states: list[Tensor]
    ) -> Reading:
        if len(states) < (2 if place.is_cross else 1):
            raise TraceError(f"{place.name} reads no (B, L, C) tensor.")
        stream = trace.residual(place.stack)
        at, part, state = find_state_before(stream, place.name)
        query_norm = key_norm = self._find_norm(place, state, states[0])
        if place.is_cross:
            key_norm = self._find_norm(place, trace.residual("encoder").end, states[1])
        inside = self.model.tree.below([module])
        return Reading(
            place=place,
            part=part,
            at=at,
            widths=tuple(x.shape[-1] for x in states),
            query_norm=query_norm,
            key_norm=key_norm,
            norms=self._find_inner_norms(inside),
        )

    def _find_norm(self, place: Place, state: Tensor, given: Tensor) -> NormForm | None:
        """The norm between the stream and what a module reads; None where there is none."""
        if _is_close(state, given):
            return None
        for module, before, after in self.norms:
            if _is_close(before, state) and _is_close(after, given):
                try:
                    return NormForm.of(module, before, after)
                except TraceError as error:
                    raise TraceError(
                        f"What {place.name} reads passes {type(module).__name__}, which is neither "
                        "a LayerNorm nor an RMSNorm."
                    ) from error
        raise TraceError(f"What {place.name} reads is neither the stream nor a norm of it.")

    def _find_inner_norms(self, inside: dict[nn.Module, None]) -> dict[nn.Module, NormForm]:
        found: dict[nn.Module, NormForm] = {}
        for module, before, after in self.norms:
            if module in inside and module not in found:
                with suppress(TraceError):  # of another kind: its operand will not be linear
                    found[module] = NormForm.of(module, before, after)
        return found


def find_state_before(stream: Stream, site: str) -> tuple[int, Part, Tensor]:
    """Where in the steps of a stream a site's part is, the part, and the state that it reads."""
    states = dict(stream.states())
    before = f"{stream.name}.start"
    previous = before
    for i, step in enumerate(stream.steps):
        if not isinstance(step, Part):
            continue
        before = before if step.is_joined else previous
        if step.site == site:
            return i, step, states[before]
        previous = step.name
    raise TraceError(f"{site} writes to no part of the stream of {stream.name}.")


def _is_close(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape:
        return False
    bound = 8 * torch.finfo(a.dtype).eps * float(a.abs().amax())
    return bool((a.double() - b.double()).abs().amax() <= bound)
