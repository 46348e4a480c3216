"""Modules that compute attention without the interface of transformers.

While such a module runs, an `OperationGraph` notes its operations. The attention it finds belongs
to the innermost module; a module that computes none is reported with what was seen instead.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import nn

from glassformer.tracing.patches import FAILED
from glassformer.tracing.sources.operation_graph import Node, OperationGraph

_NAMES_OF_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads", "nhead")


class CustomAttention:
    """Follows the operations of modules from `enter` to `leave`."""

    def __init__(
        self,
        innermost: set[nn.Module],
        found: Callable[[nn.Module, Node], None],
        missed: Callable[[nn.Module, str], None],
        guarded: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self.innermost, self.found, self.missed, self.guarded = innermost, found, missed, guarded
        self.inside: list[nn.Module] = []  # the innermost last
        self.graph: OperationGraph | None = None
        self.explained: set[nn.Module] = set()
        self.silent: dict[nn.Module, bool] = {}  # and whether they ran products
        self.n_products: dict[nn.Module, int] = {}  # that were run before it began

    def enter(self, module: nn.Module) -> None:
        if self.graph is None:
            self.explained.clear()
            self.silent.clear()
            self.graph = OperationGraph(self._note_found, lambda: self.inside[-1], self.guarded)
            self.graph.__enter__()
        self.inside.append(module)
        self.n_products[module] = self.graph.n_products

    def leave(self, module: nn.Module, out: Any) -> None:
        graph = self.graph
        if graph is None or module not in self.inside:
            return
        del self.inside[self.inside.index(module) :]  # after a fault there may be more than one
        if not self.inside:
            self.graph = None
            graph.__exit__(None, None, None)
        if module in self.innermost and module not in self.explained and out is not FAILED:
            self.silent[module] = graph.n_products > self.n_products[module]
        if not self.inside:
            self._report(module, graph)

    def close(self) -> None:
        """Stop looking, where a fault kept `leave` from doing so."""
        graph, self.graph = self.graph, None
        self.inside.clear()
        if graph is not None:
            graph.__exit__(None, None, None)

    def _report(self, module: nn.Module, graph: OperationGraph) -> None:
        """What ran inside of a module and showed nothing."""
        for owner in graph.pending.values():
            self.missed(owner, f"{type(owner).__name__} {_WITHOUT_VALUES}")
        reason = _WITHOUT_VALUES if graph.n_softmax else _WITHOUT_SOFTMAX
        for each, has_products in self.silent.items():
            is_part = any(each in known.modules() for known in self.explained)
            if not is_part and (has_products or not self.explained):
                self.missed(each, f"{type(module).__name__} {reason}")

    def _note_found(self, node: Node) -> None:
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
