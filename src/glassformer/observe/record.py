"""Watching our own models: hooks on their `core` modules keep the operands that pass.

Steps of generation that continue a cache belong to one run: their queries are put below those of
the steps before, and keys and values are the cache's last. A model computes the same with and
without hooks, to the bit.
"""

import json
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.attention import Bias, Mask
from glassformer.attention.biases import as_bias
from glassformer.attention.cache import StaticCache
from glassformer.attention.masks import as_mask
from glassformer.attention.overheard import Overheard
from glassformer.errors import TraceError
from glassformer.layers import Core, TokenEmbedding
from glassformer.models import Config, Decoder, Encoder, EncoderDecoder, ModelCache
from glassformer.models.stack import Stack
from glassformer.observe.choice import Choice, Rows, taken
from glassformer.observe.keeping import Keeper
from glassformer.observe.partial import name_rows, site_of, without_empty
from glassformer.observe.runs import LiveTrace, in_order
from glassformer.observe.site import Site
from glassformer.observe.trace import Run, Trace, Words
from glassformer.text.pieces import labels


@contextmanager
def observe(
    model: Encoder | Decoder | EncoderDecoder,
    *,
    layers: Collection[int] | None = None,
    heads: Collection[int] | None = None,
    rows: Rows | None = None,
    every: int = 1,
    outputs: bool = False,
    device: torch.device | str | None = None,
    budget: int | str | None = None,
    folder: str | Path | None = None,
) -> Iterator[Trace]:
    """Record what passes through a model's attention while the context is open.

    ::

        with gf.observe(model) as trace:
            gf.generate(model, "The cat sat on the")
        trace["decoder.0.self"].weights(head=0)

    `layers` and `heads` choose some of them, `rows` some of the queries: places in the text, or
    "last" for the last row of each call. Of generation, every n-th step is kept. `outputs` keeps
    what the model computed too. `device` moves the operands, to "cpu" say, as they come; what
    exceeds the budget ("4 GiB") goes to the disk, into `folder` or the system's for such files.

    Only what this thread does is seen. A model may be observed more than once at a time.
    """
    if not isinstance(model, Encoder | Decoder | EncoderDecoder):
        raise TraceError(
            f"observe takes a model of glassformer; got {type(model).__name__}. Use watch for one "
            "of transformers, record for operands of your own."
        )
    choice = Choice(layers=layers, heads=heads, rows=rows, every=every)
    config = model.config
    choice.check(max(config.n_layers, config.decoder_layers), config.n_heads)
    recorder = _Recorder(model, choice, outputs, Keeper(device, budget, folder))
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
    rows: list[Tensor] = field(default_factory=list)  # the places of what is in q
    n_rows: int = 0  # that passed, kept or not
    heads: tuple[int, ...] | None = None
    lse: Tensor | None = None  # of the last step, where the kernel told it
    latest: dict[str, Any] = field(default_factory=dict)  # k, v, mask … of the last step


class _Recorder:
    def __init__(
        self,
        model: Encoder | Decoder | EncoderDecoder,
        choice: Choice,
        outputs: bool,
        keeper: Keeper,
    ) -> None:
        self.model, self.choice, self.outputs, self.keeper = model, choice, outputs, keeper
        self.thread = threading.get_ident()
        self.trace = LiveTrace(self.finish, model=_described(model.config, model.name))
        self.parts: dict[str, _Parts] = {}
        self.tokens: dict[str, list[Tensor]] = {}
        self.order: list[Tensor] = []  # which rows the beams were, before each step of the decoder
        self.fresh: Tensor | None = None
        self.cache: ModelCache | None = None
        self.start = self.stop = 0
        self.is_fixed = False
        self.is_stale = False
        self.heard: Overheard | None = None

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
                if self.choice.has_layer(int(layer)):
                    name = f"{stack}.{layer}.{'cross' if part == 'cross' else 'self'}"
                    hook = partial(self._record, name)
                    handles.append(module.register_forward_pre_hook(self._listen_to_kernel))
                    handles.append(
                        module.register_forward_hook(hook, with_kwargs=True, always_call=True)
                    )
        return handles

    def _listen_to_kernel(self, _module: nn.Module, _args: tuple) -> None:
        if self._is_here() and not torch.compiler.is_compiling():
            self.heard = Overheard()
            self.heard.__enter__()

    def _heard_lse(self) -> Tensor | None:
        heard, self.heard = self.heard, None
        if heard is None:
            return None
        heard.__exit__(None, None, None)
        return heard.lse

    def close(self) -> None:
        self.finish()
        self._listen(None)

    def _is_here(self) -> bool:
        return threading.get_ident() == self.thread

    def _tokens(self, _module: nn.Module, args: tuple) -> None:
        if self._is_here():
            self.fresh = args[0].detach()

    def _enter(self, stack: str, _module: nn.Module, _args: tuple, options: dict) -> None:
        if not self._is_here():
            return
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
        self, name: str, _module: nn.Module, args: tuple, options: dict, out: Tensor | None
    ) -> None:
        if not self._is_here():
            return
        lse = self._heard_lse()
        if out is None:  # the call failed
            return
        q, k, v = (operand.detach() for operand in args)
        is_cross = name.endswith(".cross")
        if self.is_fixed and not is_cross:  # only what is filled, and copied: buffers change
            k, v = (t[:, :, : self.stop].clone() for t in (k, v))
        parts = self.parts.setdefault(name, _Parts())
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
            run.texts[text] = Words(tokens, shown, self._following(text, tokens))
        without_empty(run)
        name_rows(run)

    def _following(self, text: str, tokens: Tensor) -> list[str]:
        """How the token reads that was chosen after the last one, where there is a choice."""
        chosen = None if self.cache is None or text != "tokens" else self.cache.next_tokens
        tokenizer = self.model.tokenizer
        if chosen is None or len(chosen) != len(tokens):
            return []
        if tokenizer is None:
            return [str(token) for token in chosen.tolist()]
        rows = torch.cat([tokens, chosen.cpu()[:, None]], dim=1).tolist()
        return [labels(tokenizer, row)[-1] for row in rows]

    def _site(self, name: str, parts: _Parts) -> Site:
        is_writer = name.startswith("decoder.") or not isinstance(self.model, EncoderDecoder)
        both = isinstance(self.model, EncoderDecoder)
        q, out = (
            self.keeper.joined(self._in_order(chunks, is_writer), dim=2) if chunks else None
            for chunks in (parts.q, parts.out)
        )
        assert q is not None
        rows = torch.cat(parts.rows) if parts.rows else None
        is_whole = len(parts.q) == 1
        return site_of(
            name=name,
            q=q,
            out=out,
            queries="tokens" if is_writer else "source",
            keys="source" if both and (name.endswith(".cross") or not is_writer) else "tokens",
            heads=parts.heads,
            rows=rows,
            n_heads=self.model.config.n_heads,
            n_rows=parts.n_rows,
            lse=parts.lse if is_whole else None,
            **parts.latest,
        )

    def _in_order(self, chunks: list[Tensor], is_written: bool) -> list[Tensor]:
        return in_order(chunks, self.order) if is_written else chunks


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
