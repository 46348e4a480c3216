"""Listening to the residual stream: the blocks of a model, their norms and their attention.

A block is the outermost numbered module around attention. While it runs, a `StreamGraph` follows
the stream; when it returns, what was added is handed to the recorder.
"""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from torch import Tensor, nn

from glassformer.tracing.guard import describe
from glassformer.tracing.layout import Place
from glassformer.tracing.model_lookup import ModuleTree
from glassformer.tracing.patches import FAILED, listen
from glassformer.tracing.readout import ClassLabels, Readout, ReadoutGraph
from glassformer.tracing.recorder import Recorder
from glassformer.tracing.stream_graph import NotFollowed, StreamGraph


class StreamListener:
    """Follows the stream through the blocks of a model, pass by pass."""

    def __init__(self, tree: ModuleTree, recorder: Recorder) -> None:
        assert recorder.layout is not None
        self.tree, self.places, self.recorder = tree, recorder.layout.places, recorder
        self.graph: StreamGraph | None = None
        self.block: nn.Module | None = None  # that is running
        self.readout: ReadoutGraph | None = None  # of the present pass
        self.depth = 0  # of models inside of models
        self.blocks = find_blocks(tree, self.places)
        self.first = {stack: block for block, stack in reversed(self.blocks.items())}
        self.last = {stack: block for block, stack in self.blocks.items()}

    def attach(self, undo: list[Callable[[], None]]) -> None:
        tap = self.recorder.tap
        undo += [self._close, self._close_readout]
        for block, stack in self.blocks.items():
            enter, leave = partial(self._enter, stack), partial(self._leave, stack)
            undo.append(listen(block, "forward", tap(before=enter, after=leave)))
        self._listen_to_sites(undo)
        self._listen_to_roots(undo)
        for module in self.norms:
            undo.append(listen(module, "forward", tap(after=self._pass_norm)))

    def _listen_to_sites(self, undo: list[Callable[[], None]], **options: Any) -> None:
        for module, place in self.places.items():
            enter = partial(self._enter_site, place)
            tap = self.recorder.tap(before=enter, after=self._leave_site, **options)
            undo.append(listen(module, "forward", tap))

    def _listen_to_roots(self, undo: list[Callable[[], None]]) -> None:
        for root in getattr(self.recorder.layout, "roots", ()):
            tap = self.recorder.tap(before=self._enter_root, after=self._leave_root)
            undo.append(listen(root, "forward", tap))

    @property
    def norms(self) -> list[nn.Module]:
        """The modules that norm, by the names of their classes."""
        return [m for m in self.tree.paths if re.search("norm", type(m).__name__, re.IGNORECASE)]

    def _enter(self, stack: str, block: nn.Module, args: tuple, options: dict[str, Any]) -> None:
        if self.graph is not None:  # a block inside of a block
            return
        start = find_start(args, options)
        if start is None:
            self.recorder.refuse_stream(stack, "its blocks read no (B, L, C) tensor")
            return
        self._open(block, start)

    def _open(self, block: nn.Module, start: Tensor) -> StreamGraph:
        if self.readout is not None:
            self.readout.stop()
        self.block, self.graph = block, StreamGraph(start, self._guarded)
        self.graph.__enter__()
        return self.graph

    def _guarded(self) -> AbstractContextManager[None]:
        return self.recorder.guard.catch(self.recorder.name, self.recorder.refuse_all)

    def _leave(self, stack: str, block: nn.Module, _args: tuple, _options: dict, out: Any) -> None:
        graph = self.graph
        if graph is None or block is not self.block:
            return
        self._close()
        if out is FAILED:
            return
        end = first_tensor(out)
        try:
            steps = graph.steps_to(end)
        except NotFollowed as error:
            self.recorder.refuse_stream(stack, str(error))
            return
        ends = {"is_first": block is self.first[stack], "is_last": block is self.last[stack]}
        layout = self.recorder.layout
        layer = 0 if layout is None else layout.first_layer
        self.recorder.record_stream(stack, graph.start, steps, end, **ends, layer=layer)
        self._end_block(stack, end, out)

    def _end_block(self, stack: str, end: Tensor, out: Any) -> None:
        """A block has returned; the scores may follow from here."""
        self.recorder.note_output(stack, out)
        if self.readout is not None:
            self.stack = stack
            self.readout.begin(end)

    def _enter_root(self, _root: nn.Module, _args: tuple, _options: dict) -> None:
        if not self.depth:
            self.readout = ReadoutGraph(self._guarded)
            self.readout.__enter__()
        self.depth += 1

    def _leave_root(self, root: nn.Module, _args: tuple, _options: dict, out: Any) -> None:
        """The model returns: its scores, if it has any, follow from the end of the stream."""
        self.depth -= 1
        graph = self.readout
        if self.depth or graph is None:
            return
        self._close_readout()
        logits = getattr(out, "logits", None)
        if isinstance(logits, Tensor) and logits.ndim in (2, 3) and graph.start is not None:
            keep = partial(self.recorder.record_readout, self.stack)
            if self.recorder.trace.part is not None:
                # Computing scores once more would wait for ranks that may not be watching.
                keep(Readout(reason="the model is split over several processes"))
                return
            try:
                readout = graph.read(logits)
                readout.classes = _name_classes(root, logits.shape[-1])
                keep(readout)
            except Exception as error:  # the stream is right without it
                keep(Readout(reason=describe(error)))

    def _close_readout(self) -> None:
        readout, self.readout = self.readout, None
        if readout is not None:
            readout.__exit__(None, None, None)

    def _close(self) -> None:
        graph, self.graph = self.graph, None
        if graph is not None:
            graph.__exit__(None, None, None)

    def _enter_site(self, place: Place, _module: nn.Module, _args: tuple, _options: dict) -> None:
        if self.graph is not None:
            self.graph.owner = place.name

    def _leave_site(self, _module: nn.Module, _args: tuple, _options: dict, _out: Any) -> None:
        if self.graph is not None:
            self.graph.owner = None

    def _pass_norm(self, module: nn.Module, args: tuple, options: dict, out: Any) -> None:
        given = args[0] if args else next(iter(options.values()), None)
        if self.graph is not None and isinstance(given, Tensor) and isinstance(out, Tensor):
            self.graph.pass_norm(module, given, out)
        elif self.readout is not None and isinstance(given, Tensor) and isinstance(out, Tensor):
            self.readout.pass_norm(module, given, out)


