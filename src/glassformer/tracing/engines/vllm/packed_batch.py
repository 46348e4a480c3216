"""One step of an engine: the tokens of several requests below each other, in one batch.

request 7: ■ ■ ■ ■      a part of its prompt
request 8: ■            one token of its answer
packed:    ■ ■ ■ ■ ■    what attention is given

What is kept of a request does not depend on how the engine cut it into steps: only on positions.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from numpy import ndarray
from torch import Tensor

from glassformer.tracing.engines.vllm.layer_groups import LayerGroup, OperandStack
from glassformer.tracing.selection import Selection


@dataclass(eq=False)
class PackedBatch:
    """The requests of one step, and the operands of every layer."""

    requests: list[str]
    first_request: int  # which of the engine's batch is the first of these
    span: slice  # which tokens of the engine's batch are theirs
    offsets: ndarray  # where the tokens of each begin in the span, and the number of all
    starts: ndarray  # how many tokens of each were computed before
    tokens: Int[Tensor, " T"]
    rows: ndarray | None  # those of q that are kept; None: all
    joined: list[int] = field(default_factory=list)  # requests that begin with cached keys
    stacks: dict[LayerGroup, OperandStack] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)  # layers that could not be kept, and why

    @classmethod
    def of(cls, runner: Any, selection: Selection, request: str | None = None) -> "PackedBatch":
        """The batch that vLLM's model runner is computing; with `request`, the part of that one."""
        batch = runner.input_batch
        first, stop = 0, int(batch.num_reqs)
        if request is not None:
            first = batch.req_id_to_index[request]
            stop = first + 1
        edges = runner.query_start_loc.np[first : stop + 1].astype(np.int64)
        span, offsets = slice(int(edges[0]), int(edges[-1])), edges - edges[0]
        starts = batch.num_computed_tokens_cpu[first:stop].astype(np.int64)
        prompts = batch.num_prompt_tokens[first:stop].astype(np.int64)
        return cls(
            requests=list(batch.req_ids[first:stop]),
            first_request=first,
            span=span,
            offsets=offsets,
            starts=starts,
            tokens=runner.input_ids.gpu[span].clone(),
            rows=select_rows(selection, offsets, starts, prompts),
        )

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @property
    def n_rows(self) -> int:
        """How many rows of q are kept."""
        return len(self) if self.rows is None else len(self.rows)

    def note_fault(self, layer: str, reason: str) -> None:
        self.faults.setdefault(layer, reason)


def select_rows(
    selection: Selection, offsets: ndarray, starts: ndarray, prompts: ndarray
) -> ndarray | None:
    """Which rows of a batch are kept; None for all.

    The prompt is step 0 of a request, every token after it one more; "last" are the last row of the
    prompt and all after it, those from which a token is sampled.

    >>> offsets, starts, prompts = np.array([0, 4, 5]), np.array([0, 9]), np.array([4, 6])
    >>> select_rows(Selection(rows="last"), offsets, starts, prompts)
    array([3, 4])
    """
    if not selection.is_partial:
        return None
    lengths = np.diff(offsets)
    positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    prompt = np.repeat(prompts, lengths)
    steps = np.maximum(positions - prompt + 1, 0)
    kept = steps % selection.every == 0
    rows = selection.rows
    if isinstance(rows, str):
        kept &= positions >= prompt - 1
    elif isinstance(rows, slice):
        first, step = rows.start or 0, rows.step or 1
        kept &= (positions >= first) & ((positions - first) % step == 0)
        if rows.stop is not None:
            kept &= positions < rows.stop
    elif rows is not None:
        kept &= np.isin(positions, list(rows))
    return None if kept.all() else np.flatnonzero(kept)


def as_index(rows: ndarray | None, device: torch.device) -> Int[Tensor, " R"] | None:
    return None if rows is None else torch.from_numpy(rows).to(device)
