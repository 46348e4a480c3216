"""Watching models of transformers: what passes through their attention interface is kept.

The model computes by the function it would have called anyway, so that its outputs are the same
to the bit. What that function is known to do with masks, biases, caps and sinks is what a site
says; for eager attention, whose code every model brings along, one row of each call is recomputed
and a site that differs is refused. A row in which nothing is open, of padding, has weights of zero
here, while eager attention fills it with the mean of v.
"""

import inspect
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.errors import GlassformerError, TraceError
from glassformer.tracing.guard import Guard
from glassformer.tracing.live_trace import MOST_OPEN, LiveTrace
from glassformer.tracing.operand_store import Keeper
from glassformer.tracing.patches import FAILED, Tap, listen
from glassformer.tracing.selection import Choice
from glassformer.tracing.site_names import Place
from glassformer.tracing.sources.custom_attention import OwnAttention, head_count
from glassformer.tracing.sources.operand_recovery import explain_product
from glassformer.tracing.sources.operation_graph import Node
from glassformer.tracing.sources.site_steps import Step, Steps
from glassformer.tracing.sources.transformers_call import as_step
from glassformer.tracing.sources.transformers_interface import (
    SEEN,
    Computed,
    enter,
    implementations,
    parameters,
)
from glassformer.tracing.sources.transformers_layout import Layout, described
from glassformer.tracing.sources.transformers_run import ForeignRun
from glassformer.tracing.sources.transformers_text import given_tokens
from glassformer.tracing.trace import Run


def check(model: Any) -> None:
    """Refuse, before anything runs, what cannot be watched."""
    from transformers import PreTrainedModel

    if not isinstance(model, PreTrainedModel):
        raise TraceError(
            f"watch takes a model of transformers; got {type(model).__name__}. Use record for "
            "operands of your own."
        )
    if others := implementations(model) - {*SEEN, "None"}:
        raise TraceError(
            f"watch knows the arithmetic of {' and '.join(SEEN)}; this model uses "
            f"{', '.join(sorted(others))}. Use model.set_attn_implementation('sdpa')."
        )


class _Pass:
    """One call of the model from outside."""

    def __init__(self, module: nn.Module | None = None) -> None:
        self.module = module
        self.run: ForeignRun | None = None  # which it is part of, as soon as that is known
        self.start = 0  # how many tokens lie before it
        self.is_counted = False
        self.entries: Counter[nn.Module] = Counter()
        self.calls: Counter[nn.Module] = Counter()  # of the entry that goes on
        self.all_calls: Counter[nn.Module] = Counter()
        self.known: dict[Any, Any] = {}  # what masks were found to say


