"""Tokens as vectors of the residual stream: what the first block of a stack reads of each.

A model is run on single tokens and stopped at its first block. Where what it reads is a row of a
table, times a number, plus what all tokens share (their position), that table is used; otherwise,
as after a norm of embeddings, the vectors themselves at the first position.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.analysis.reading import is_state
from glassformer.analysis.token_model import TokenModel
from glassformer.errors import TraceError
from glassformer.tracing.stream_listener import find_blocks

_SAMPLE = 64  # tokens by which a table is recognised
_AT_ONCE = 1024


class _Reached(Exception):
    """The first block has been given its input: the rest of the pass is not needed."""


@dataclass(eq=False)
class TokenVectors:
    """The vector of every token of a stack, positions left out where they can be."""

    model: TokenModel
    stack: str
    table: Float[Tensor, "V C"] | None = None
    factor: float = 1.0
    _rows: dict[str, Tensor] = field(default_factory=dict, repr=False)

    @property
    def note(self) -> str:
        if self.table is not None:
            return "tokens are their embeddings, without positions"
        return "tokens are what the first block reads at the first position"

    @classmethod
    def of(cls, model: TokenModel, stack: str) -> "TokenVectors":
        found = cls(model, stack)
        n = model.vocab_size
        ids = model.draw(min(_SAMPLE, n), seed=1).unique()
        rows, tables = found._run(ids)
        rows = rows.double() - rows.double().mean(0)
        for table in tables:
            if table.shape != (len(table), rows.shape[1]) or len(table) < n:
                continue
            own = table[ids].double()
            own = own - own.mean(0)
            factor = float((rows * own).sum() / own.square().sum().clamp(min=1e-300))
            bound = 64 * torch.finfo(table.dtype).eps * max(float(rows.abs().max()), 1e-30)
            if bool((rows - factor * own).abs().max() <= bound):
                found.table, found.factor = table, factor
                break
        return found

    def __len__(self) -> int:
        return self.model.vocab_size

    def __call__(self, ids: Int[Tensor, " N"]) -> Float[Tensor, "N C"]:
        """The vectors of these tokens, in float64."""
        ids = ids.to(self.model.device)
        if self.table is not None:
            return self.factor * self.table[ids].double()
        if "all" not in self._rows:
            every = torch.arange(len(self), device=self.model.device).split(_AT_ONCE)
            self._rows["all"] = torch.cat([self._run(each)[0] for each in every])
        return self._rows["all"][ids].double()

    def _run(self, ids: Int[Tensor, " N"]) -> tuple[Float[Tensor, "N C"], list[Tensor]]:
        """What the first block reads of these tokens, and the tables that hold them."""
        tokens = ids[:, None]
        reached: list[Tensor] = []
        tables: list[Tensor] = []

        def stop(_module: nn.Module, args: tuple, options: dict[str, Any]) -> None:
            reached.extend(x for x in (*args, *options.values()) if is_state(x))
            raise _Reached

        def note(module: nn.Module, args: tuple) -> None:
            weight = getattr(module, "weight", None)
            if not isinstance(weight, Tensor) or weight.ndim != 2:
                return
            if args and isinstance(args[0], Tensor) and torch.equal(args[0], tokens):
                tables.append(weight.detach())

        blocks = find_blocks(self.model.tree, self.model.places)
        first = next(block for block, stack in blocks.items() if stack == self.stack)
        with ExitStack() as hooks:
            for module in self.model.tree.paths:
                hooks.callback(module.register_forward_pre_hook(note).remove)
            hook = first.register_forward_pre_hook(stop, with_kwargs=True)
            hooks.callback(hook.remove)
            try:
                with self.model.evaluating():
                    self.model(tokens)
            except _Reached:
                pass
        if not reached:
            raise TraceError(f"The first block of {self.stack} reads no (B, L, C) tensor.")
        return reached[0][:, 0].detach(), tables
