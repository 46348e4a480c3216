"""Watching our own models: hooks on their `core` modules keep the operands that pass.

Steps of generation that continue a cache belong to one run: their queries are put below those of
the steps before, and keys and values are the cache's last. A model computes the same with and
without hooks, to the bit.
"""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.attention import Bias, Mask
from glassformer.attention.biases import as_bias
from glassformer.attention.cache import StaticCache
from glassformer.attention.masks import as_mask
from glassformer.errors import TraceError
from glassformer.layers import Core, TokenEmbedding
from glassformer.models import Config, Decoder, Encoder, EncoderDecoder, ModelCache
from glassformer.models.stack import Stack
from glassformer.observe.runs import LiveTrace, in_order
from glassformer.observe.site import Site
from glassformer.observe.trace import Run, Trace, Words
from glassformer.text.pieces import labels


@contextmanager
def observe(
    model: Encoder | Decoder | EncoderDecoder,
    *,
    layers: Collection[int] | None = None,
    outputs: bool = False,
    device: torch.device | str | None = None,
) -> Iterator[Trace]:
    """Record what passes through a model's attention while the context is open.

    ::

        with gf.observe(model) as trace:
            gf.generate(model, "The cat sat on the")
        trace["decoder.0.self"].weights(head=0)

    `layers` chooses some of them, `outputs` keeps what the model computed too, `device` moves the
    operands, to "cpu" say, as they come.
    """
    if not isinstance(model, Encoder | Decoder | EncoderDecoder):
        raise TraceError(
            f"observe takes a model of glassformer; got {type(model).__name__}. Use watch for one "
            "of transformers, record for operands of your own."
        )
    recorder = _Recorder(model, layers, outputs, device)
    handles = recorder.attach()
    try:
        yield recorder.trace
    finally:
        for handle in handles:
            handle.remove()
        recorder.close()


@dataclass
class _Parts:
    """The steps of one site, not yet put together."""

    q: list[Tensor] = field(default_factory=list)
    out: list[Tensor] = field(default_factory=list)
    latest: dict[str, Any] = field(default_factory=dict)  # k, v, mask … of the last step