class Watcher:
    """Follows the passes of a model, and keeps what its attention is given."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        choice: Choice,
        outputs: bool,
        keeper: Keeper,
        guard: Guard,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.choice, self.outputs, self.keeper, self.guard = choice, outputs, keeper, guard
        self.name = type(model).__name__
        self.trace = LiveTrace(self.finish, model={})
        self.layout: Layout | None = None
        self.open: list[ForeignRun] = []  # those that may go on, the last one is going on
        self.passing = _Pass()
        self.depth = self.n_passes = 0
        self.deafen: dict[ForeignRun, Callable[[], None]] = {}
        self.undo: list[Callable[[], None]] = []

    def attach(self, undo: list[Callable[[], None]]) -> None:
        """Listen to the model; what is put into `undo` ends it."""
        self.trace.model |= described(self.model.config)
        self.layout = layout = Layout.of(self.model)
        self.undo = undo
        enter(self.model, self._tap(after=self._saw), undo)
        for module in layout.roots:
            tap = self._tap(before=self._enter, after=self._leave)
            undo.append(listen(module, "forward", tap))
        for module in layout.places.keys() - layout.own.keys():
            undo.append(listen(module, "forward", self._tap(before=self._entered)))
        catching = partial(self.guard.catching, self.name, self.refuse_all)
        own = OwnAttention(layout.own_inmost, self._saw_product, self._missed, catching)
        undo.append(own.close)

        def follow(module: nn.Module, args: tuple, options: dict) -> None:
            self._entered(module, args, options)
            own.before(module)

        def leave(module: nn.Module, _args: tuple, _options: dict, out: Any) -> None:
            own.after(module, out)

        for module in layout.own:
            undo.append(listen(module, "forward", self._tap(before=follow, after=leave)))

    def _tap(self, **callbacks: Any) -> Tap:
        return Tap(self.name, self.guard, self.refuse_all, **callbacks)

    def refuse_all(self, reason: str) -> None:
        """A fault that no site can be named for: nothing of the present run is trusted."""
        if self.layout is None:
            self.trace.add(Run(refusals={self.name: reason}))
            return
        run = self._begin() if self.passing.run is None else self.passing.run
        if self.passing.module in self.layout.readers:  # what is written to it is spoilt as well
            run.read.add(self.passing.module)
        run.spoil(reason)
        self.passing.run = run

    def close(self) -> None:
        """Put the last runs together; where passes showed nothing, say so."""
        self.finish()
        if self.n_passes and not any(run.sites or run.refusals for run in self.trace.recorded):
            layers = self.choice.layers
            chosen = "" if layers is None else f" of layers {sorted(layers)}"
            raise TraceError(
                f"it was passed {self.n_passes} time(s), but no attention{chosen} went through "
                "the interface of transformers."
            )

    def _enter(self, module: nn.Module, args: tuple, options: dict[str, Any]) -> None:
        is_outermost, self.depth = not self.depth, self.depth + 1
        if is_outermost:
            self.n_passes += 1
            self.passing = _Pass(module)
        given = _named(module, args, options)
        if is_outermost:
            self._begin_pass(module, given)
        run = self.passing.run
        if run is None:  # it could not be found out; the pass is refused
            return
        text = run.layout.text(module, is_outermost=is_outermost)
        if text is not None and (tokens := given_tokens(given)) is not None:
            run.tokens.setdefault(text, []).append(tokens)

    def _leave(self, _module: nn.Module, _args: tuple, _options: dict, out: Any) -> None:
        self.depth -= 1
        run = self.passing.run
        if not self.depth and run is not None and run.cache is None and out is not FAILED:
            self._listen(run, getattr(out, "past_key_values", None))

    def _entered(self, module: nn.Module, _args: tuple, _options: dict) -> None:
        self.passing.entries[module] += 1
        self.passing.calls[module] = 0

    def _begin_pass(self, module: nn.Module, given: dict[str, Any]) -> None:
        layout = self.layout
        assert layout is not None
        cache = given.get("past_key_values")
        self.passing.start = start = _length(cache)
        last = self.open[-1] if self.open else None
        is_awaited = last is not None and last.is_awaited
        if module in layout.readers:
            if last is None or not is_awaited or module in last.read:
                last = self._begin()
            last.read.add(module)
            self.passing.run = last
            return
        run = self._continued(cache, start)
        if run is not None:
            self.passing.run = run
            self.open.remove(run)
            self.open.append(run)
            if start < run.stop:
                run.shorten(start)
        elif last is None:
            run = self._begin()
        elif not layout.both or given.get("encoder_outputs") is None:
            run = last if is_awaited and not layout.both else self._begin()
        else:
            run = last if is_awaited else self._begin(keeping_source=True)
        self.passing.run = run
        run.stop = start
        self._listen(run, cache)

    def _continued(self, cache: Any, start: int) -> ForeignRun | None:
        """The run that this cache belongs to, if what it holds is what was seen."""
        if cache is None or not start:
            return None
        found = [run for run in self.open if run.cache is cache and start <= run.stop]
        return found[0] if found else None

    def _begin(self, *, keeping_source: bool = False) -> ForeignRun:
        if self.open:
            run = self.open[-1].next(keeping_source=keeping_source)
        else:
            assert self.layout is not None
            run = ForeignRun(self.layout, self.guard, self.keeper, self.tokenizer)
        for old in list(self.open):
            if old.cache is None or len(self.open) >= MOST_OPEN:
                self._close(old)
        self.trace.add(run.run)
        self.open.append(run)
        return run

    def _close(self, run: ForeignRun) -> None:
        self.open.remove(run)
        self.deafen.pop(run, _nothing)()
        run.finish()

    def _listen(self, run: ForeignRun, cache: Any) -> None:
        if cache is run.cache:
            return
        self.deafen.pop(run, _nothing)()
        run.cache = cache
        if hasattr(cache, "reorder_cache"):

            def reordered(_cache: Any, args: tuple, options: dict, out: Any) -> None:
                if out is not FAILED:
                    run.reorder(args[0] if args else options["beam_idx"])

            tap = Tap(self.name, self.guard, run.spoil, after=reordered)
            self.deafen[run] = listen(cache, "reorder_cache", tap)
            self.undo.append(self.deafen[run])

    def _saw(self, module: nn.Module, args: tuple, options: dict, computed: Computed) -> None:
        """Keep what one call of attention was given."""
        call = computed.call(args, options)
        known = self.passing.known
        self._record(
            module,
            len(call.q),
            lambda start: as_step(call, computed.out, stop=start + call.q.shape[2], known=known),
        )

    def _saw_product(self, module: nn.Module, node: Node) -> None:
        """A product with a softmax, or a fused kernel, in a module that goes without interface."""
        heads = head_count(module)
        self._record(
            module,
            None,
            lambda start: (explain_product(node, start=start, n_heads=heads), None),
        )

    def _missed(self, module: nn.Module, reason: str) -> None:
        run = self.passing.run
        if run is not None and self.depth:
            place = run.layout.place(module)
            if self.choice.has_layer(place.layer):
                run.places.setdefault(place.name, place)
                run.refuse(place.name, reason)

    def _record(
        self,
        module: nn.Module,
        n_sequences: int | None,
        make_step: Callable[[int], tuple[Step, Tensor | None]],
    ) -> None:
        """Keep a call of attention; `make_step` receives the number of tokens before it."""
        passing, run = self.passing, self.passing.run
        if not self.depth or run is None or run.fault is not None:
            return
        place = self._place(module, run)
        is_written = place.stack == run.layout.writer
        if is_written and not passing.is_counted and n_sequences is not None:
            run.order.append(torch.arange(n_sequences))
            passing.is_counted = True
        if not self.choice.has_layer(place.layer):
            return
        steps = run.steps(place)
        if place.name in run.refusals:
            return
        with self.guard.catching(place.name, lambda why: run.refuse(place.name, why)):
            self._keep(run, place, steps, make_step)

    def _place(self, module: nn.Module, run: ForeignRun) -> Place:
        """What this call of a module is called: layers may share one, and one may call again."""
        passing, place = self.passing, run.layout.place(module)
        passing.calls[module] += 1
        passing.all_calls[module] += 1
        again = passing.entries[module] - 1
        if again > 0 and place.layer is not None and run.layout.is_shared(module):
            return place.shifted(again).part(passing.calls[module])
        return place.part(passing.all_calls[module])

    def _keep(
        self,
        run: ForeignRun,
        place: Place,
        steps: Steps,
        make_step: Callable[[int], tuple[Step, Tensor | None]],
    ) -> None:
        is_fixed = bool(getattr(run.cache, "is_compileable", False)) and not place.is_cross
        with torch.no_grad():
            try:
                step, difference = make_step(self.passing.start)
                step = step.written() if is_fixed else step
                heads = self.choice.head_numbers(step.q.shape[1], place.name)
            except GlassformerError as error:  # the model does what cannot be shown
                run.refuse(place.name, str(error).rstrip("."))
                return
            if place.stack == run.layout.writer and not self.passing.is_counted:
                run.order.append(torch.arange(len(step.q)))
                self.passing.is_counted = True
            step = step if self.outputs else step.without_output()
            rows = self.choice.row_places(
                steps.n_rows, step.L, step=len(steps.steps), device=step.q.device
            )
            run.add(place, step.chosen(heads, rows))
            if difference is not None:
                steps.differences.append(difference)

    def finish(self) -> None:
        """Put together what has been recorded."""
        for run in self.open:
            run.finish()


def _nothing() -> None:
    pass


def _named(module: nn.Module, args: tuple, options: dict[str, Any]) -> dict[str, Any]:
    if not args:
        return options
    names = parameters(inspect.unwrap(type(module).forward))[1:]
    return {**dict(zip(names, args, strict=False)), **options}


def _length(cache: Any) -> int:
    return int(cache.get_seq_length()) if hasattr(cache, "get_seq_length") else 0
