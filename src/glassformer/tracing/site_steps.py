"""The calls of one attention site, and the site that they form together.

Steps of generation that continue a cache are one matrix: their queries below each other, the keys
of all of them. A cache may return all keys (growing), too many (fixed: those not yet written are
hidden and cut off), or only the last ones (a sliding window: the others were seen earlier).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.functional import Bias, ExplicitBias
from glassformer.functional.reference import attention
from glassformer.tracing.beams import follow_beams
from glassformer.tracing.head_shards import HeadShard
from glassformer.tracing.mask_rules import MaskFormula, MaskRule, join_rows, join_rules
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.selection import slice_operand
from glassformer.tracing.site import Site
from glassformer.tracing.site_assembly import build_site


@dataclass(eq=False, kw_only=True)
class Step:
    """One call, as it was computed."""

    q: Float[Tensor, "B H L D"]
    k: Float[Tensor, "B K S D"] | None  # None: a later step holds these keys too
    v: Float[Tensor, "B K S E"] | None
    rule: MaskRule | MaskFormula
    bias: Float[Tensor, "_B _H L _S"] | Bias | None = None
    scale: float | None = None
    softcap: float | None = None
    sink: Float[Tensor, " H"] | None = None
    lse: Float[Tensor, "B H L"] | None = None  # where the kernel returned it
    out: Float[Tensor, "B H L E"] | None = None
    stop: int  # how many tokens the text has with this step
    heads: tuple[int, ...] | None = None  # those that are in q, k, v and out, None: all
    rows: Int[Tensor, " R"] | None = None  # those that are in q and out, None: all
    n_heads: int = 0
    shard: HeadShard | None = None  # where other ranks have the other heads

    @property
    def L(self) -> int:
        return self.rule.L

    @property
    def S(self) -> int:
        return self.rule.S

    def select(self, heads: tuple[int, ...] | None, rows: Int[Tensor, " R"] | None) -> "Step":
        """With some heads and rows of the operands; rule and bias stay those of all."""
        assert self.k is not None and self.v is not None
        H, K = self.q.shape[1], self.k.shape[1]
        read = None if heads is None else tuple(h * K // H for h in heads)
        return replace(
            self,
            q=slice_operand(self.q, heads, rows),
            k=slice_operand(self.k, read),
            v=slice_operand(self.v, read),
            out=None if self.out is None else slice_operand(self.out, heads, rows),
            lse=None if self.lse is None else slice_operand(self.lse, heads, rows),
            heads=heads,
            rows=rows,
            n_heads=H,
        )

    def detach(self) -> "Step":
        """Without the graph of gradients."""
        names = ("q", "k", "v", "out", "lse")
        return replace(
            self, **{n: t.detach() for n in names if (t := getattr(self, n)) is not None}
        )

    def store(self, store: OperandStore) -> "Step":
        names = ("q", "k", "v", "out")
        kept = {n: store.keep(t) for n in names if (t := getattr(self, n)) is not None}
        if store.device is None:
            return replace(self, **kept)
        names = ("bias", "sink", "rule", "rows")
        moved = {n: t.to(store.device) for n in names if (t := getattr(self, n)) is not None}
        return replace(self, **kept, **moved)

    def drop_unwritten(self) -> "Step":
        """Without the keys of a fixed cache that are not written yet, and out of its buffers."""
        assert self.k is not None and self.v is not None and isinstance(self.rule, MaskRule)
        S = min(self.S, self.stop)
        rule = self.rule if S == self.S else self.rule.drop_keys(S)
        if rule is None:
            raise TraceError(
                f"Keys of a fixed cache that are not written yet must be hidden; of {self.S}, some "
                f"behind the first {S} are open."
            )
        bias = self.bias[..., :S] if isinstance(self.bias, Tensor) else self.bias
        k, v = (t[:, :, :S].clone() for t in (self.k, self.v))
        return replace(self, k=k, v=v, rule=rule, bias=bias)

    def without_output(self) -> "Step":
        return replace(self, out=None)

    def cut(self, stop: int) -> "Step":
        """The first rows alone: the text was shortened to this length."""
        L = self.L - (self.stop - stop)
        S = self.S - (self.stop - stop)
        rows = None if self.rows is None else self.rows[self.rows < L]
        kept = L if rows is None else len(rows)
        return replace(
            self,
            q=self.q[:, :, :kept],
            rows=rows,
            lse=None if self.lse is None else self.lse[:, :, :kept],
            k=None if self.k is None else self.k[:, :, :S],
            v=None if self.v is None else self.v[:, :, :S],
            rule=self.rule.first_rows(L),
            bias=self.bias[..., :L, :S] if isinstance(self.bias, Tensor) else self.bias,
            out=None if self.out is None else self.out[:, :, :kept],
            stop=stop,
        )

    def select_sequences(self, rows: Tensor) -> "Step":
        """The same for other sequences of the batch."""
        assert isinstance(self.rule, MaskRule)
        parts = {n: getattr(self, n) for n in ("q", "k", "v", "bias", "out", "lse")}
        shared = ("bias",)
        chosen = {
            n: t[rows]
            for n, t in parts.items()
            if t is not None and (len(t) > 1 or n not in shared)
        }
        return replace(self, **chosen, rule=self.rule.select_sequences(rows))

    def options(self) -> dict[str, Any]:
        """Mask, bias, scale and softcap, as the functions of attention take them."""
        bias = self.bias
        if isinstance(bias, Tensor):
            bias = ExplicitBias(prepend_sink(bias, self.sink))
        if self.sink is not None:
            bias = _sink_bias(self.sink, self.S) + bias if bias else _sink_bias(self.sink, self.S)
        mask = self.rule.mask(B=len(self.q), has_sink=self.sink is not None)
        return {"mask": mask, "bias": bias, "scale": self.scale, "softcap": self.softcap}

    def difference(self, out: Float[Tensor, "B H L E"]) -> Tensor:
        """How far the last row, computed by the definition, lies from the model's, relative to v.

        0 where the row is empty: implementations fill such a row as they like.
        """
        assert self.k is not None and self.v is not None and isinstance(self.rule, MaskRule)
        bias = self.bias[..., -1:, :] if isinstance(self.bias, Tensor) else self.bias
        last = self.rule.last_row()
        row = replace(self, q=self.q[:, :, -1:], rule=last, bias=bias, out=None)
        k, v = (prepend_sink(t, self.sink, dim=2) for t in (self.k, self.v))
        derived = attention(row.q, k, v, **row.options())
        filled = last.dense().any(-1, keepdim=True)
        apart = (derived - out[:, :, -1:]).abs().float().where(filled, 0.0)
        return apart.amax() / self.v.abs().amax().float().clamp(min=1e-30)


@dataclass(eq=False)
class Steps:
    """All calls of a site in one run."""

    is_cross: bool
    steps: list[Step] = field(default_factory=list)
    differences: list[Tensor] = field(default_factory=list)  # of checked rows, from the model's

    @property
    def n_rows(self) -> int:
        """How many rows there were, kept or not."""
        return sum(step.L for step in self.steps)

    def add(self, step: Step, store: OperandStore) -> None:
        if self.steps and not self.is_cross:
            if step.stop - self._first_key() == step.S:
                for earlier in self.steps:
                    earlier.k = earlier.v = None
            else:
                assert step.k is not None and step.v is not None
                k, v = (t[:, :, step.S - step.L :].clone() for t in (step.k, step.v))
                step = replace(step, k=k, v=v)
        self.steps.append(step.store(store))

    def shorten(self, stop: int) -> None:
        """Drop everything after this many tokens: a cache was cropped."""
        while self.steps and self.steps[-1].stop - self.steps[-1].L >= stop:
            self.steps.pop()
        if self.steps and self.steps[-1].stop > stop:
            self.steps[-1] = self.steps[-1].cut(stop)

    def find_fault(self) -> str | None:
        """Why this site cannot be shown; None where it can."""
        if not self.differences:
            return None
        found = float(torch.stack([d.cpu() for d in self.differences]).max())
        if found <= torch.finfo(self.steps[-1].q.dtype).eps ** 0.5:
            return None
        return (
            f"its own eager attention does something else with q, k and v: a row of its output "
            f"lies {found:.2g} of the largest value away from what they give"
        )

    @property
    def has_sink(self) -> bool:
        return self.steps[-1].sink is not None

    def build_site(
        self,
        name: str,
        order: Sequence[Tensor],
        queries: str,
        keys: str,
        store: OperandStore,
        *,
        batch: int | None = None,
    ) -> Site:
        """The site that the steps form; `order` names the rows that were continued after each.

        With `batch`, each sequence is repeated so that there are that many.
        """
        step = self._join(order, store)
        is_read = isinstance(step.rule, MaskRule)  # our models repeat their sources themselves
        if is_read and batch is not None and batch != len(step.q) and batch % len(step.q) == 0:
            rows = torch.arange(len(step.q)).repeat_interleave(batch // len(step.q))
            step = step.select_sequences(rows.to(step.q.device))
        assert step.k is not None and step.v is not None
        k, v = (prepend_sink(t, step.sink, dim=2) for t in (step.k, step.v))
        site = build_site(
            name=name,
            q=step.q,
            k=k,
            v=v,
            out=step.out,
            queries=queries,
            keys=keys,
            heads=step.heads,
            rows=step.rows,
            n_heads=step.n_heads,
            n_rows=step.L,
            lse=step.lse,
            **step.options(),
        )
        if step.shard is not None:  # numbers in the model, not on this rank
            first = step.shard.first
            site.heads = tuple(first + head for head in site.head_numbers)
        return site

    def _join(self, order: Sequence[Tensor], store: OperandStore) -> Step:
        last = self.steps[-1]
        if len(self.steps) == 1:
            return last
        order = list(order)[len(order) - len(self.steps) :]
        k, v, S = last.k, last.v, last.S
        if not self.is_cross:
            k, v = (self._join_keys(name, order, store) for name in ("k", "v"))
            S = k.shape[2]
        first = self._first_key()
        starts = [0 if self.is_cross else each.stop - each.S - first for each in self.steps]
        bias = last.bias if isinstance(last.bias, Bias) else None
        if bias is None and any(each.bias is not None for each in self.steps):
            padded = [
                torch.nn.functional.pad(_dense_bias(each), (start, S - start - each.S))
                for each, start in zip(self.steps, starts, strict=True)
            ]
            bias = join_rows(padded, order)
        outs = [each.out for each in self.steps if each.out is not None]
        return replace(
            last,
            q=store.concatenate(follow_beams([each.q for each in self.steps], order), dim=2),
            out=store.concatenate(follow_beams(outs, order), dim=2) if outs else None,
            k=k,
            v=v,
            lse=None,
            rows=self._find_rows(),
            rule=join_rules([each.rule for each in self.steps], order, starts, S),
            bias=bias,
        )

    def _find_rows(self) -> Int[Tensor, " R"] | None:
        """The positions of the rows that are kept, over all steps."""
        found, n = [], 0
        for step in self.steps:
            if step.rows is not None:
                found.append(step.rows + n)
            n += step.L
        return torch.cat(found) if found else None

    def _join_keys(self, name: str, order: Sequence[Tensor], store: OperandStore) -> Tensor:
        kept = [t for each in self.steps if (t := getattr(each, name)) is not None]
        return store.concatenate(follow_beams(kept, order[len(order) - len(kept) :]), dim=2)

    def _first_key(self) -> int:
        """How many tokens of the text lie before the first key that was seen."""
        return self.steps[0].stop - self.steps[0].S


def _dense_bias(step: Step) -> Tensor:
    return step.bias if isinstance(step.bias, Tensor) else step.q.new_zeros(1, 1, step.L, step.S)


def prepend_sink(tensor: Tensor, sink: Tensor | None, dim: int = 3) -> Tensor:
    """With one more key, of zeros, before the others, where there is a sink."""
    if sink is None:
        return tensor
    return torch.nn.functional.pad(tensor, (1, 0) if dim == 3 else (0, 0, 1, 0))


def _sink_bias(sink: Float[Tensor, " H"], S: int) -> Bias:
    """A key of zeros scores 0; its bias makes that the sink's logit."""
    return ExplicitBias(torch.nn.functional.pad(sink.view(1, -1, 1, 1), (0, S)))
