"""The calls of one attention site in a foreign model, and the site that they make together.

Steps of generation that continue a cache are one matrix: their queries below each other, the keys
of all of them. A cache may hand over all keys (growing), too many (fixed: what is not yet written
is hidden and cut off), or only the last ones (a sliding window: those before were seen earlier).
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
from glassformer.tracing.live_trace import in_order
from glassformer.tracing.mask_rules import Opening, openings_joined, rows_joined
from glassformer.tracing.operand_store import Keeper
from glassformer.tracing.selection import taken
from glassformer.tracing.site import Site
from glassformer.tracing.site_assembly import site_of


@dataclass(eq=False, kw_only=True)
class Step:
    """One call, as it was computed."""

    q: Float[Tensor, "B H L D"]
    k: Float[Tensor, "B K S D"] | None  # None: a later step holds these keys too
    v: Float[Tensor, "B K S E"] | None
    opening: Opening
    bias: Float[Tensor, "_B _H L _S"] | None = None
    scale: float | None = None
    softcap: float | None = None
    sink: Float[Tensor, " H"] | None = None
    lse: Float[Tensor, "B H L"] | None = None  # where the kernel told it
    out: Float[Tensor, "B H L E"] | None = None
    stop: int  # how many tokens the text has with this step
    heads: tuple[int, ...] | None = None  # those that are in q, k, v and out, None: all
    rows: Int[Tensor, " R"] | None = None  # those that are in q and out, None: all
    n_heads: int = 0

    @property
    def L(self) -> int:
        return self.opening.L

    @property
    def S(self) -> int:
        return self.opening.S

    def chosen(self, heads: tuple[int, ...] | None, rows: Int[Tensor, " R"] | None) -> "Step":
        """With some heads and rows of the operands; opening and bias stay those of all."""
        assert self.k is not None and self.v is not None
        H, K = self.q.shape[1], self.k.shape[1]
        read = None if heads is None else tuple(h * K // H for h in heads)
        return replace(
            self,
            q=taken(self.q, heads, rows),
            k=taken(self.k, read),
            v=taken(self.v, read),
            out=None if self.out is None else taken(self.out, heads, rows),
            lse=None if self.lse is None else taken(self.lse, heads, rows),
            heads=heads,
            rows=rows,
            n_heads=H,
        )

    def kept(self, keeper: Keeper) -> "Step":
        names = ("q", "k", "v", "out")
        where = {n: keeper.keep(t) for n in names if (t := getattr(self, n)) is not None}
        if keeper.device is None:
            return replace(self, **where)
        names = ("bias", "sink", "opening", "rows")
        moved = {n: t.to(keeper.device) for n in names if (t := getattr(self, n)) is not None}
        return replace(self, **where, **moved)

    def written(self) -> "Step":
        """Without the keys of a fixed cache that are not written yet, and out of its buffers."""
        assert self.k is not None and self.v is not None
        S = min(self.S, self.stop)
        opening = self.opening if S == self.S else self.opening.until(S)
        if opening is None:
            raise TraceError(
                f"Keys of a fixed cache that are not written yet must be hidden; of {self.S}, some "
                f"behind the first {S} are open."
            )
        bias = None if self.bias is None else self.bias[..., :S]
        k, v = (t[:, :, :S].clone() for t in (self.k, self.v))
        return replace(self, k=k, v=v, opening=opening, bias=bias)

    def without_output(self) -> "Step":
        return replace(self, out=None)

    def cut(self, stop: int) -> "Step":
        """The first rows alone: the text was shortened to this."""
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
            opening=self.opening.rows(L),
            bias=None if self.bias is None else self.bias[..., :L, :S],
            out=None if self.out is None else self.out[:, :, :kept],
            stop=stop,
        )

    def of(self, rows: Tensor) -> "Step":
        """The same for other sequences of the batch."""
        parts = {n: getattr(self, n) for n in ("q", "k", "v", "bias", "out", "lse")}
        shared = ("bias",)
        chosen = {
            n: t[rows]
            for n, t in parts.items()
            if t is not None and (len(t) > 1 or n not in shared)
        }
        return replace(self, **chosen, opening=self.opening.of(rows))

    def options(self) -> dict[str, Any]:
        """How scores come from q and k, as our functions take it."""
        bias = None if self.bias is None else ExplicitBias(_sunk(self.bias, self.sink, 0.0))
        if self.sink is not None:
            bias = _sink_bias(self.sink, self.S) + bias if bias else _sink_bias(self.sink, self.S)
        mask = self.opening.mask(B=len(self.q), has_sink=self.sink is not None)
        return {"mask": mask, "bias": bias, "scale": self.scale, "softcap": self.softcap}

    def difference(self, out: Float[Tensor, "B H L E"]) -> Tensor:
        """How far the last row, computed by the definition, lies from the model's, in units of v;
        0 where the row is empty, which everybody fills as they like."""
        assert self.k is not None and self.v is not None
        bias = None if self.bias is None else self.bias[..., -1:, :]
        last = self.opening.last_row()
        row = replace(self, q=self.q[:, :, -1:], opening=last, bias=bias, out=None)
        k, v = (_sunk(t, self.sink, 0.0, dim=2) for t in (self.k, self.v))
        derived = attention(row.q, k, v, **row.options())
        filled = row.opening.dense().any(-1, keepdim=True)
        apart = (derived - out[:, :, -1:]).abs().float().where(filled, 0.0)
        return apart.amax() / self.v.abs().amax().float().clamp(min=1e-30)


@dataclass(eq=False)
class Steps:
    """All calls of a site in one run."""

    is_cross: bool
    steps: list[Step] = field(default_factory=list)
    differences: list[Tensor] = field(default_factory=list)
    refusal: str | None = None

    @property
    def n_rows(self) -> int:
        """How many rows have passed."""
        return sum(step.L for step in self.steps)

    def add(self, step: Step, keeper: Keeper) -> None:
        if self.steps and not self.is_cross:
            if step.stop - self._first_key() == step.S:
                for earlier in self.steps:
                    earlier.k = earlier.v = None
            else:
                assert step.k is not None and step.v is not None
                k, v = (t[:, :, step.S - step.L :].clone() for t in (step.k, step.v))
                step = replace(step, k=k, v=v)
        self.steps.append(step.kept(keeper))

    def shorten(self, stop: int) -> None:
        """Forget what lies behind this many tokens: a cache was cropped."""
        while self.steps and self.steps[-1].stop - self.steps[-1].L >= stop:
            self.steps.pop()
        if self.steps and self.steps[-1].stop > stop:
            self.steps[-1] = self.steps[-1].cut(stop)

    def refuse(self, reason: str) -> None:
        self.refusal = self.refusal or reason

    def reason(self) -> str | None:
        """Why this site cannot be shown, None where it can."""
        if self.refusal is not None or not self.differences:
            return self.refusal
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

    def site(
        self,
        name: str,
        order: Sequence[Tensor],
        queries: str,
        keys: str,
        keeper: Keeper,
        *,
        batch: int | None = None,
    ) -> Site:
        """The site that the steps make; `order` says which rows went on after each.

        With `batch`, each sequence is repeated as often as makes so many of them.
        """
        step = self._joined(order, keeper)
        if batch is not None and batch != len(step.q) and batch % len(step.q) == 0:
            rows = torch.arange(len(step.q)).repeat_interleave(batch // len(step.q))
            step = step.of(rows.to(step.q.device))
        assert step.k is not None and step.v is not None
        k, v = (_sunk(t, step.sink, 0.0, dim=2) for t in (step.k, step.v))
        return site_of(
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

    def _joined(self, order: Sequence[Tensor], keeper: Keeper) -> Step:
        last = self.steps[-1]
        if len(self.steps) == 1:
            return last
        order = list(order)[len(order) - len(self.steps) :]
        k, v, S = last.k, last.v, last.S
        if not self.is_cross:
            k, v = (self._keys(name, order, keeper) for name in ("k", "v"))
            S = k.shape[2]
        first = self._first_key()
        starts = [0 if self.is_cross else each.stop - each.S - first for each in self.steps]
        bias = None
        if any(each.bias is not None for each in self.steps):
            padded = [
                torch.nn.functional.pad(_bias(each), (start, S - start - each.S))
                for each, start in zip(self.steps, starts, strict=True)
            ]
            bias = rows_joined(padded, order)
        outs = [each.out for each in self.steps if each.out is not None]
        return replace(
            last,
            q=keeper.joined(in_order([each.q for each in self.steps], order), dim=2),
            out=keeper.joined(in_order(outs, order), dim=2) if outs else None,
            k=k,
            v=v,
            lse=None,
            rows=self._rows(),
            opening=openings_joined([each.opening for each in self.steps], order, starts, S),
            bias=bias,
        )

    def _rows(self) -> Int[Tensor, " R"] | None:
        """The places of the rows that are kept, over all steps."""
        found, n = [], 0
        for step in self.steps:
            if step.rows is not None:
                found.append(step.rows + n)
            n += step.L
        return torch.cat(found) if found else None

    def _keys(self, name: str, order: Sequence[Tensor], keeper: Keeper) -> Tensor:
        kept = [t for each in self.steps if (t := getattr(each, name)) is not None]
        return keeper.joined(in_order(kept, order[len(order) - len(kept) :]), dim=2)

    def _first_key(self) -> int:
        """How many tokens of the text lie before the first key that was seen."""
        return self.steps[0].stop - self.steps[0].S


def _bias(step: Step) -> Tensor:
    return step.q.new_zeros(1, 1, step.L, step.S) if step.bias is None else step.bias


def _sunk(tensor: Tensor, sink: Tensor | None, value: float, dim: int = 3) -> Tensor:
    """With one more key before the others, where there is a sink."""
    if sink is None:
        return tensor
    edges = (1, 0) if dim == 3 else (0, 0, 1, 0)
    return torch.nn.functional.pad(tensor, edges, value=value)


def _sink_bias(sink: Float[Tensor, " H"], S: int) -> Bias:
    """A key of zeros scores 0; its bias makes that the sink's logit."""
    return ExplicitBias(torch.nn.functional.pad(sink.view(1, -1, 1, 1), (0, S)))
