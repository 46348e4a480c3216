"""One call of attention once more, with the graph from what its module reads to q, k and v.

The model runs up to that call: blocks below give what was recorded. Norms inside the module (of
queries and keys) leave out the size that they divide by, so that each operand is an affine function
of what is read; by how much the recorded operand is smaller shows when the two are compared.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.analysis.reading import Reading, is_state
from glassformer.analysis.site_weights import linear_part
from glassformer.errors import TraceError
from glassformer.tracing.context import attach, prepare
from glassformer.tracing.interventions.editor import Editor
from glassformer.tracing.interventions.stream_editor import Shortcuts
from glassformer.tracing.interventions.values import Changes
from glassformer.tracing.layout import Place
from glassformer.tracing.norm_form import NormForm
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.reruns import find_call, find_known_blocks
from glassformer.tracing.selection import Selection
from glassformer.tracing.site_steps import Step
from glassformer.tracing.trace import Trace


class OperandGraph(NamedTuple):
    """What a module reads, as leaves of a graph, and the operands that follow from it."""

    reads: list[Float[Tensor, "B L C"]]  # of cross-attention: the stream, and the context
    q: Float[Tensor, "B H L D"]
    k: Float[Tensor, "B K S D"]
    v: Float[Tensor, "B K S E"]


class _Reached(BaseException):  # not an error: no model may catch it
    """Ends the run at a call of attention."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step


class _Stop(Editor):
    """Changes nothing, and ends the run at one site."""

    def __init__(self, site: str) -> None:
        super().__init__(Changes.of([]))
        self.site = site

    def changes_attention(self, name: str) -> bool:
        return name == self.site

    def edit_attention(
        self, place: Place, out: Tensor, start: int, make_step: Callable[[], Step]
    ) -> Any:
        del place, out, start
        raise _Reached(make_step())


def read_operands(
    trace: Trace, module: nn.Module, reading: Reading, *, factor: float = 1.0
) -> OperandGraph:
    """Run a recorded text up to one attention module, which reads `factor` times what it read."""
    place = reading.place
    model, args, options = find_call(trace)
    recorder, tree = prepare(
        "why",
        model,
        None,
        selection=Selection(),
        store=OperandStore(None, None, None),
        outputs=False,
        residual=False,
        editor=_Stop(place.name),
    )
    recorder.is_silent = True
    known = find_known_blocks(trace.run, {place.stack: place.layer or 0}, model)
    reads: list[Tensor] = []
    with ExitStack() as stack:
        hook = partial(_read_leaves, reads, len(reading.widths), factor)
        stack.callback(module.register_forward_pre_hook(hook, with_kwargs=True).remove)
        for norm, form in reading.norms.items():
            stack.callback(norm.register_forward_hook(partial(_leave_out_size, form)).remove)
        stack.enter_context(torch.enable_grad())
        stack.enter_context(attach(recorder, tree, Shortcuts(known)))
        try:
            model(*args, **options)
        except _Reached as reached:
            q, k, v = reached.step.q, reached.step.k, reached.step.v
            assert k is not None and v is not None
            if not q.requires_grad:
                raise TraceError(
                    f"{place.name} computes attention by itself, not by a kernel: what wrote its "
                    "queries and keys cannot be followed."
                ) from None
            return OperandGraph(reads, q, k, v)
    raise TraceError(f"The model did not run through {place.name}.")


def _read_leaves(
    reads: list[Tensor], n: int, factor: float, _module: nn.Module, args: tuple, options: dict
) -> tuple[tuple, dict[str, Any]]:
    """Put leaves of a graph in the place of what a module reads."""

    def replace(value: Any) -> Any:
        if not is_state(value) or len(reads) == n:
            return value
        leaf = (factor * value.detach()).requires_grad_()
        reads.append(leaf)
        return leaf.clone()  # some modules write into it

    args = tuple(replace(value) for value in args)
    return args, {name: replace(value) for name, value in options.items()}


def _leave_out_size(form: NormForm, _module: nn.Module, args: tuple, _out: Tensor) -> Tensor:
    y = linear_part(form, args[0])
    return y if form.bias is None else y + form.bias.to(y)
