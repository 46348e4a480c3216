"""Modules that compute attention without the interface of transformers: which one, and when.

While such a module runs, a `Follower` looks at its operations. What it finds belongs to the
innermost of them; one that ends without any is reported with what was seen instead.
"""

from collections.abc import Callable
from typing import Any

from torch import nn

from glassformer.observe.following import Follower, Node
from glassformer.observe.patches import FAILED

_NAMES_OF_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads", "nhead")


class OwnAttention:
    """Follows modules from their `before` to their `after`."""

    def __init__(
        self,
        inmost: set[nn.Module],
        found: Callable[[nn.Module, Node], None],
        missed: Callable[[nn.Module, str], None],
    ) -> None:
        self.inmost, self.found, self.missed = inmost, found, missed
        self.inside: list[nn.Module] = []  # the innermost last
        self.follower: Follower | None = None
        self.explained: set[nn.Module] = set()
        self.silent: dict[nn.Module, bool] = {}  # and whether they ran products
        self.n_products: dict[nn.Module, int] = {}  # that were run before it began

    def before(self, module: nn.Module) -> None:
        if self.follower is None:
            self.explained.clear()
            self.silent.clear()
            self.follower = Follower(self._saw, lambda: self.inside[-1])
            self.follower.__enter__()
        self.inside.append(module)
        self.n_products[module] = self.follower.n_products

    def after(self, module: nn.Module, out: Any) -> None:
        follower = self.follower
        if follower is None or not self.inside or self.inside[-1] is not module:
            return
        self.inside.pop()
        if module in self.inmost and module not in self.explained and out is not FAILED:
            self.silent[module] = follower.n_products > self.n_products[module]
        if self.inside:
            return
        self.follower = None
        follower.__exit__(None, None, None)
        for owner in follower.pending.values():
            self.missed(owner, f"{type(owner).__name__} {_WITHOUT_VALUES}")
        reason = _WITHOUT_VALUES if follower.n_softmax else _WITHOUT_SOFTMAX
        for each, has_products in self.silent.items():
            is_part = any(each in known.modules() for known in self.explained)
            if not is_part and (has_products or not self.explained):
                self.missed(each, f"{type(module).__name__} {reason}")

    def _saw(self, node: Node) -> None:
        module = self.inside[-1]
        self.explained.add(module)
        self.found(module, node)


_WITHOUT_VALUES = (
    "does not multiply a softmax over keys with their values: its softmax is over something else, "
    "such as sampled points, or its weights are cut and moved before they meet the values"
)
_WITHOUT_SOFTMAX = "computes no softmax"


def head_count(module: nn.Module) -> int | None:
    """How many heads a module says it has."""
    found = (getattr(module, name, None) for name in _NAMES_OF_HEADS)
    return next((n for n in found if isinstance(n, int)), None)
