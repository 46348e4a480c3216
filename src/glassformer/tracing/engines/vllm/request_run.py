"""From the steps of an engine to the run of one request: taken out of every batch, and joined."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.engines.vllm.packed_batch import PackedBatch, PackedOperands
from glassformer.tracing.mask_rules import MaskRule
from glassformer.tracing.recorded_run import RecordedRun
from glassformer.tracing.site_steps import Step
from glassformer.tracing.trace import Run

if TYPE_CHECKING:
    from glassformer.tracing.engines.vllm.recorder import EngineRecorder


class Piece(NamedTuple):
    """Adjacent tokens of a request that were computed in one step."""

    batch: PackedBatch
    first: int  # in the batch
    start: int  # in the text
    length: int

    @property
    def stop(self) -> int:
        return self.start + self.length

    def cut(self, stop: int) -> "Piece":
        return self._replace(length=max(0, stop - self.start))

    def find_rows(self) -> tuple[slice, Int[np.ndarray, " R"]]:
        """Which rows of the batch's q belong here, and their positions in the text."""
        last = self.first + self.length
        if self.batch.rows is None:
            return slice(self.first, last), np.arange(self.start, self.stop)
        low, high = np.searchsorted(self.batch.rows, [self.first, last])
        return slice(low, high), self.batch.rows[low:high] - self.first + self.start


@dataclass(eq=False)
class RequestLog:
    """Where the parts of a request are; what was in the cache before it was seen."""

    name: str
    past_tokens: Int[Tensor, " P"]
    pieces: list[Piece] = field(default_factory=list)
    past: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)  # k and v, by layer
    run: Run = field(default_factory=Run)
    notes: dict[str, str] = field(default_factory=dict)  # what is missing, and why
    state: Any = None  # vLLM's, of an engine that speculates: which tokens were accepted
    is_stale: bool = True

    def __post_init__(self) -> None:
        self.n_past = len(self.past_tokens)

    def add(self, batch: PackedBatch, i: int) -> None:
        """One more step; what is computed again, after a preemption, replaces what was there."""
        first, last = map(int, batch.offsets[i : i + 2])
        piece = Piece(batch, first, int(batch.starts[i]), last - first)
        self._cut(piece.start)
        self.pieces.append(piece)
        self.n_past = min(self.n_past, piece.start)
        self.is_stale = True

    def _cut(self, stop: int) -> None:
        while self.pieces and self.pieces[-1].stop > stop:
            self.pieces[-1] = self.pieces[-1].cut(stop)
            if self.pieces[-1].length:
                break
            self.pieces.pop()

    def drop_rejected(self) -> None:
        """Cut tokens of the last step that were proposed, but are no part of the answer.

        Those of earlier steps were computed again, and replaced. The last token of an answer is
        sampled and never computed.
        """
        if self.state is None or not self.state.output_token_ids:
            return
        n_written = len(self.state.output_token_ids)
        most = getattr(self.state.sampling_params, "max_tokens", None)
        n_written = n_written if most is None else min(n_written, most)
        self._cut(self.state.num_prompt_tokens + n_written - 1)

    def note_end(self, reason: str) -> None:
        """Nothing is recorded any more; tokens that come now are missing."""
        stop = self.pieces[-1].stop if self.pieces else 0
        self.notes.setdefault(f"tokens from {stop} on", reason)
        self.is_stale = True

    def check(self) -> None:
        if not self.pieces:
            raise TraceError(next(iter(self.notes.values()), "Nothing of it was computed."))
        stop = self.n_past
        for piece in self.pieces:
            if piece.start != stop:
                raise TraceError(f"Its tokens {stop} … {piece.start - 1} passed unseen.")
            stop = piece.stop

    def tokens(self) -> Int[Tensor, " S"]:
        parts = [p.batch.tokens[p.first : p.first + p.length].cpu() for p in self.pieces]
        return torch.cat([self.past_tokens[: self.n_past], *parts]).long()


def assemble_run(recorder: "EngineRecorder", log: RequestLog) -> Run:
    """The run of one request."""
    log.drop_rejected()
    log.check()
    run = RecordedRun(recorder.layout, recorder.guard, recorder.store, recorder.tokenizer)
    run.add_tokens("tokens", log.tokens()[None])
    run.order.append(torch.arange(1))
    for name, layer in recorder.model.select_layers(recorder.selection).items():
        place, heads = recorder.model.place(layer), None
        if name not in recorder.model.obstacles:
            heads = recorder.model.select_heads(recorder.selection, layer)
        if heads == ():  # those that were selected are with other workers
            continue
        run.open_site(place)
        reason = recorder.model.obstacles.get(name) or _find_fault(log, name)
        if reason is not None:
            run.refuse(place.name, reason)
        else:
            run.add(place, _join_step(recorder, log, layer, heads), None)
    run.finish()
    run.run.refusals |= log.notes
    return run.run


def _find_fault(log: RequestLog, name: str) -> str | None:
    for piece in log.pieces:
        if name in piece.batch.faults:
            return piece.batch.faults[name]
        if name not in piece.batch.operands:
            return f"its attention of the tokens from {piece.start} on was computed unseen"
    if log.n_past and name not in log.past:
        return "its keys and values before the first step that was seen are missing"
    return None


def _join_step(
    recorder: "EngineRecorder", log: RequestLog, layer: Any, heads: tuple[int, ...] | None
) -> Step:
    """All queries of a request at one layer, and all of its keys, as one call of attention."""
    name, store = layer.layer_name, recorder.store
    parts = [piece.batch.operands[name] for piece in log.pieces]
    past = log.past.get(name)
    S = log.pieces[-1].stop
    found = [piece.find_rows() for piece in log.pieces]
    positions = np.concatenate([rows for _, rows in found])

    def join(which: str) -> Float[Tensor, "1 H R D"]:
        taken = [getattr(each, which)[cut] for each, (cut, _) in zip(parts, found, strict=True)]
        return _as_4d(store.concatenate(taken, dim=0))

    def join_past(which: int) -> Float[Tensor, "1 K S D"]:
        taken = [past[which][: log.n_past]] if log.n_past and past is not None else []
        for piece, each in zip(log.pieces, parts, strict=True):
            operand = each.k if which == 0 else each.v
            taken.append(operand[piece.first : piece.first + piece.length])
        return _as_4d(store.concatenate(taken, dim=0))

    window, cap = layer.sliding_window, getattr(layer.impl, "logits_soft_cap", None)
    q = join("q")
    return Step(
        q=q,
        k=join_past(0),
        v=join_past(1),
        rule=MaskRule(
            L=S, S=S, left=None if window is None else window - 1, right=0, device=q.device
        ),
        scale=float(layer.impl.scale),
        softcap=float(cap) if cap else None,
        out=join("out") if _have_outputs(parts) else None,
        stop=S,
        heads=heads,
        rows=None if len(positions) == S else torch.from_numpy(positions).to(q.device),
        n_heads=layer.num_heads,
        shard=recorder.model.shard(layer),
    )


def _have_outputs(parts: list[PackedOperands]) -> bool:
    return all(each.out is not None for each in parts)


def _as_4d(operand: Float[Tensor, "T H D"]) -> Float[Tensor, "1 H T D"]:
    return operand.transpose(0, 1)[None]