def _name_classes(model: nn.Module, n: int) -> ClassLabels | None:
    """The labels of the classes that a model scores; None where it scores its vocabulary."""
    config: Any = getattr(model, "config", None)
    labels = getattr(config, "id2label", None)
    if not isinstance(labels, dict) or set(labels) != set(range(n)):
        return None
    if getattr(config, "vocab_size", None) == n:
        return None
    return ClassLabels(tuple(str(labels[i]) for i in range(n)))


def find_start(args: tuple, options: dict[str, Any]) -> Tensor | None:
    """The stream that a block is given: the first (B, L, C) tensor."""
    given = (x for x in (*args, *options.values()) if isinstance(x, Tensor))
    found = next((x for x in given if x.is_floating_point()), None)
    return found if found is not None and found.ndim == 3 else None


def first_tensor(out: Any) -> Tensor:
    """The stream that a block returns, by itself or before other things."""
    return out if isinstance(out, Tensor) else out[0]


def find_blocks(tree: ModuleTree, places: dict[nn.Module, Place]) -> dict[nn.Module, str]:
    """The blocks of a model, in order, and their stacks; some may have no attention."""
    by_path = {path: module for module, path in tree.paths.items()}
    blocks: dict[nn.Module, str] = {}
    known: set[str] = set()
    for module, place in places.items():
        parts = tree.paths[module].split(".")
        at = next((i for i, part in enumerate(parts) if part.isdigit()), None)
        if at is None or (beside := ".".join(parts[:at])) in known:
            continue
        known.add(beside)
        for block in by_path[beside].children():
            blocks.setdefault(block, place.stack)
    return blocks
