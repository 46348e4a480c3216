"""Watching models of transformers: what passes through their attention interface is kept.

The model computes by the function it would have called anyway, so that its outputs are the same
to the bit. What that function is known to do with masks, biases, caps and sinks is what a site
says; for eager attention, whose code every model brings along, one row of each call is recomputed
and a site that differs is refused. A row in which nothing is open, of padding, has weights of zero
here, while eager attention fills it with the mean of v.
"""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.errors import GlassformerError, TraceError
from glassformer.observe.call import as_step
from glassformer.observe.choice import Choice
from glassformer.observe.foreign_text import foreign_labels
from glassformer.observe.interface import (
    SEEN,
    Call,
    enter,
    hear,
    implementations,
    parameters,
    uses_interface,
)
from glassformer.observe.keeping import Keeper
from glassformer.observe.partial import name_rows, without_empty
from glassformer.observe.places import Place, places, sounds_like_attention, unseen
from glassformer.observe.runs import LiveTrace, in_order
from glassformer.observe.site import Site
from glassformer.observe.steps import Steps
from glassformer.observe.trace import Run, Words


def check(model: Any) -> None:
    from transformers import PreTrainedModel

    inside = getattr(model, "_orig_mod", model)
    if inside is not model or getattr(model, "_compiled_call_impl", None) is not None:
        raise TraceError(
            f"watch needs a model that is not compiled; got a compiled {type(inside).__name__}. "
            "Watch the model as it was before."
        )
    if not isinstance(model, PreTrainedModel):
        raise TraceError(
            f"watch takes a model of transformers; got {type(model).__name__}. Use observe for one "
            "of glassformer, record for operands of your own."
        )
    kinds = {type(module) for module in model.modules()}
    if not any(map(uses_interface, kinds)):
        own = sorted(kind.__name__ for kind in kinds if sounds_like_attention(kind))
        raise TraceError(
            f"watch sees what passes through the attention interface of transformers; "
            f"{type(model).__name__} has attention of its own: {', '.join(own) or 'none by name'}."
        )
    if others := implementations(model) - {*SEEN, "None"}:
        raise TraceError(
            f"watch knows the arithmetic of {' and '.join(SEEN)}; this model uses "
            f"{', '.join(sorted(others))}. Use model.set_attn_implementation('sdpa')."
        )


