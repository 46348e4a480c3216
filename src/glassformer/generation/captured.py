"""Decoding on a GPU by replayed CUDA graphs: no Python and no host between two tokens.

    host     replay replay replay … ─ copy tokens ─ replay replay replay …
    GPU             step ─ choose ─ step ─ choose ─ step ─ choose ─ …
                                             └ tokens of earlier steps reach the host meanwhile

A graph has fixed addresses, so an `Engine` keeps state and graphs for one batch size and a capacity
rounded up to a power of 2, and is used again by the next session of the same model.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.errors import ConfigError
from glassformer.generation.beam_state import BeamState
from glassformer.generation.captured_prompts import PromptGraphs
from glassformer.generation.cuda_prompts import read_prompts
from glassformer.generation.cuda_step import CudaStep
from glassformer.generation.direct import DirectSession
from glassformer.generation.draft_state import WIDE, AheadPass, DraftState
from glassformer.generation.kernel_compilation import compile_together
from glassformer.generation.sampling import Sampling, adjust, choose
from glassformer.models import Decoder, DecoderWeights, EncoderDecoder

_LEAST = 128  # tokens of the smallest capacity
_KEPT = 16  # engines of a model that wait for the next session
_SHARE = 8  # they may have that part of the GPU's memory
_CHUNK = 16  # steps between two looks at what was written

Advance = Sampling | BeamState | AheadPass | None  # what follows the logits of a step


class EngineKey(NamedTuple):
    """What a graph depends on beside the weights."""

    batch: int
    capacity: int
    context_length: int  # 0 for a decoder
    device: torch.device
    copies: int = 1  # rows of one prompt


class Engine:
    """The state of a batch and the graphs that advance it.

    `written` and `seen` have a row for each column of the text, so that what one step writes lies
    together.
    """

    def __init__(self, weights: DecoderWeights, key: EngineKey) -> None:
        self.key = key
        self.weights = weights
        self.step = CudaStep(weights, batch=key.batch, capacity=key.capacity, copies=key.copies)
        if key.context_length:
            self.step.allocate_context(key.context_length)
        shape = (key.capacity, key.batch)
        self.written = torch.zeros(shape, dtype=torch.int32, device=key.device)
        is_pinned = key.device.type == "cuda"
        self.on_host = torch.zeros(shape, dtype=torch.int32, pin_memory=is_pinned)
        self.seen = torch.zeros(shape, dtype=torch.long, device=key.device)
        self.columns = torch.arange(key.capacity, device=key.device)
        self.generator = torch.Generator(key.device)
        self.searches: dict[tuple[int, ...], BeamState] = {}
        self.drafting: DraftState | None = None
        self.prompts = PromptGraphs(self.step)
        self.graphs: dict[tuple[Advance, bool], torch.cuda.CUDAGraph] = {}

    @property
    def n_bytes(self) -> int:
        """The memory of what grows with the batch and the text."""
        return sum(each.nbytes for each in (self.step.memory, *self.step.contexts))

    def find_search(self, beams: int, stops: Sequence[int]) -> BeamState:
        """The state of a search with these settings, which its graph knows."""
        key = (beams, *stops)
        if key not in self.searches:
            self.searches[key] = BeamState(self.step, beams=beams, stops=stops)
        return self.searches[key]

    def find_drafting(self, draft: DecoderWeights | None) -> DraftState:
        """The state of a text for which a model with these weights guesses, or the text so far."""
        if self.drafting is None or self.drafting.draft_weights is not draft:
            self.graphs = {
                key: graph
                for key, graph in self.graphs.items()
                if not isinstance(key[0], AheadPass)
            }
            self.drafting = DraftState(self.step, draft)
        return self.drafting

    def replay(self, advance: Advance = None) -> None:
        """One step; with `advance` it also chooses the next tokens and moves on."""
        key = (advance, self.step.is_restricted)
        graph = self.graphs.get(key)
        if graph is None:
            graph = self.graphs[key] = self._capture(advance)
        graph.replay()

    def _capture(self, advance: Advance) -> torch.cuda.CUDAGraph:
        # A step runs once before it is captured. What it moved on is put back; the rest is written
        # again.
        state = (self.step.tokens, self.step.lengths, self.written, self.seen)
        state += advance.moving if isinstance(advance, BeamState | AheadPass) else ()
        before = [each.clone() for each in state]
        drawn = self.generator.get_state()
        stream = torch.cuda.Stream(self.key.device)
        stream.wait_stream(torch.cuda.current_stream(self.key.device))
        with torch.cuda.stream(stream):
            compile_together(lambda: self._run(advance), self.key.device)
            self._run(advance)
        torch.cuda.current_stream(self.key.device).wait_stream(stream)
        for each, kept in zip(state, before, strict=True):
            each.copy_(kept)
        self.generator.set_state(drawn)
        return self.capture(lambda: self._run(advance))

    def capture(self, run: Callable[[], object]) -> torch.cuda.CUDAGraph:
        """What `run` launches, as a graph; its kernels must be compiled."""
        stream = torch.cuda.Stream(self.key.device)
        stream.wait_stream(torch.cuda.current_stream(self.key.device))
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        # cuBLAS keeps its workspace between calls, and others may free it (a compiled model does).
        # Cleared before and after, the graph has one of its own.
        torch._C._cuda_clearCublasWorkspaces()
        # Other threads may go on using the GPU meanwhile.
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            run()
        torch._C._cuda_clearCublasWorkspaces()
        return graph

    def _run(self, advance: Advance) -> None:
        if isinstance(advance, BeamState | AheadPass):
            advance.advance()
            return
        logits, sampling = self.step(), advance
        if sampling is None:
            return
        if sampling.is_argmax:
            self.step.choose(self.written)
            return
        allowed = logits + self.step.excluded
        if self.step.is_restricted:
            allowed = allowed.masked_fill(self.step.forbidden != 0, -torch.inf)
        lengths = self.step.lengths
        is_there = (self.columns <= lengths[:, None]) & (self.columns >= self.step.missing[:, None])
        adjusted = adjust(allowed, sampling, self.seen.T, mask=is_there)
        tokens = choose(adjusted, sampling, self.generator)
        lengths.add_(1)
        here = lengths.long()[None]
        self.seen.scatter_(0, here, tokens[None])
        valid = torch.where((adjusted == -torch.inf).all(dim=1), -2, tokens)
        valid = torch.where(adjusted.isnan().any(dim=1), -1, valid)
        self.written.scatter_(0, here, valid.to(self.written.dtype)[None])
        self.step.tokens.copy_(tokens)


_engines: WeakKeyDictionary[torch.nn.Module, list[Engine]] = WeakKeyDictionary()
_lock = threading.Lock()


def borrow_engine(model: Decoder | EncoderDecoder, key: EngineKey) -> Engine:
    """An engine that no session uses, made anew where none fits the model as it is now."""
    weights = DecoderWeights.of(model)
    with _lock:
        waiting = _engines.setdefault(model, [])
        waiting[:] = [each for each in waiting if each.weights is weights]
        for engine in waiting:
            if engine.key == key:
                waiting.remove(engine)
                return engine
    try:
        return Engine(weights, key)
    except torch.OutOfMemoryError:
        with _lock:
            waiting.clear()
        return Engine(weights, key)


def return_engine(model: Decoder | EncoderDecoder, engine: Engine) -> None:
    """Keep an engine for the next session, and older ones as far as there is room."""
    room = _room_on(engine.key.device)
    with _lock:
        waiting = _engines.setdefault(model, [])
        waiting.append(engine)
        del waiting[:-_KEPT]
        while len(waiting) > 1 and sum(each.n_bytes for each in waiting) > room:
            del waiting[0]


def _room_on(device: torch.device) -> int:
    """How many bytes the engines of a model may hold while they wait."""
    if device.type != "cuda":
        return 0
    return torch.cuda.get_device_properties(device).total_memory // _SHARE


def round_up(n: int, least: int = _LEAST) -> int:
    """The power of 2 from n on, at least `least`.

    >>> round_up(100), round_up(129), round_up(5, 1)
    (128, 256, 8)
    """
    return max(least, 1 << (n - 1).bit_length())


class CapturedSession(DirectSession):
    """Decoding by the graphs of an engine, which goes to the next session when this is closed."""

    step: CudaStep
    drops_prompts = False  # graphs have the batch with which they were captured

    def _set_up(self, batch: int, capacity: int, missing: Tensor | None) -> None:
        length = 0 if self.context is None else round_up(self.context.shape[1], 64)
        sizes = (batch, round_up(capacity + WIDE), length)  # guesses may lie beyond the text
        key = EngineKey(*sizes, self.prompt.device, self.copies)
        self.engine = borrow_engine(self.model, key)
        self.step = self.engine.step
        self.step.missing.zero_()
        if missing is not None:
            self.step.missing.copy_(missing)
        self.step.exclude((), None)

    def _prefill(self, tokens: Int[Tensor, "B L"]) -> Float[Tensor, "B L C"]:
        if self.context is not None:
            return super()._prefill(tokens)
        missing = self.missing if self.is_padded else None
        with torch.cuda.device_of(tokens):
            return read_prompts(self.step, tokens, missing, copies=self.copies)

    def _read(self, tokens: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        self.step.tokens.copy_(tokens)
        self.step.lengths.fill_(self.length)
        self.engine.replay()
        return self.step.logits.clone()

    def close(self) -> None:
        return_engine(self.model, self.engine)

    def stream_tokens(
        self,
        sampling: Sampling,
        *,
        max_new_tokens: int,
        never: Sequence[int],
        forbidden: Bool[Tensor, "B V"] | None = None,
        seed: int | None,
    ) -> Iterator[list[int]]:
        """The tokens of each step, read while the GPU works on later ones."""
        self.begin(never, forbidden, seed)
        L = self.fresh.shape[1]
        pending: deque[tuple[range, torch.cuda.Event]] = deque()
        n_launched, size = 0, 1
        while n_launched < max_new_tokens or pending:
            while n_launched < max_new_tokens and len(pending) < 2:
                n = min(size, max_new_tokens - n_launched)
                size = min(2 * size, _CHUNK)
                for _ in range(n):
                    self.engine.replay(sampling)
                part = range(L + n_launched, L + n_launched + n)
                pending.append((part, fetch(self.engine.written, self.engine.on_host, part)))
                n_launched += n
            columns, event = pending.popleft()
            event.synchronize()
            for tokens in self.engine.on_host[columns.start : columns.stop].tolist():
                check_chosen(tokens)
                yield tokens

    def begin(
        self, never: Sequence[int], forbidden: Bool[Tensor, "P V"] | None, seed: int | None
    ) -> None:
        """Read all but the last token of each prompt, which the first step reads."""
        engine, step, L = self.engine, self.step, self.fresh.shape[1]
        step.exclude(never, forbidden)
        if seed is None:
            engine.generator.seed()
        else:
            engine.generator.manual_seed(seed)
        if L > 1 and (self.context is not None or self.copies > 1):
            self._prefill(self.prompt[:, :-1])
        elif L > 1:
            with torch.cuda.device_of(self.prompt):
                rest = self.prompt[:, :-1]
                engine.prompts.read(rest, engine.capture, is_padded=self.is_padded)
        engine.seen[:L] = self.fresh.T
        step.tokens.copy_(self.fresh[:, -1])
        step.lengths.fill_(L - 1)


def fetch(
    written: Int[Tensor, "T n"], on_host: Int[Tensor, "T m"], rows: range
) -> torch.cuda.Event:
    """Begin to copy these rows to the host; they are there when the event has happened."""
    part = slice(rows.start, rows.stop)
    on_host[part, : written.shape[1]].copy_(written[part], non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    return event


def check_chosen(tokens: Sequence[int]) -> None:
    """Report where no token could be chosen, which steps write as −1 and −2."""
    if min(tokens) < 0:
        raise _name_fault(tokens)


def _name_fault(tokens: Sequence[int]) -> ConfigError:
    if -1 in tokens:
        return ConfigError(
            f"logits must be numbers; got NaN in row {tokens.index(-1)}. Look for an overflow or a "
            "division by zero in the model."
        )
    return ConfigError(
        "Every row of logits must leave a token to choose; got nothing but -inf in row "
        f"{tokens.index(-2)}. Exclude fewer tokens."
    )
