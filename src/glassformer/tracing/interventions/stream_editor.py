"""Changing the residual stream: the blocks that are changed run under a graph with edits.

Whether the norm after an addition belongs to the stream (post-norm) or to the part that reads it
(pre-norm) shows only when a block has run. So a block that is changed first runs in a trial that
nothing records, with copies of its caches. The trial names its parts and borders by the order in
which the block makes its streams, and each later run must make the same ones.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from glassformer.errors import InterventionError
from glassformer.tracing.interventions.editor import Editor, changes_state
from glassformer.tracing.interventions.numbers import resolve_numbers
from glassformer.tracing.interventions.values import Intervention
from glassformer.tracing.model_lookup import ModuleTree
from glassformer.tracing.patches import find_taps, listen, only_group
from glassformer.tracing.recorder import Recorder
from glassformer.tracing.stream import BlockOutput
from glassformer.tracing.stream_graph import Added, NotFollowed, StreamGraph, StreamStep
from glassformer.tracing.stream_listener import (
    StreamListener,
    find_start,
    first_tensor,
)
from glassformer.tracing.stream_steps import name_steps

_GROUP = "stream"


class BlockPlan:
    """The parts and borders of one block, by the numbers of its streams."""

    def __init__(self, stack: str, layer: int, graph: StreamGraph, end: Tensor) -> None:
        self.parts: dict[int, list[str]] = {}
        self.borders: dict[int, str] = {}
        way = graph.way_to(end)
        self.numbers = [number for number, _ in way]
        named = iter(name_steps(stack, layer, [step for _, steps in way for step in steps]))
        last = None
        for number, steps in way:
            found = [next(named) for _ in steps]
            if any(each.kind for each in found):
                last = found[-1].name
                self.parts[number] = [each.name for each in found]
            if last is not None:  # a norm or a factor after a part moves its border
                self.borders = {n: name for n, name in self.borders.items() if name != last}
                self.borders[number] = last

    @property
    def names(self) -> list[str]:
        return [name for names in self.parts.values() for name in names]


class KnownBlock(NamedTuple):
    """A block that need not run: what it returns is known."""

    state: Tensor
    output: BlockOutput

    def give(self, run: Callable[[], Any]) -> Any:
        """What the block returns; it runs only for what it returns beside the stream."""
        if self.output == "tensor":
            return self.state
        if self.output == "more":
            return _replace_first(run(), self.state)
        return self.state, *[None] * (int(self.output) - 1)


KnownBlocks = dict[tuple[str, int], KnownBlock]  # by stack and layer


@dataclass
class Shortcuts:
    """What a pass need not compute: known blocks, and whatever follows the last one wanted."""

    known: KnownBlocks = field(default_factory=dict)
    last: tuple[str, int] | None = None  # after this block nothing is wanted but the stream


class StreamReached(BaseException):  # not an error: no model may catch it
    """Ends a pass after the last block that is wanted, and carries the state."""

    def __init__(self, state: Tensor) -> None:
        super().__init__()
        self.state = state


class BlockEdits:
    """The edits of one run of a block."""

    def __init__(self, editor: Editor, plan: BlockPlan, start: int) -> None:
        self.editor, self.plan, self.start = editor, plan, start

    def edit_parts(
        self, number: int, steps: tuple[StreamStep, ...]
    ) -> tuple[StreamStep, ...] | None:
        changed, is_changed = [], False
        for name, step in zip(self.plan.parts.get(number, ()), steps, strict=False):
            assert isinstance(step, Added)
            value = self.editor.edit_part(name, step.value, self.start)
            is_changed |= value is not None
            changed.append(step if value is None else replace(step, value=value, matrix=None))
        return tuple(changed) if is_changed else None

    def edit_state(self, number: int, state: Tensor) -> Tensor | None:
        parts, border = self.plan.parts.get(number, ()), self.plan.borders.get(number)
        return self.editor.edit_sum(parts, border, state, self.start)


class StreamEditor(StreamListener):
    """Changes the stream of a model, and records it where that is asked for."""

    def __init__(
        self,
        tree: ModuleTree,
        recorder: Recorder,
        editor: Editor,
        shortcuts: Shortcuts | None = None,
    ) -> None:
        super().__init__(tree, recorder)
        self.editor, self.shortcuts = editor, shortcuts or Shortcuts()
        self.plans: dict[tuple[str, int, bool], BlockPlan] = {}
        self.counts: dict[str, int] = {}
        self.pass_number = -1

    def attach(self, undo: list[Callable[[], None]]) -> None:
        undo += [self._close, self._close_readout]
        tap = self.recorder.tap
        for block, stack in self.blocks.items():
            undo.append(listen(block, "forward", tap(around=partial(self._run_block, stack))))
        self._listen_to_sites(undo, group=_GROUP)
        if self.recorder.residual:
            self._listen_to_roots(undo)
        for module in self.norms:
            undo.append(listen(module, "forward", tap(around=self._run_norm, group=_GROUP)))

    def check(self) -> None:
        """Reject places that the model does not have, and changes inside of changes."""
        for block in self.blocks:
            if any(tap.around is not None for tap in find_taps(block, "forward")):
                raise InterventionError(
                    "This model is being changed already; join the interventions by & instead."
                )
        stacks = list(self.blocks.values())
        counts = {s: 0 if self._is_shared(s) else stacks.count(s) for s in stacks}
        self.editor.check_places([place.name for place in self.places.values()], counts)

    def _is_shared(self, stack: str) -> bool:
        """Whether one module may be many layers: how many is known only when it runs."""
        return list(self.blocks.values()).count(stack) == 1

    def _run_block(
        self, stack: str, call: Callable[..., Any], block: nn.Module, args: tuple, options: dict
    ) -> Any:
        """A block as it is changed; a run that is to end after it ends."""
        out = self._run_changed(stack, call, block, args, options)
        if self.graph is None and self.shortcuts.last == (stack, self.counts.get(stack, 0) - 1):
            raise StreamReached(first_tensor(out))
        return out

    def _run_changed(
        self, stack: str, call: Callable[..., Any], block: nn.Module, args: tuple, options: dict
    ) -> Any:
        if self.graph is not None:  # a block inside of a block
            return call(*args, **options)
        layer = self._count(stack)
        known = self.shortcuts.known.get((stack, layer))
        if known is not None:
            return self._give_known(stack, known, partial(call, *args, **options))
        start = self._first_position(stack)
        if layer == 0:
            args, options = self._edit_start(stack, args, options, start)
        edits = self.editor.of_block(stack, layer)
        if not edits and not self.recorder.residual:
            return call(*args, **options)
        x = find_start(args, options)
        if x is None:
            if edits:
                raise InterventionError(f"{edits[0]} needs a block that reads a (B, L, C) tensor.")
            return call(*args, **options)
        skip = self.editor.find_skip(stack, layer)
        before = x.clone() if skip is not None else x
        plan = None
        if any(edit is not skip for edit in edits):
            plan = self._plan(stack, layer, call, args, options, edits)
        graph = self._open(block, x)
        graph.edits = None if plan is None else BlockEdits(self.editor, plan, start)
        try:
            out = call(*args, **options)
        finally:
            self._close()
        computed = end = first_tensor(out)
        if skip is not None:
            b = resolve_numbers(skip.sequences, len(end), "sequences")
            end = computed.clone()
            end[b] = before[b]
            out = _replace_first(out, end)
        self._record(stack, layer, graph, computed, end, plan, out)
        return out

    def _give_known(self, stack: str, known: KnownBlock, run: Callable[[], Any]) -> Any:
        """What a block returned before; one that is shared runs, for that names its sites."""
        out = (known._replace(output="more") if self._is_shared(stack) else known).give(run)
        if self.readout is not None:
            self.readout.begin(known.state)
        return out

    def _record(
        self,
        stack: str,
        layer: int,
        graph: StreamGraph,
        computed: Tensor,
        end: Tensor,
        plan: BlockPlan | None,
        out: Any,
    ) -> None:
        """Check that what was planned has run, and keep the stream where it is recorded."""
        try:
            steps = graph.steps_to(computed)
        except NotFollowed as error:
            if plan is not None:
                raise InterventionError(f"{stack}.{layer} could not be changed: {error}.") from None
            if self.recorder.residual:
                with self._guarded():
                    self.recorder.refuse_stream(stack, str(error))
            return
        if plan is not None:
            numbers = dict.fromkeys(number for number, _ in graph.way_to(computed))
            own = [s for s in steps if not isinstance(s, Added) or s.name is None]
            names = [each.name for each in name_steps(stack, layer, own) if each.kind]
            if names != plan.names or list(numbers) != plan.numbers:
                raise InterventionError(
                    f"{stack}.{layer} computed its parts in another order than in its trial run, "
                    "so the intervention may have hit the wrong one. Please report this model."
                )
        if end is not computed:
            steps.append(Added.between(computed, end, "skip"))
        if self.recorder.residual:
            with self._guarded():
                known = self.shortcuts.known
                is_first = layer == sum((stack, i) in known for i in range(layer))
                ends = {"is_first": is_first, "is_last": self.block is self.last[stack]}
                self.recorder.record_stream(stack, graph.start, steps, end, layer=layer, **ends)
                self._end_block(stack, end, out)

    def _run_norm(
        self, call: Callable[..., Any], module: nn.Module, args: tuple, options: dict
    ) -> Any:
        out = call(*args, **options)
        with self._guarded():
            self._pass_norm(module, args, options, out)
        graph = self.graph
        if graph is None or graph.edits is None or not isinstance(out, Tensor):
            return out
        graph.is_paused = True
        try:
            return graph.edit(out, ())
        finally:
            graph.is_paused = False

    def _count(self, stack: str) -> int:
        """The number of the block in this pass."""
        if self.recorder.n_passes != self.pass_number:
            self.pass_number = self.recorder.n_passes
            self.counts = {}
        layer = self.counts.get(stack, 0)
        self.counts[stack] = layer + 1
        return layer

    def _first_position(self, stack: str) -> int:
        layout = self.recorder.layout
        return self.recorder.start if layout is not None and stack == layout.writer else 0

    def _edit_start(
        self, stack: str, args: tuple, options: dict, start: int
    ) -> tuple[tuple, dict[str, Any]]:
        x = find_start(args, options)
        if x is None:
            return args, options
        changed = self.editor.edit_sum((), f"{stack}.start", x, start)
        return (args, options) if changed is None else _replace_start(args, options, x, changed)

    def _plan(
        self,
        stack: str,
        layer: int,
        call: Callable[..., Any],
        args: tuple,
        options: dict,
        edits: list[Intervention],
    ) -> BlockPlan:
        """The parts of a block, found by a trial run that nothing records."""
        x = find_start(args, options)
        assert x is not None
        key = stack, layer, x.shape[1] == 1  # steps of generation may run otherwise
        if key not in self.plans:
            self.plans[key] = self._try_block(stack, layer, call, args, options, edits)
        _check_planned(self.plans[key], f"{stack}.{layer}", edits)
        return self.plans[key]

    def _try_block(
        self,
        stack: str,
        layer: int,
        call: Callable[..., Any],
        args: tuple,
        options: dict,
        edits: list[Intervention],
    ) -> BlockPlan:
        x = find_start(args, options)
        assert x is not None
        with _DetachedCopies():
            copies = deepcopy([c for c in (*args, *options.values()) if _is_cache(c)])
        args, options = _replace_start(args, options, x, x.clone(), iter(copies))
        start = find_start(args, options)
        assert start is not None
        self.graph = graph = StreamGraph(start)
        devices = [x.device] if x.device.type == "cuda" else []
        with torch.random.fork_rng(devices), only_group(_GROUP), torch.no_grad():
            graph.__enter__()
            try:
                out = call(*args, **options)
            finally:
                self._close()
        try:
            return BlockPlan(stack, layer, graph, first_tensor(out))
        except NotFollowed as error:
            raise InterventionError(
                f"{edits[0]} cannot be applied: the residual stream of {stack}.{layer} could not "
                f"be followed, because {error}. Its heads can still be changed, by head=."
            ) from None


def _check_planned(plan: BlockPlan, block: str, edits: list[Intervention]) -> None:
    """Reject places that this block does not have."""
    if wrong := [edit for edit in edits if edit.place not in {*plan.names, block}]:
        raise InterventionError(
            f"{block} has the parts {', '.join(plan.names)}; got {wrong[0].place!r}."
        )
    borders = list(plan.borders.values())
    for edit in edits:
        if changes_state(edit) and edit.place not in borders:
            raise InterventionError(
                f"{edit} needs a state of the stream, and there is none after {edit.place}: "
                f"parallel parts are added at once. Use {borders[-1]}."
            )


class _DetachedCopies(TorchFunctionMode):
    """While this is entered, tensors that were computed with gradients can be copied."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is Tensor.__deepcopy__:
            return args[0].detach().clone()
        return func(*args, **(kwargs or {}))


def _is_cache(value: Any) -> bool:
    return type(value).__name__.endswith("Cache")


def _replace_start(
    args: tuple, options: dict, x: Tensor, y: Tensor, caches: Iterator[Any] | None = None
) -> tuple[tuple, dict[str, Any]]:
    """The arguments with y in the place of x, and other caches in the place of these."""

    def change(value: Any) -> Any:
        if value is x:
            return y
        return next(caches) if caches is not None and _is_cache(value) else value

    return tuple(map(change, args)), {name: change(value) for name, value in options.items()}


def _replace_first(out: Any, x: Tensor) -> Any:
    return x if isinstance(out, Tensor) else (x, *out[1:])
