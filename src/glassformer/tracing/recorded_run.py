"""One run while it is being recorded: the steps of every site, the tokens, the beams, the faults.

A run is one text read, and all that generation adds to it: steps that continue a cache are rows
below each other.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref

import torch
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.beams import follow_beams
from glassformer.tracing.guard import Guard
from glassformer.tracing.host_copies import HostCopies
from glassformer.tracing.layout import Layout, Place
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.site import Site
from glassformer.tracing.site_assembly import drop_empty_sites, name_selected_rows
from glassformer.tracing.site_steps import Step, Steps
from glassformer.tracing.stream import Stream
from glassformer.tracing.stream_steps import StreamSteps
from glassformer.tracing.text_labels import label_following, label_rows, name_texts, repeat_rows
from glassformer.tracing.trace import ModelCall, Run, TracedText


class RecordedRun:
    """What has been recorded so far; `finish` assembles it into a run of the trace."""

    def __init__(self, layout: Layout, guard: Guard, store: OperandStore, tokenizer: Any) -> None:
        self.layout, self.guard, self.store, self.tokenizer = layout, guard, store, tokenizer
        self.run = Run()
        self.sites: dict[str, Steps] = {}
        self.places: dict[str, Place] = {}
        self.streams: dict[str, StreamSteps] = {}
        self.refusals: dict[str, str] = {}
        self.fault: str | None = None  # why nothing of this run can be shown
        self.tokens: dict[str, list[Tensor]] = {}
        self.copies = HostCopies()  # of the tokens
        self.order: list[Tensor] = []  # for each step, which rows the beams continue
        self.read: set[Any] = set()  # encoders that have read their text
        self.stop = 0  # the length of the text so far
        self.is_stale = False
        self._stop_following: Callable[[], None] = _do_nothing
        self._cache: ref | None = None

    @property
    def cache(self) -> Any:
        """The cache that the run continues; None without one, or once it is gone."""
        return None if self._cache is None else self._cache()

    @cache.setter
    def cache(self, cache: Any) -> None:
        self._cache = None if cache is None else ref(cache)

    def follow(self, stop: Callable[[], None]) -> None:
        """Beams of its cache are listened to, until `stop` is called."""
        self._stop_following = stop

    def stop_following(self) -> None:
        """Listen no longer; `stop` leads back to this run, which nobody would free until later."""
        stop, self._stop_following = self._stop_following, _do_nothing
        stop()

    @property
    def is_awaiting_writer(self) -> bool:
        """Whether its source was read, and nothing is written yet."""
        return not self.order and (self.fault is None or bool(self.read))

    def next_run(self, *, keeping_source: bool) -> "RecordedRun":
        """The run after this one; it may share the encoder's part."""
        run = RecordedRun(self.layout, self.guard, self.store, self.tokenizer)
        if keeping_source:
            writer = self.layout.writer
            run.sites = {n: s for n, s in self.sites.items() if self.places[n].stack != writer}
            run.places = {n: self.places[n] for n in run.sites}
            run.refusals = {n: r for n, r in self.refusals.items() if n in run.sites}
            run.tokens = {n: t for n, t in self.tokens.items() if n == "source"}
            run.copies = self.copies
            run.streams = {n: s for n, s in self.streams.items() if n != writer}
            run.fault = self.fault
            run.is_stale = self.fault is not None
        return run

    def spoil(self, reason: str) -> None:
        """Refuse the whole run: passes or beams could not be followed."""
        self.fault = self.fault or reason
        self.is_stale = True

    def refuse(self, name: str, reason: str) -> None:
        self.refusals.setdefault(name, reason)
        self.is_stale = True

    def note_call(self, model: Any, args: tuple | None, options: dict[str, Any]) -> None:
        """Keep how the model was called, so that it can be called again."""
        self.run.calls.append(ModelCall(ref(model), args, dict(options)))

    def add_tokens(self, text: str, tokens: Tensor) -> None:
        self.tokens.setdefault(text, []).append(self.copies.begin(tokens))

    def add(self, place: Place, step: Step, difference: Tensor | None) -> None:
        """Keep one call of attention."""
        steps = self.sites[place.name]
        steps.add(step, self.store)
        if difference is not None:
            steps.differences.append(difference)
        if place.stack == self.layout.writer and not place.is_cross:
            self.stop = max(self.stop, step.stop)

    def open_site(self, place: Place) -> Steps:
        """The steps of a site so far; a text that does not grow starts over each time."""
        self.is_stale = True
        self.places[place.name] = place
        steps = self.sites.setdefault(place.name, Steps(place.is_cross))
        if place.stack != self.layout.writer:
            steps.steps.clear()
        return steps

    def open_stream(self, stack: str, *, is_new: bool) -> StreamSteps:
        """The residual stream of a stack so far; a text that does not grow is read anew."""
        self.is_stale = True
        stream = self.streams.setdefault(stack, StreamSteps(stack))
        if is_new and stack != self.layout.writer:
            stream.passes.clear()
        return stream

    def shorten(self, stop: int) -> None:
        """Follow a cropped cache: the dropped tokens were only a trial."""
        for name, steps in self.sites.items():
            if self.places[name].stack == self.layout.writer and not steps.is_cross:
                steps.shorten(stop)
        if self.layout.writer in self.streams:
            self.streams[self.layout.writer].shorten(stop)
        kept, n = [], 0
        if len(self.tokens.get("tokens", ())) != len(self.order):
            raise TraceError("its cache was cropped, and which tokens are left is not known")
        for chunk in self.tokens["tokens"]:
            kept.append(chunk[:, : max(0, stop - n)])
            n += chunk.shape[1]
        self.tokens["tokens"] = [chunk for chunk in kept if chunk.shape[1]]
        self.order = self.order[: len(self.tokens["tokens"])]

    def reorder(self, rows: Tensor) -> None:
        if self.order:
            self.order[-1] = rows.detach().cpu()
            self.is_stale = True

    def finish(self) -> None:
        """Assemble what has been recorded so far."""
        if not self.is_stale:
            return
        self.is_stale = False
        run = self.run
        run.sites, run.streams, run.texts, run.refusals = {}, {}, {}, dict(self.refusals)
        if self.fault is None:
            with self.guard.catch(self.layout.name, self.spoil):
                self._assemble()
                return
        run.sites, run.streams, run.texts = {}, {}, {}
        run.refusals |= dict.fromkeys(self.places or self.layout.site_names, str(self.fault))
        self.is_stale = False

    def _assemble(self) -> None:
        run = self.run
        batch = len(self.order[-1]) if self.order else 1
        for name, steps in self.sites.items():
            with self.guard.catch(name, partial(self._drop, name)):
                reason = self.refusals.get(name) or steps.find_fault()
                if reason is not None:
                    run.refusals[name] = reason
                elif steps.steps:
                    run.sites[name] = self._build_site(name, steps, batch)
        for stack, stream in self.streams.items():
            name = stream_name(stack)
            with self.guard.catch(name, partial(self._drop, name)):
                if name not in self.refusals and stream.passes:
                    run.streams[stack] = self._build_stream(stream, batch)
        self.copies.wait()
        for text, chunks in self.tokens.items():
            with self.guard.catch(text, partial(self._drop, f"labels of {text}")):
                self._add_text(text, chunks, batch)
        drop_empty_sites(run)
        for name, site in list(run.sites.items()) if self.layout.writer else ():
            with self.guard.catch(name, partial(self._drop, name)):
                name_texts(site, run, int(self.sites[name].has_sink))
        name_selected_rows(run)

    def _add_text(self, name: str, chunks: list[Tensor], batch: int) -> None:
        if name == "tokens":
            if 1 < len(chunks) != len(self.order):  # passes without tokens: positions are shown
                return
            chunks = follow_beams(chunks, self.order)
        tokens = repeat_rows(torch.cat(chunks, dim=1).cpu(), batch)
        self.run.texts[name] = text = TracedText(tokens, [])
        text.labels = label_rows(self.tokenizer, tokens)
        if name == "tokens":
            following = getattr(self.cache, "next_tokens", None)
            text.following = label_following(self.tokenizer, tokens, following)

    def _drop(self, name: str, reason: str) -> None:
        self.run.sites.pop(name, None)
        self.run.refusals[name] = reason

    def _build_site(self, name: str, steps: Steps, batch: int) -> Site:
        place = self.places[name]
        queries, keys = self.layout.texts(place)
        order = self.order if place.stack == self.layout.writer else self.order[-1:]
        is_source = self.layout.has_source and place.stack == "encoder"
        repeated = batch if is_source else None
        return steps.build_site(name, order, queries, keys, self.store, batch=repeated)

    def _build_stream(self, stream: StreamSteps, batch: int) -> Stream:
        own = self.layout.texts(Place("", stream.stack, None, is_cross=False))[0]
        is_written = stream.stack == self.layout.writer
        is_source = self.layout.has_source and stream.stack == "encoder"
        order = self.order if is_written else self.order[-1:]
        return stream.build(own, order, self.store, batch=batch if is_source else None)


def stream_name(stack: str) -> str:
    """What the residual stream of a stack is called where it is refused."""
    return f"{stack}.stream"


def _do_nothing() -> None:
    pass
