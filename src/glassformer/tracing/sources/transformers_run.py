"""One run of a foreign model while it goes on: the steps of every site, the tokens, the beams."""

from typing import Any
from weakref import ref

import torch
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.guard import Guard
from glassformer.tracing.live_trace import in_order
from glassformer.tracing.operand_store import Keeper
from glassformer.tracing.site import Site
from glassformer.tracing.site_assembly import name_rows, without_empty
from glassformer.tracing.site_names import Place
from glassformer.tracing.sources.site_steps import Step, Steps
from glassformer.tracing.sources.transformers_layout import Layout
from glassformer.tracing.sources.transformers_text import name_texts, read_tokens, repeat_rows
from glassformer.tracing.trace import Run, Words


class ForeignRun:
    """What has been seen so far; `finish` puts it together in a run of the trace."""

    def __init__(self, layout: Layout, guard: Guard, keeper: Keeper, tokenizer: Any) -> None:
        self.layout, self.guard, self.keeper, self.tokenizer = layout, guard, keeper, tokenizer
        self.run = Run()
        self.sites: dict[str, Steps] = {}
        self.places: dict[str, Place] = {}
        self.refusals: dict[str, str] = {}
        self.fault: str | None = None  # why nothing of this run can be shown
        self.tokens: dict[str, list[Tensor]] = {}
        self.order: list[Tensor] = []  # which rows the beams were, before each step
        self.read: set[Any] = set()  # readers that were passed by themselves
        self.stop = 0  # how many tokens the text has
        self.is_stale = False
        self._cache: ref | None = None

    @property
    def cache(self) -> Any:
        """The cache that the run goes on with, None without one or when it is gone."""
        return None if self._cache is None else self._cache()

    @cache.setter
    def cache(self, cache: Any) -> None:
        self._cache = None if cache is None else ref(cache)

    @property
    def is_awaited(self) -> bool:
        """Whether this was read, and is not yet written."""
        return not self.order and (self.fault is None or bool(self.read))

    def next(self, *, keeping_source: bool) -> "ForeignRun":
        """The run after this one; the encoder's part may be that of this one."""
        run = ForeignRun(self.layout, self.guard, self.keeper, self.tokenizer)
        if keeping_source:
            writer = self.layout.writer
            run.sites = {n: s for n, s in self.sites.items() if self.places[n].stack != writer}
            run.places = {n: self.places[n] for n in run.sites}
            run.refusals = {n: r for n, r in self.refusals.items() if n in run.sites}
            run.tokens = {n: t for n, t in self.tokens.items() if n == "source"}
            run.fault = self.fault
            run.is_stale = self.fault is not None
        return run

    def spoil(self, reason: str) -> None:
        """Nothing of this run can be trusted: passes or beams were not followed."""
        self.fault = self.fault or reason
        self.is_stale = True

    def refuse(self, name: str, reason: str) -> None:
        self.refusals.setdefault(name, reason)
        self.is_stale = True

    def add(self, place: Place, step: Step) -> None:
        self.sites[place.name].add(step, self.keeper)
        if place.stack == self.layout.writer and not place.is_cross:
            self.stop = max(self.stop, step.stop)

    def steps(self, place: Place) -> Steps:
        """The steps of a site so far; what is not part of the growing text starts anew."""
        self.is_stale = True
        self.places[place.name] = place
        steps = self.sites.setdefault(place.name, Steps(place.is_cross))
        if place.stack != self.layout.writer:
            steps.steps.clear()
        return steps

    def shorten(self, stop: int) -> None:
        """A cache was cropped: what lay behind was tried and thrown away."""
        for name, steps in self.sites.items():
            if self.places[name].stack == self.layout.writer and not steps.is_cross:
                steps.shorten(stop)
        kept, n = [], 0
        if len(self.tokens.get("tokens", ())) != len(self.order):
            raise TraceError("its cache was cropped, and which tokens are left is not known")
        for chunk in self.tokens["tokens"]:
            kept.append(chunk[:, : stop - n])
            n += chunk.shape[1]
        self.tokens["tokens"] = [chunk for chunk in kept if chunk.shape[1]]
        self.order = self.order[: len(self.tokens["tokens"])]

    def reorder(self, rows: Tensor) -> None:
        if self.order:
            self.order[-1] = rows.detach().cpu()
            self.is_stale = True

    def finish(self) -> None:
        """Put together what has been recorded."""
        if not self.is_stale:
            return
        self.is_stale = False
        run = self.run
        run.sites, run.texts, run.refusals = {}, {}, {}
        if self.fault is None:
            with self.guard.catching(type(self.layout.model).__name__, self.spoil):
                self._put_together()
                return
        run.sites, run.texts = {}, {}
        names = self.places or {p.name: p for p in self.layout.places.values()}
        run.refusals |= dict.fromkeys(names, str(self.fault))
        self.is_stale = False

    def _put_together(self) -> None:
        run = self.run
        batch = len(self.order[-1]) if self.order else 1
        for text, chunks in self.tokens.items():
            with self.guard.catching(text, lambda why, text=text: self._refuse_text(text, why)):
                self._add_text(text, chunks, batch)
        for name, steps in self.sites.items():
            refuse = lambda why, name=name: run.refusals.update({name: why})  # noqa: E731
            with self.guard.catching(name, refuse):
                reason = self.refusals.get(name) or steps.reason()
                if reason is not None:
                    run.refusals[name] = reason
                elif steps.steps:
                    run.sites[name] = self._site(name, steps, batch)
        for name in self.refusals.keys() - self.sites.keys():
            run.refusals[name] = self.refusals[name]
        without_empty(run)
        for name, site in list(run.sites.items()):
            with self.guard.catching(name, lambda why, name=name: self._drop(name, why)):
                name_texts(site, run, int(self.sites[name].has_sink))
        name_rows(run)

    def _add_text(self, text: str, chunks: list[Tensor], batch: int) -> None:
        if text == "tokens":
            if 1 < len(chunks) != len(self.order):  # passes without a text: places are numbered
                return
            chunks = in_order(chunks, self.order)
        tokens = repeat_rows(torch.cat(chunks, dim=1).cpu(), batch)
        self.run.texts[text] = Words(tokens, [])
        self.run.texts[text].labels = read_tokens(self.tokenizer, tokens)

    def _refuse_text(self, text: str, reason: str) -> None:
        self.run.refusals[f"labels of {text}"] = reason

    def _drop(self, name: str, reason: str) -> None:
        del self.run.sites[name]
        self.run.refusals[name] = reason

    def _site(self, name: str, steps: Steps, batch: int) -> Site:
        place = self.places[name]
        queries, keys = self.layout.texts(place)
        order = self.order if place.stack == self.layout.writer else self.order[-1:]
        is_source = self.layout.both and place.stack == "encoder"
        repeated = batch if is_source else None
        return steps.site(name, order, queries, keys, self.keeper, batch=repeated)
