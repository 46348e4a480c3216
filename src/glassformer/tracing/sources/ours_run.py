"""One run of a model of ours while it goes on: the steps of every site, the tokens, the beams."""

from dataclasses import dataclass, field
from typing import Any
from weakref import ref

import torch
from torch import Tensor

from glassformer.models import ModelCache
from glassformer.tracing.guard import Guard
from glassformer.tracing.live_trace import in_order
from glassformer.tracing.operand_store import Keeper
from glassformer.tracing.site import Site
from glassformer.tracing.site_assembly import name_rows, site_of, without_empty
from glassformer.tracing.sources.transformers_text import foreign_labels
from glassformer.tracing.trace import Run, Words


@dataclass
class Parts:
    """The steps of one site, not yet put together."""

    q: list[Tensor] = field(default_factory=list)
    out: list[Tensor] = field(default_factory=list)
    rows: list[Tensor] = field(default_factory=list)  # the places of what is in q
    n_rows: int = 0  # that passed, kept or not
    heads: tuple[int, ...] | None = None
    lse: Tensor | None = None  # of the last step, where the kernel told it
    latest: dict[str, Any] = field(default_factory=dict)  # k, v, mask … of the last step


class OwnRun:
    """What has been seen so far; `finish` puts it together in a run of the trace."""

    def __init__(
        self, name: str, guard: Guard, keeper: Keeper, tokenizer: Any, n_heads: int, both: bool
    ) -> None:
        self.name, self.guard, self.keeper, self.tokenizer = name, guard, keeper, tokenizer
        self.n_heads, self.both = n_heads, both  # both: an encoder reads, a decoder writes
        self.run = Run()
        self.parts: dict[str, Parts] = {}
        self.refusals: dict[str, str] = {}
        self.fault: str | None = None  # why nothing of this run can be shown
        self.tokens: dict[str, list[Tensor]] = {}
        self.order: list[Tensor] = []  # which rows the beams were, before each step of the decoder
        self.is_stale = False
        self._cache: ref | None = None

    @property
    def cache(self) -> ModelCache | None:
        """The cache that the run goes on with, None without one or when it is gone."""
        return None if self._cache is None else self._cache()

    @cache.setter
    def cache(self, cache: ModelCache | None) -> None:
        self._cache = None if cache is None else ref(cache)

    def next(self, *, keeping_source: bool) -> "OwnRun":
        """The run after this one; the encoder's part may be that of this one."""
        run = OwnRun(self.name, self.guard, self.keeper, self.tokenizer, self.n_heads, self.both)
        if keeping_source:
            run.parts = {n: p for n, p in self.parts.items() if n.startswith("encoder.")}
            run.refusals = {n: r for n, r in self.refusals.items() if n.startswith("encoder.")}
            run.tokens = {n: t for n, t in self.tokens.items() if n == "source"}
            if self.fault is not None:
                run.spoil(self.fault)
        return run

    def spoil(self, reason: str) -> None:
        """Nothing of this run can be trusted: passes or beams were not followed."""
        self.fault, self.is_stale = self.fault or reason, True

    def refuse(self, name: str, reason: str) -> None:
        self.refusals.setdefault(name, reason)
        self.is_stale = True

    def add_tokens(self, text: str, tokens: Tensor) -> None:
        self.tokens.setdefault(text, []).append(tokens)
        if text == "tokens":
            self.order.append(torch.arange(len(tokens)))

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
        run.sites, run.texts, run.refusals = {}, {}, dict(self.refusals)
        if self.fault is None:
            with self.guard.catching(self.name, self.spoil):
                self._put_together()
                return
        run.sites, run.texts = {}, {}
        run.refusals |= dict.fromkeys(self.parts or [self.name], str(self.fault))
        self.is_stale = False

    def _put_together(self) -> None:
        run = self.run
        for name, parts in self.parts.items():
            refuse = lambda why, name=name: run.refusals.update({name: why})  # noqa: E731
            with self.guard.catching(name, refuse):
                if parts.q and name not in self.refusals:
                    run.sites[name] = self._site(name, parts)
        for text, chunks in self.tokens.items():
            tokens = torch.cat(self._in_order(chunks, text == "tokens"), dim=1).cpu()
            run.texts[text] = words = Words(tokens, [])
            refuse = lambda why, text=text: run.refusals.update({f"labels of {text}": why})  # noqa: E731
            with self.guard.catching(text, refuse):
                words.labels = self._labels(tokens)
                words.following = self._following(text, tokens)
        without_empty(run)
        name_rows(run)

    def _labels(self, tokens: Tensor) -> list[list[str]]:
        if self.tokenizer is None:
            return []
        return [foreign_labels(self.tokenizer, row) for row in tokens.tolist()]

    def _following(self, text: str, tokens: Tensor) -> list[str]:
        """How the token reads that was chosen after the last one, where there is a choice."""
        cache = self.cache if text == "tokens" else None
        chosen = None if cache is None else cache.next_tokens
        if chosen is None or len(chosen) != len(tokens):
            return []
        if self.tokenizer is None:
            return [str(token) for token in chosen.tolist()]
        rows = torch.cat([tokens, chosen.cpu()[:, None]], dim=1).tolist()
        return [foreign_labels(self.tokenizer, row)[-1] for row in rows]

    def _site(self, name: str, parts: Parts) -> Site:
        is_writer = name.startswith("decoder.") or not self.both
        q, out = (
            self.keeper.joined(self._in_order(chunks, is_writer), dim=2) if chunks else None
            for chunks in (parts.q, parts.out)
        )
        assert q is not None
        reads_source = self.both and (name.endswith(".cross") or not is_writer)
        return site_of(
            name=name,
            q=q,
            out=out,
            queries="tokens" if is_writer else "source",
            keys="source" if reads_source else "tokens",
            heads=parts.heads,
            rows=torch.cat(parts.rows) if parts.rows else None,
            n_heads=self.n_heads,
            n_rows=parts.n_rows,
            lse=parts.lse if len(parts.q) == 1 else None,
            **parts.latest,
        )

    def _in_order(self, chunks: list[Tensor], is_written: bool) -> list[Tensor]:
        return in_order(chunks, self.order) if is_written else chunks
