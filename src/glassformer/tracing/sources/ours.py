"""Watching our own models: calls of their `core` modules hand over the operands that pass.

Steps of generation that continue a cache belong to one run: their queries are put below those of
the steps before, and keys and values are the cache's last. A model computes the same with and
without a listener, to the bit.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.functional import Bias, Mask
from glassformer.functional.biases import as_bias
from glassformer.functional.cache import StaticCache
from glassformer.functional.masks import as_mask
from glassformer.functional.statistics.kernel_lse import Overheard
from glassformer.layers import Core, TokenEmbedding
from glassformer.models import Config, Decoder, Encoder, EncoderDecoder, ModelCache
from glassformer.models.stack import Stack
from glassformer.tracing.guard import Guard
from glassformer.tracing.live_trace import MOST_OPEN, LiveTrace
from glassformer.tracing.operand_store import Keeper
from glassformer.tracing.patches import FAILED, Tap, listen
from glassformer.tracing.recorder import recording
from glassformer.tracing.selection import Choice, taken
from glassformer.tracing.site import Site
from glassformer.tracing.sources.ours_run import OwnRun, Parts
from glassformer.tracing.trace import Trace


@contextmanager
def record_ours(
    outer: nn.Module,
    model: Encoder | Decoder | EncoderDecoder,
    tokenizer: Any,
    *,
    outputs: bool,
    device: torch.device | str | None,
    budget: int | str | None,
    folder: str | Path | None,
    **chosen: Any,
) -> Iterator[Trace]:
    """The same for a model that may lie inside of another module, read by any tokenizer."""
    choice = Choice(**chosen)
    config = model.config
    choice.check(max(config.n_layers, config.decoder_layers), config.n_heads)
    keeper = Keeper(device, budget, folder)
    recorder = _Recorder(model, tokenizer, choice, outputs, keeper, Guard("gf.watch"))
    with recording(recorder, outer) as trace:
        yield trace


def _stop_listening(recorder: "_Recorder") -> None:
    heard, recorder.heard = recorder.heard, None
    if heard is not None:
        heard.__exit__(None, None, None)


class _Recorder:
    def __init__(
        self,
        model: Encoder | Decoder | EncoderDecoder,
        tokenizer: Any,
        choice: Choice,
        outputs: bool,
        keeper: Keeper,
        guard: Guard,
    ) -> None:
        self.model, self.choice, self.outputs, self.keeper = model, choice, outputs, keeper
        self.name, self.guard = type(model).__name__, guard
        self.tokenizer = model.tokenizer if tokenizer is None else tokenizer
        self.trace = LiveTrace(self.finish, model={})
        self.open: list[OwnRun] = []  # those that may go on, the last one is going on
        self.passing: OwnRun | None = None  # the run of the present pass, as soon as it is known
        self.deafen: dict[OwnRun, Callable[[], None]] = {}
        self.undo: list[Callable[[], None]] = []
        self.cache: ModelCache | None = None  # of the last run: it knows which tokens follow
        self.fresh: Tensor | None = None
        self.stop = 0
        self.is_fixed = False
        self.heard: Overheard | None = None

    def attach(self, undo: list[Callable[[], None]]) -> None:
        self.trace.model |= _described(self.model.config, self.model.name)
        self.undo = undo
        undo.append(partial(_stop_listening, self))
        for path, module in self.model.named_modules():
            if isinstance(module, TokenEmbedding) and path == "embedding":
                undo.append(listen(module, "forward", self._tap(before=self._tokens)))
            elif isinstance(module, Stack):
                tap = self._tap(before=partial(self._enter, path.replace("_orig_mod.", "")))
                undo.append(listen(module, "forward", tap))
            elif isinstance(module, Core):
                stack, _, layer, part, _ = path.replace("_orig_mod.", "").split(".")
                if self.choice.has_layer(int(layer)):
                    name = f"{stack}.{layer}.{'cross' if part == 'cross' else 'self'}"
                    tap = Tap(
                        name,
                        self.guard,
                        partial(self._refuse, name),
                        before=self._listen_to_kernel,
                        after=partial(self._record, name),
                    )
                    undo.append(listen(module, "forward", tap))

    def _tap(self, **callbacks: Any) -> Tap:
        return Tap(self.name, self.guard, self.refuse_all, **callbacks)

    def _refuse(self, name: str, reason: str) -> None:
        if self.passing is not None:
            self.passing.refuse(name, reason)

    def refuse_all(self, reason: str) -> None:
        run = self._begin() if self.passing is None else self.passing
        run.spoil(reason)
        self.passing = run

    def _listen_to_kernel(self, _module: nn.Module, _args: tuple, _options: dict) -> None:
        _stop_listening(self)  # where recording the last one failed
        self.heard = Overheard()
        self.heard.__enter__()

    def _heard_lse(self) -> Tensor | None:
        heard = self.heard
        _stop_listening(self)
        return None if heard is None else heard.lse

    def close(self) -> None:
        self.finish()

    def _tokens(self, _module: nn.Module, args: tuple, options: dict) -> None:
        self.fresh = (args[0] if args else options["tokens"]).detach()

    def _enter(self, stack: str, _module: nn.Module, _args: tuple, options: dict) -> None:
        last, self.passing = self.open[-1] if self.open else None, None
        cache = options.get("cache")
        start = 0 if cache is None else int(cache.length)
        both = isinstance(self.model, EncoderDecoder)
        is_read = both and stack == "encoder"
        text = "source" if is_read else "tokens"
        run = None if is_read else self._continued(cache, start)
        if run is not None:
            self.open.remove(run)
            self.open.append(run)
        elif is_read or not both or last is None:
            run = self._begin()
        else:
            run = self._begin(keeping_source=True) if "tokens" in last.tokens else last
        self.passing = run
        if not is_read:
            self._listen(run, cache)
        assert self.fresh is not None
        self.stop = start + self.fresh.shape[1]
        self.is_fixed = cache is not None and isinstance(cache.layers[0], StaticCache)
        run.add_tokens(text, self.fresh)

    def _continued(self, cache: ModelCache | None, start: int) -> OwnRun | None:
        """The run that this cache belongs to."""
        found = [run for run in self.open if cache is not None and run.cache is cache]
        return found[0] if found and start else None

    def _record(self, name: str, _module: nn.Module, args: tuple, options: dict, out: Any) -> None:
        lse, run = self._heard_lse(), self.passing
        if out is FAILED or run is None or run.fault is not None or name in run.refusals:
            return
        run.is_stale = True
        q, k, v = (operand.detach() for operand in args)
        is_cross = name.endswith(".cross")
        if self.is_fixed and not is_cross:  # only what is filled, and copied: buffers change
            k, v = (t[:, :, : self.stop].clone() for t in (k, v))
        parts = run.parts.setdefault(name, Parts())
        parts.heads = heads = self.choice.head_numbers(q.shape[1], name)
        rows = self.choice.row_places(parts.n_rows, q.shape[2], step=len(parts.q), device=q.device)
        parts.lse = None if lse is None or lse.shape != q.shape[:3] else taken(lse, heads, rows)
        parts.q.append(self.keeper.keep(taken(q, heads, rows)))
        if rows is not None:
            parts.rows.append(rows + parts.n_rows)
        parts.n_rows += q.shape[2]
        if self.outputs:
            parts.out.append(self.keeper.keep(taken(out.detach(), heads, rows)))
        read = None if heads is None else tuple(h * k.shape[1] // q.shape[1] for h in heads)
        aligned = k.shape[2] - q.shape[2]
        mask, bias = options.get("mask"), options.get("bias")
        parts.latest = {
            "k": self.keeper.keep(taken(k, read)),
            "v": self.keeper.keep(taken(v, read)),
            "mask": None if mask is None else _standing(as_mask(mask), aligned),
            "bias": None if bias is None else _standing(as_bias(bias), aligned),
            "scale": options.get("scale"),
            "softcap": options.get("softcap"),
        }

    def _begin(self, *, keeping_source: bool = False) -> OwnRun:
        if self.open:
            run = self.open[-1].next(keeping_source=keeping_source)
        else:
            both, n_heads = isinstance(self.model, EncoderDecoder), self.model.config.n_heads
            run = OwnRun(self.name, self.guard, self.keeper, self.tokenizer, n_heads, both)
        for old in list(self.open):
            old.finish()
            if old.cache is None or len(self.open) >= MOST_OPEN:
                self.open.remove(old)
                self.deafen.pop(old, _nothing)()
        self.trace.add(run.run)
        self.open.append(run)
        return run

    def _listen(self, run: OwnRun, cache: ModelCache | None) -> None:
        """Hear of beams that change places in the cache."""
        self.cache = cache
        if cache is run.cache:
            return
        self.deafen.pop(run, _nothing)()
        run.cache = cache
        if cache is not None:

            def reordered(_cache: Any, args: tuple, options: dict, out: Any) -> None:
                if out is not FAILED:
                    run.reorder(args[0] if args else options["indices"])

            tap = Tap(self.name, self.guard, run.spoil, after=reordered)
            self.deafen[run] = listen(cache, "reorder", tap)
            self.undo.append(self.deafen[run])

    def finish(self) -> None:
        """Put together what has been recorded."""
        for run in self.open:
            run.finish()


def _nothing() -> None:
    pass


def record(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Mask | Tensor | None = None,
    bias: Bias | Tensor | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    out: Tensor | None = None,
    name: str = "attention",
) -> Site:
    """A site from operands of your own: anybody's attention can be looked at."""
    return Site(
        name=name,
        q=q.detach(),
        k=k.detach(),
        v=v.detach(),
        mask=None if mask is None else as_mask(mask),
        bias=None if bias is None else as_bias(bias),
        scale=scale,
        softcap=softcap,
        out=None if out is None else out.detach(),
    )


def _standing(part: Any, aligned: int) -> Any:
    """A mask or a bias without offsets that say what is so anyway: the last query stands last."""
    changes: dict[str, Any] = {}
    for each in fields(part):
        value = getattr(part, each.name)
        if isinstance(value, Mask | Bias):
            changes[each.name] = _standing(value, aligned)
        elif each.name == "offset" and value is not None:
            single = not isinstance(value, Tensor) or value.ndim == 0
            changes[each.name] = None if single and int(value) == aligned else value
        elif isinstance(value, Tensor):
            changes[each.name] = value.detach()
    return replace(part, **changes)


def _described(config: Config, name: str | None) -> dict[str, Any]:
    plain = json.loads(json.dumps(config.as_dict()))  # as a file will give it back
    named = {} if name is None else {"name": name}
    return {"library": "glassformer", **named, "config": plain}
