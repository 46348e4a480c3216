"""The recorder inside a worker: what attention is given, step after step, kept as it was packed.

While an engine serves, only copies are made. Requests are taken apart when the trace is read
(served_requests.py).
"""

from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.engines.vllm.layer_groups import copy_part, group_layers
from glassformer.tracing.engines.vllm.packed_batch import PackedBatch, as_index
from glassformer.tracing.engines.vllm.paged_cache import PagedCache
from glassformer.tracing.engines.vllm.request_run import Piece, RequestLog
from glassformer.tracing.engines.vllm.served_requests import ServedRequests
from glassformer.tracing.engines.vllm.watched_model import WatchedModel
from glassformer.tracing.guard import Guard
from glassformer.tracing.layout import Layout
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.selection import Selection
from glassformer.tracing.trace import Trace


class EngineRecorder:
    """Listens to the layers of one worker, from `attach` to `detach`.

    With `request`, to what it computes for that request alone, up to `limit` bytes.
    """

    def __init__(
        self,
        model: WatchedModel,
        selection: Selection,
        store: OperandStore,
        *,
        tokenizer: Any = None,
        outputs: bool = False,
        request: str | None = None,
        limit: int | None = None,
    ) -> None:
        self.model, self.selection, self.store = model, selection, store
        self.outputs, self.request, self.limit = outputs, request, limit
        self.groups = group_layers(model, selection)  # by the name of a layer
        self.guard = Guard("gf.watch")
        self.served = ServedRequests(
            layout=Layout(name=model.layout.name, writer=model.layout.writer),
            layers=model.describe_layers(selection),
            groups=self.groups,
            store=store,
            guard=self.guard,
            tokenizer=tokenizer,
        )
        self.trace = Trace(model=dict(model.description), assemble=self.assemble)
        self.trace.part = model.part
        self.batch: PackedBatch | None = None  # of the present step
        self.context: Any = None  # vLLM's, of the present step
        self.index: Tensor | None = None  # the rows of the batch that are kept
        self.caches: dict[str, PagedCache] = {}
        self.is_closed = False  # what comes now is not recorded
        self.forward_context = import_module("vllm.forward_context").get_forward_context

    @property
    def tokenizer(self) -> Any:
        return self.served.tokenizer

    @tokenizer.setter
    def tokenizer(self, tokenizer: Any) -> None:
        self.served.tokenizer = tokenizer

    @property
    def logs(self) -> dict[str, RequestLog]:
        return self.served.logs

    def check(self) -> None:
        """Raise for options that this model cannot fulfil."""
        self.model.check(self.selection)

    def attach(self) -> None:
        self.model.attach(self, self.selection)

    def detach(self) -> None:
        self.model.detach(self)

    def close(self, reason: str | None) -> None:
        """Record no more; the reason is noted with the tokens that may be missing."""
        self.is_closed = True
        if reason is not None:
            for log in self.logs.values():
                log.note_end(reason)

    def hear(
        self,
        layer: Any,
        operands: tuple[Tensor, Tensor, Tensor],
        kv_cache: Tensor,
        metadata: Any,
        out: Tensor,
    ) -> None:
        """One layer has computed its attention."""
        if self.served.fault is not None or self.is_closed:
            return
        context = self.forward_context()
        if context is not self.context:
            self.context, self.batch = context, None
            with (
                self.guard.catch(self.served.layout.name, self._spoil),
                torch.inference_mode(False),
            ):
                self.batch = self._begin_batch(context)
        batch = self.batch
        if batch is None:
            return
        try:
            self._keep(batch, layer, operands, out)
            if batch.joined:
                self._keep_past(batch, layer, operands, kv_cache, metadata)
        except Exception as error:
            refuse = partial(batch.note_fault, layer.layer_name)
            self.guard.note(self.model.place(layer).name, error, refuse)

    def _begin_batch(self, context: Any) -> PackedBatch | None:
        """A step begins: which requests are in it. None where the limit is reached."""
        if context.ubatch_slices is not None:
            raise TraceError("Steps that vLLM computes in two halves cannot be followed.")
        batch = PackedBatch.of(self.model.runner, self.selection, self.request)
        self.index = as_index(batch.rows, batch.tokens.device)
        known = self.model.runner.input_batch.token_ids_cpu
        for i, request in enumerate(batch.requests):
            if request not in self.logs:
                past = known[batch.first_request + i, : batch.starts[i]].copy()
                state = self.model.find_state(request)
                self.logs[request] = RequestLog(request, torch.from_numpy(past), state=state)
                if len(past):
                    batch.joined.append(i)
        if self.limit is not None and self.store.in_memory + self._measure(batch) > self.limit:
            self.close(f"the budget of {self.limit} bytes was reached")
            return None
        edges, starts = batch.offsets.tolist(), batch.starts.tolist()
        for i, request in enumerate(batch.requests):
            self.logs[request].add(Piece(batch, edges[i], starts[i], edges[i + 1] - edges[i]))
        return batch

    def _measure(self, batch: PackedBatch) -> int:
        """How many bytes will be kept of a step."""
        n_keys = len(batch) + sum(int(batch.starts[i]) for i in batch.joined)
        return sum(
            group.count_bytes(batch.n_rows, n_keys, outputs=self.outputs)
            for group in set(self.groups.values())
        )

    def _keep(
        self, batch: PackedBatch, layer: Any, operands: tuple[Tensor, Tensor, Tensor], out: Tensor
    ) -> None:
        name, span, (q, k, v) = layer.layer_name, batch.span, operands
        group = self.groups[name]
        stack = batch.stacks.get(group)
        if stack is None:
            with torch.inference_mode(False):
                stack = group.reserve(self.store, q, batch.n_rows, len(batch), outputs=self.outputs)
            batch.stacks[group] = stack
        place = group.places[name]
        copy_part(stack.q[place], q, span, group.heads, self.index)
        copy_part(stack.k[place], k, span, group.read)
        copy_part(stack.v[place], v, span, group.read)
        if stack.out is not None:
            out = out.view(len(out), q.shape[1], -1)
            copy_part(stack.out[place], out, span, group.heads, self.index)
        stack.layers.add(name)

    def _keep_past(
        self,
        batch: PackedBatch,
        layer: Any,
        operands: tuple[Tensor, Tensor, Tensor],
        kv_cache: Tensor,
        metadata: Any,
    ) -> None:
        """Keys and values that were in the cache before a request was first seen."""
        name, (_, k, _) = layer.layer_name, operands
        group = self.groups[name]
        for i in batch.joined:
            if name not in self.caches:
                self.caches[name] = PagedCache(layer, kv_cache, k)
            start, first, stop = int(batch.starts[i]), *map(int, batch.offsets[i : i + 2])
            read_k, read_v = self.caches[name].read(
                kv_cache, metadata.block_table[batch.first_request + i], start + stop - first
            )
            if not torch.equal(read_k[start:], k[batch.span][first:stop]):
                raise TraceError("The cache holds other keys than those that attention was given.")
            past = self.logs[batch.requests[i]].past
            if group not in past:
                with torch.inference_mode(False):
                    past[group] = group.reserve(self.store, k, 0, start, outputs=False)
            place = group.places[name]
            copy_part(past[group].k[place], read_k, slice(0, start), group.read)
            copy_part(past[group].v[place], read_v, slice(0, start), group.read)
            past[group].layers.add(name)

    def _spoil(self, reason: str) -> None:
        self.served.fault = reason

    def assemble(self) -> None:
        """A run of the trace for every request, with all that has been recorded so far."""
        self.trace.recorded[:] = self.served.assemble()

    def finish(self, *, is_read_later: bool = False) -> Trace:
        """The trace, complete, or complete as soon as it is read; the engine is let go."""
        served, trace = self.served, self.trace
        trace.assemble = None
        self.caches.clear()
        self.context = self.batch = self.index = None
        served.close()
        # What goes to disk, or has failed already, is taken apart now.
        if is_read_later and self.store.budget is None and not self.guard.faults:
            served.guard = Guard("gf.watch")
            trace.assemble = partial(served.read_later, trace.recorded)
        else:
            self.assemble()
            served.logs.clear()
        return trace
