"""From the steps of an engine to the run of one request: taken out of every batch, and joined."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.engines.vllm.layer_groups import LayerGroup, OperandStack
from glassformer.tracing.engines.vllm.packed_batch import PackedBatch
from glassformer.tracing.engines.vllm.watched_model import WatchedLayer
from glassformer.tracing.mask_rules import MaskRule
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.recorded_run import RecordedRun
from glassformer.tracing.site_steps import Step
from glassformer.tracing.trace import Run

if TYPE_CHECKING:
    from glassformer.tracing.engines.vllm.served_requests import ServedRequests


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
    past: dict[LayerGroup, OperandStack] = field(default_factory=dict)  # k and v of those
    run: Run = field(default_factory=Run)
    notes: dict[str, str] = field(default_factory=dict)  # what is missing, and why
    state: Any = None  # vLLM's, of an engine that speculates: which tokens were accepted
    is_stale: bool = True

    def __post_init__(self) -> None:
        self.n_past = len(self.past_tokens)

    def add(self, piece: Piece) -> None:
        """One more step; what is computed again, after a preemption, replaces what was there."""
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


def assemble_run(served: "ServedRequests", log: RequestLog) -> Run:
    """The run of one request."""
    log.drop_rejected()
    log.check()
    run = RecordedRun(served.layout, served.guard, served.store, served.tokenizer)
    run.add_tokens("tokens", log.tokens()[None])
    run.order.append(torch.arange(1))
    groups = set(served.groups.values())
    faults: dict[str, str] = {}
    for group in groups:
        faults |= _find_faults(log, group)
    joined = {
        group: JoinedOperands.of(log, group, served.store)
        for group in groups
        if not faults.keys() >= group.places.keys()
    }
    for name, layer in served.layers.items():
        group = served.groups.get(name)
        if group is not None and group.heads == ():  # those selected are with other workers
            continue
        run.open_site(layer.place)
        if (why := layer.obstacle or faults.get(name)) is not None:
            run.refuse(layer.place.name, why)
        else:
            assert group is not None
            run.add(layer.place, joined[group].build_step(layer), None)
    run.finish()
    run.run.refusals |= log.notes
    return run.run


def _find_faults(log: RequestLog, group: LayerGroup) -> dict[str, str]:
    """Why layers of a group cannot be shown, by their names."""
    faults: dict[str, str] = {}

    def note(stack: OperandStack | None, reason: str) -> None:
        there = set() if stack is None else stack.layers
        for name in group.places.keys() - there:
            faults.setdefault(name, reason)

    for piece in log.pieces:
        for name in group.places.keys() & piece.batch.faults.keys():
            faults.setdefault(name, piece.batch.faults[name])
        reason = f"its attention of the tokens from {piece.start} on was computed unseen"
        note(piece.batch.stacks.get(group), reason)
    if log.n_past:
        reason = "its keys and values before the first step that was seen are missing"
        note(log.past.get(group), reason)
    return faults


class JoinedOperands(NamedTuple):
    """All queries of a request, and all of its keys, at each layer of a group."""

    group: LayerGroup
    rows: Int[Tensor, " R"] | None  # positions of the queries; None: as many as there are keys
    q: Sequence[Float[Tensor, "R H D"]]
    k: Sequence[Float[Tensor, "S K D"]]
    v: Sequence[Float[Tensor, "S K E"]]
    out: Sequence[Float[Tensor, "R H E"]] | None

    @classmethod
    def of(cls, log: RequestLog, group: LayerGroup, store: OperandStore) -> "JoinedOperands":
        stacks = [piece.batch.stacks[group] for piece in log.pieces]
        found = [piece.find_rows() for piece in log.pieces]
        keys = [slice(piece.first, piece.first + piece.length) for piece in log.pieces]
        past = log.past[group] if log.n_past else None

        def join(parts: list[Tensor]) -> Sequence[Tensor]:
            if store.budget is None:
                return store.concatenate(parts, dim=1).unbind(0)
            # One may lie in memory and the next on disk: they must not share what they lie in.
            return [store.concatenate(layer, dim=0) for layer in zip(*parts, strict=True)]

        def join_rows(operands: list[Tensor]) -> Sequence[Float[Tensor, "R _H _D"]]:
            return join([each[:, cut] for each, (cut, _) in zip(operands, found, strict=True)])

        def join_keys(operands: list[Tensor], past: Tensor | None) -> Sequence[Tensor]:
            before = [] if past is None else [past[:, : log.n_past]]
            return join([*before, *(t[:, cut] for t, cut in zip(operands, keys, strict=True))])

        outs = [each.out for each in stacks if each.out is not None]
        q = join_rows([each.q for each in stacks])
        positions = np.concatenate([rows for _, rows in found])
        is_whole = len(positions) == log.pieces[-1].stop
        return cls(
            group,
            rows=None if is_whole else torch.from_numpy(positions).to(q[0].device),
            q=q,
            k=join_keys([each.k for each in stacks], None if past is None else past.k),
            v=join_keys([each.v for each in stacks], None if past is None else past.v),
            out=join_rows(outs) if len(outs) == len(stacks) else None,
        )

    def build_step(self, layer: WatchedLayer) -> Step:
        """The queries and keys of one layer, as one call of attention."""
        i = self.group.places[layer.name]
        S, device = len(self.k[i]), self.q[i].device
        left = None if layer.window is None else layer.window - 1
        return Step(
            q=_as_4d(self.q[i]),
            k=_as_4d(self.k[i]),
            v=_as_4d(self.v[i]),
            rule=MaskRule(L=S, S=S, left=left, right=0, device=device),
            scale=layer.scale,
            softcap=layer.softcap,
            out=None if self.out is None else _as_4d(self.out[i]),
            stop=S,
            heads=self.group.heads,
            rows=self.rows,
            n_heads=layer.n_heads,
            shard=layer.shard,
        )


def _as_4d(operand: Float[Tensor, "T H D"]) -> Float[Tensor, "1 H T D"]:
    return operand.transpose(0, 1)[None]
