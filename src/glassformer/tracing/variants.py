"""Many changed runs of one text in one pass: each sequence of a batch with a change of its own.

The text is repeated along the batch. Blocks below the first change give what was recorded, and the
pass ends after the last block: scores are then read out only at the positions that count.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import InterventionError
from glassformer.tracing.context import attach, prepare
from glassformer.tracing.interventions.editor import Editor
from glassformer.tracing.interventions.stream_editor import StreamEnds
from glassformer.tracing.interventions.values import Changes, Intervention
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.reruns import find_call, find_known_blocks
from glassformer.tracing.selection import Selection
from glassformer.tracing.trace import Trace


def run_variants(
    trace: Trace, variants: Sequence[Intervention | Changes], *, stack: str | None = None
) -> Float[Tensor, "N L C"]:
    """The end of the residual stream of one text under each of these changes, (N, L, C)."""
    stream = trace.residual(stack)
    if len(stream.start) != 1:
        raise InterventionError(
            f"Variants are made of one sequence; this trace has {len(stream.start)}."
        )
    n = len(variants)
    each = [
        replace(edit, sequences=[i])  # type: ignore[type-var]
        for i, given in enumerate(variants)
        for edit in Changes.of(given)
    ]
    editor = Editor(Changes.of_variants(each))
    model, args, options = find_call(trace)
    known = find_known_blocks(trace.run, editor.lowest, model)
    known = {
        place: block._replace(state=block.state.expand(n, -1, -1)) for place, block in known.items()
    }
    recorder, tree = prepare(
        "rerun",
        model,
        None,
        selection=Selection(),
        store=OperandStore(None, None, None),
        outputs=False,
        residual=False,
        editor=editor,
    )
    recorder.is_silent = True
    ends = StreamEnds(stream.name, max(part.layer for part in stream.parts))
    with torch.no_grad(), attach(recorder, tree, known, ends):
        try:
            model(*(_repeat(a, n) for a in args), **{k: _repeat(v, n) for k, v in options.items()})
        except StreamEnds.Reached as reached:
            return reached.state
    raise InterventionError(f"The model did not run through {stream.name}.{ends.layer}.")


def _repeat(value: Any, n: int) -> Any:
    """An argument of one sequence for n of them."""
    if isinstance(value, Tensor) and value.ndim and len(value) == 1:
        return value.expand(n, *value.shape[1:])
    return value