class Watcher:
    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        choice: Choice,
        outputs: bool,
        keeper: Keeper,
    ) -> None:
        from transformers import PreTrainedModel

        self.model, self.tokenizer = model, tokenizer
        self.choice, self.outputs, self.keeper = choice, outputs, keeper
        self.thread = threading.get_ident()
        config = model.config
        self.trace = LiveTrace(self.finish, model=_described(config))
        self.both = bool(getattr(config, "is_encoder_decoder", False))
        self.encoder = model.get_encoder() if self.both else None
        self.decoder = model.get_decoder() if self.both else None
        halves = {m for m in (self.encoder, self.decoder) if m is not None}
        paths = {module: path for path, module in model.named_modules()}
        self.roots = halves | {m for m in paths if isinstance(m, PreTrainedModel)}
        using = [(path, m) for m, path in paths.items() if uses_interface(type(m))]
        self.places = places(using, config)
        self.writer = "decoder" if any(_writes(p) for p in self.places.values()) else "encoder"
        writers = {m for m, place in self.places.items() if place.stack == self.writer}
        self.readers = {root for root in self.roots if writers.isdisjoint(root.modules())}
        self.read: set[nn.Module] = set()  # of these, who was passed by itself in this run
        self.blind = unseen(model, config, list(self.places))
        self.sites: dict[str, Steps] = {}
        self.stacks: dict[str, Place] = {}
        self.tokens: dict[str, list[Tensor]] = {}
        self.order: list[Tensor] = []  # which rows the beams were, before each step
        self.cache: Any = None
        self.deafen: Callable[[], None] = lambda: None
        self.start = self.stop = 0
        self.depth = self.n_passes = 0
        self.is_counted = self.is_stale = False
        self.entries: Counter[nn.Module] = Counter()  # of the pass that goes on
        self.calls: Counter[nn.Module] = Counter()  # of the entry that goes on
        self.known: dict[Any, Any] = {}  # what the masks of this pass say

    def __deepcopy__(self, _memo: dict[int, Any]) -> "Watcher":
        return self  # a copied model brings our hooks along: they find that it is not watched

    @contextmanager
    def watching(self) -> Iterator[None]:
        handles = []
        leave = enter(self.model, self._saw)
        try:
            for module in self.roots:
                handles.append(module.register_forward_pre_hook(self._enter, with_kwargs=True))
                handles.append(module.register_forward_hook(self._leave, always_call=True))
            for module in self.places:
                handles.append(module.register_forward_pre_hook(self._entered))
            yield
        finally:
            for handle in handles:
                handle.remove()
            leave()
            self._listen(None)
            self.finish()

    def check_seen(self) -> None:
        """A model that was passed and showed nothing is told, not left empty."""
        if self.n_passes and not any(run.sites or run.refusals for run in self.trace.runs):
            layers = self.choice.layers
            chosen = "" if layers is None else f" of layers {sorted(layers)}"
            raise TraceError(
                f"{type(self.model).__name__} was passed {self.n_passes} time(s), but no "
                f"attention{chosen} went through the interface of transformers."
            )

    def _enter(self, module: nn.Module, args: tuple, options: dict[str, Any]) -> None:
        if not self._sees(module):
            return
        given = _named(module, args, options)
        if not self.depth:
            self._begin_pass(module, given)
        is_outermost, self.depth = not self.depth, self.depth + 1
        text = None
        if self.both:
            text = {self.encoder: "source", self.decoder: "tokens"}.get(module)
        elif is_outermost:
            text = "tokens"
        ids = given.get("input_ids")
        if text is not None and isinstance(ids, Tensor) and ids.ndim == 2:
            self.tokens.setdefault(text, []).append(ids.detach())

    def _leave(self, module: nn.Module, _args: tuple, out: Any) -> None:
        if not self._sees(module):
            return
        self.depth -= 1
        if not self.depth and self.cache is None:
            self._listen(getattr(out, "past_key_values", None))

    def _sees(self, module: nn.Module) -> bool:
        return threading.get_ident() == self.thread and module in self.roots

    def _entered(self, module: nn.Module, _args: tuple) -> None:
        if threading.get_ident() == self.thread:
            self.entries[module] += 1
            self.calls[module] = 0

    def _begin_pass(self, module: nn.Module, given: dict[str, Any]) -> None:
        self.n_passes += 1
        for found in (self.entries, self.calls, self.known):
            found.clear()
        self.is_counted = False
        cache = given.get("past_key_values")
        self.start = _length(cache)
        is_awaited = bool(self.trace.recorded) and not self.order  # it was read, not yet written
        if module in self.readers:
            if not is_awaited or module in self.read:
                self._begin()
            self.read.add(module)
            return
        if cache is not None and cache is self.cache and 0 < self.start <= self.stop:
            if self.start < self.stop:
                self._shorten()
        elif not self.both or given.get("encoder_outputs") is None:
            if self.both or not is_awaited:
                self._begin()
        elif not is_awaited:
            self._begin(keeping="source")
        self.stop = self.start
        self._listen(cache)

    def _begin(self, keeping: str | None = None) -> None:
        """A new run; with `keeping`, the encoder's part of the last one is part of it too."""
        self.finish()
        read = {n: s for n, s in self.sites.items() if self.stacks[n].stack != self.writer}
        self.sites = read if keeping else {}
        self.tokens = {n: t for n, t in self.tokens.items() if n == keeping}
        self.order, self.stop = [], 0
        self.read.clear()
        self.trace.add(Run())

    def _shorten(self) -> None:
        """A cache was cropped: what lay behind was tried and thrown away."""
        for name, steps in self.sites.items():
            if self.stacks[name].stack == self.writer and not steps.is_cross:
                steps.shorten(self.start)
        kept, n = [], 0
        for chunk in self.tokens.get("tokens", []):
            kept.append(chunk[:, : self.start - n])
            n += chunk.shape[1]
        self.tokens["tokens"] = [chunk for chunk in kept if chunk.shape[1]]
        self.order = self.order[: len(self.tokens["tokens"])]

    def _listen(self, cache: Any) -> None:
        if cache is self.cache:
            return
        self.deafen()
        self.cache, self.deafen = cache, lambda: None
        if hasattr(cache, "reorder_cache"):
            self.deafen = hear(cache, self._reorder)

    def _reorder(self, rows: Tensor) -> None:
        if self.order:
            self.order[-1] = rows.detach().cpu()
            self.is_stale = True

    def _saw(self, call: Call, out: Any) -> None:
        """Keep what one call of attention was given."""
        if threading.get_ident() != self.thread or not self.depth:
            return
        if call.module not in self.places:  # a part of the model on whose behalf another one calls
            path = next(path for path, m in self.model.named_modules() if m is call.module)
            self.places |= places([(path, call.module)], self.model.config)
        place = self.places[call.module].shifted(max(self.entries[call.module] - 1, 0))
        if place.stack == self.writer and not self.is_counted:
            self.order.append(torch.arange(len(call.q)))
            self.is_counted = True
        if not self.choice.has_layer(place.layer):
            return
        self.is_stale = True
        self.calls[call.module] += 1
        self.stacks[place.name] = place
        steps = self.sites.setdefault(place.name, Steps(place.is_cross))
        if place.stack != self.writer:  # not a step of the text: the latest is the one
            steps.steps.clear()
        if self.calls[call.module] > 1:
            steps.refuse("it calls attention more than once in a pass: by parts, or by differences")
            return
        stop = self.start + call.q.shape[2]
        is_fixed = bool(getattr(self.cache, "is_compileable", False)) and not place.is_cross
        try:
            with torch.no_grad():
                step, difference = as_step(call, out, stop=stop, known=self.known)
                if is_fixed:
                    step = step.written()
                step = step if self.outputs else step.without_output()
                heads = self.choice.head_numbers(step.q.shape[1], place.name)
                rows = self.choice.row_places(
                    steps.n_rows, step.L, step=len(steps.steps), device=step.q.device
                )
                steps.add(step.chosen(heads, rows), self.keeper)
        except GlassformerError as error:
            steps.refuse(str(error).rstrip("."))
            return
        if difference is not None:
            steps.differences.append(difference)
        if place.stack == self.writer and not place.is_cross:
            self.stop = max(self.stop, step.stop)

    def finish(self) -> None:
        """Put together what has been recorded of the last run."""
        if not self.is_stale:
            return
        self.is_stale = False
        run = self.trace.recorded[-1]
        run.sites, run.texts, run.refusals = {}, {}, dict(self.blind)
        batch = len(self.order[-1]) if self.order else 1
        for text, chunks in self.tokens.items():
            ordered = in_order(chunks, self.order) if text == "tokens" else chunks
            tokens = _repeated(torch.cat(ordered, dim=1).cpu(), batch)
            run.texts[text] = Words(tokens, self._labels(tokens))
        for name, steps in self.sites.items():
            reason = steps.reason()
            if reason is None and not steps.steps:
                continue
            try:
                if reason is None:
                    run.sites[name] = self._site(name, steps, batch)
            except GlassformerError as error:
                reason = str(error).rstrip(".")
            if reason is not None:
                run.refusals[name] = reason
        without_empty(run)
        for site in run.sites.values():
            self._name_texts(site, run)
        name_rows(run)

    def _site(self, name: str, steps: Steps, batch: int) -> Site:
        place = self.stacks[name]
        is_written = place.stack == self.writer
        order = self.order if is_written else self.order[-1:]
        known = self.both and place.stack == "encoder"
        own = "tokens" if is_written else "source" if known else place.stack
        other = ("source" if self.both else "context") if place.is_cross else own
        return steps.site(name, order, own, other, self.keeper, batch=batch if known else None)

    def _name_texts(self, site: Site, run: Run) -> None:
        """The texts of a site's rows and columns; where nobody knows tokens, their places."""
        B, _, L, S = site.shape
        L = L if site.n_rows is None else site.n_rows
        site.queries = _text(run, site.queries, B, L)
        n_sinks = int(self.sites[site.name].has_sink)
        site.keys = _text(run, site.keys, B, S - n_sinks)
        if n_sinks:
            words = run.texts[site.keys]
            site.keys = f"sink and {site.keys}"
            tokens = torch.nn.functional.pad(words.tokens, (1, 0), value=-1)
            shown = words.labels or [[str(t) for t in row] for row in words.tokens.tolist()]
            run.texts[site.keys] = Words(tokens, [["(sink)", *row] for row in shown])

    def _labels(self, tokens: Tensor) -> list[list[str]]:
        if self.tokenizer is None:
            return []
        return [foreign_labels(self.tokenizer, row) for row in tokens.tolist()]