class _Recorder:
    def __init__(
        self,
        model: Encoder | Decoder | EncoderDecoder,
        layers: Collection[int] | None,
        outputs: bool,
        device: torch.device | str | None,
    ) -> None:
        self.model, self.layers, self.outputs, self.device = model, layers, outputs, device
        self.trace = LiveTrace(self.finish, model=_described(model.config))
        self.parts: dict[str, _Parts] = {}
        self.tokens: dict[str, list[Tensor]] = {}
        self.order: list[Tensor] = []  # which rows the beams were, before each step of the decoder
        self.fresh: Tensor | None = None
        self.cache: ModelCache | None = None
        self.start = self.stop = 0
        self.is_fixed = False
        self.is_stale = False

    def attach(self) -> list[Any]:
        handles = []
        for path, module in self.model.named_modules():
            if isinstance(module, TokenEmbedding) and path == "embedding":
                handles.append(module.register_forward_pre_hook(self._tokens))
            elif isinstance(module, Stack):
                hook = partial(self._enter, path)
                handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))
            elif isinstance(module, Core):
                stack, _, layer, part, _ = path.split(".")
                if self.layers is None or int(layer) in self.layers:
                    name = f"{stack}.{layer}.{'cross' if part == 'cross' else 'self'}"
                    hook = partial(self._record, name)
                    handles.append(module.register_forward_hook(hook, with_kwargs=True))
        return handles

    def close(self) -> None:
        self.finish()
        self._listen(None)

    def _tokens(self, _module: nn.Module, args: tuple) -> None:
        self.fresh = args[0].detach()

    def _enter(self, stack: str, _module: nn.Module, _args: tuple, options: dict) -> None:
        cache = options.get("cache")
        self.start = 0 if cache is None else int(cache.length)
        continues = cache is not None and cache is self.cache and self.start > 0
        both = isinstance(self.model, EncoderDecoder)
        text = "source" if both and stack == "encoder" else "tokens"
        if stack == "encoder" or not both:
            if not continues:
                self._begin()
        elif not continues and "tokens" in self.tokens:
            self._begin(keeping="source")
        if stack == "decoder" or not both:
            self._listen(cache)
        assert self.fresh is not None
        self.stop = self.start + self.fresh.shape[1]
        self.is_fixed = cache is not None and isinstance(cache.layers[0], StaticCache)
        self.tokens.setdefault(text, []).append(self.fresh)
        if text == "tokens":
            self.order.append(torch.arange(len(self.fresh)))

    def _record(
        self, name: str, _module: nn.Module, args: tuple, options: dict, out: Tensor
    ) -> None:
        q, k, v = (operand.detach() for operand in args)
        cross = name.endswith(".cross")
        if self.is_fixed and not cross:  # only what is filled, and copied: buffers change
            k, v = (t[:, :, : self.stop].clone() for t in (k, v))
        parts = self.parts.setdefault(name, _Parts())
        parts.q.append(self._kept(q))
        if self.outputs:
            parts.out.append(self._kept(out.detach()))
        aligned = k.shape[2] - q.shape[2]
        mask, bias = options.get("mask"), options.get("bias")
        parts.latest = {
            "k": self._kept(k),
            "v": self._kept(v),
            "mask": None if mask is None else self._moved(_standing(as_mask(mask), aligned)),
            "bias": None if bias is None else self._moved(_standing(as_bias(bias), aligned)),
            "scale": options.get("scale"),
            "softcap": options.get("softcap"),
        }
        self.is_stale = True

    def _begin(self, keeping: str | None = None) -> None:
        """A new run; with `keeping`, the encoder's part of the last one is part of it too."""
        self.finish()
        kept = {n: p for n, p in self.parts.items() if keeping and n.startswith("encoder.")}
        self.parts = kept
        self.tokens = {n: t for n, t in self.tokens.items() if n == keeping}
        self.order = []
        self.trace.add(Run())

    def _listen(self, cache: ModelCache | None) -> None:
        """Hear of beams that change places in the cache."""
        if self.cache is cache:
            return
        if self.cache is not None:
            self.cache.listeners.remove(self._reorder)
        self.cache = cache
        if cache is not None:
            cache.listeners.append(self._reorder)

    def _reorder(self, rows: Tensor) -> None:
        if self.order:
            self.order[-1] = rows.detach().cpu()
            self.is_stale = True

    def finish(self) -> None:
        """Put together what has been recorded of the last run."""
        if not self.is_stale:
            return
        self.is_stale = False
        run = self.trace.recorded[-1]
        run.sites = {name: self._site(name, parts) for name, parts in self.parts.items() if parts.q}
        for text, chunks in self.tokens.items():
            tokens = torch.cat(self._in_order(chunks, text == "tokens"), dim=1).cpu()
            tokenizer = self.model.tokenizer
            shown = [] if tokenizer is None else [labels(tokenizer, row) for row in tokens.tolist()]
            run.texts[text] = Words(tokens, shown)

    def _site(self, name: str, parts: _Parts) -> Site:
        is_writer = name.startswith("decoder.") or not isinstance(self.model, EncoderDecoder)
        both = isinstance(self.model, EncoderDecoder)
        return Site(
            name=name,
            q=torch.cat(self._in_order(parts.q, is_writer), dim=2),
            out=torch.cat(self._in_order(parts.out, is_writer), dim=2) if parts.out else None,
            queries="tokens" if is_writer else "source",
            keys="source" if both and (name.endswith(".cross") or not is_writer) else "tokens",
            **parts.latest,
        )

    def _in_order(self, chunks: list[Tensor], is_written: bool) -> list[Tensor]:
        return in_order(chunks, self.order) if is_written else chunks

    def _kept(self, tensor: Tensor) -> Tensor:
        return tensor if self.device is None else tensor.to(self.device)

    def _moved(self, part: Any) -> Any:
        return part if self.device is None else part.to(self.device)


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


def _described(config: Config) -> dict[str, Any]:
    plain = json.loads(json.dumps(config.as_dict()))  # as a file will give it back
    return {"library": "glassformer", "config": plain}