def _writes(place: Place) -> bool:
    return place.stack == "decoder"


def _text(run: Run, name: str, B: int, length: int) -> str:
    """The text of this name if it fits, else one that numbers the places."""
    for each in (name, f"{name}, by place"):
        if each not in run.texts:
            run.texts[each] = Words(torch.arange(length).expand(B, -1).clone(), [])
        if run.texts[each].tokens.shape == (B, length):
            return each
    name = f"{name}, {B} × {length} by place"
    run.texts[name] = Words(torch.arange(length).expand(B, -1).clone(), [])
    return name


def _repeated(tokens: Tensor, batch: int) -> Tensor:
    """A source once for each of its beams."""
    times = batch // len(tokens) if len(tokens) and batch % len(tokens) == 0 else 1
    return tokens.repeat_interleave(times, dim=0)


def _named(module: nn.Module, args: tuple, options: dict[str, Any]) -> dict[str, Any]:
    if not args:
        return options
    names = parameters(type(module).forward)[1:]
    return {**dict(zip(names, args, strict=False)), **options}


def _length(cache: Any) -> int:
    return int(cache.get_seq_length()) if hasattr(cache, "get_seq_length") else 0


def _described(config: Any) -> dict[str, Any]:
    plain = json.loads(json.dumps(config.to_dict(), default=str))
    return {"library": "transformers", "config": plain}
