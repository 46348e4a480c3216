"""Attention that a module computes by itself, found among the operations that it runs.

Whoever writes attention out, with whatever masks and biases, ends in these operations of PyTorch:

    raw = bmm(q, k)   scores = raw · scale + …   weights = softmax(scores)   out = bmm(weights, v)

`OperationGraph` notes which tensor results from which. `operand_recovery` traces a product with a
softmax for a factor back to q, k and v. Fused kernels that a module calls by itself are seen as
well. Operations are only watched, never replaced: what is computed stays the same.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from glassformer.tracing.nesting import iterate_tensors

_aten = torch.ops.aten
MOVES = {  # the same numbers in another order or shape
    _aten.view, _aten._unsafe_view, _aten._reshape_alias, _aten.expand, _aten.permute,
    _aten.transpose, _aten.t, _aten.unsqueeze, _aten.squeeze, _aten.clone, _aten.alias,
    _aten.detach, _aten.slice, _aten.select,
}  # fmt: skip
KEEPS = {_aten._to_copy, _aten.native_dropout}  # the same cells, rounded or thinned
SCALES = {_aten.mul, _aten.mul_, _aten.div, _aten.div_}
ADDS = {  # whatever they do to scores shows in what the product of q and k does not explain
    _aten.add, _aten.add_, _aten.sub, _aten.sub_, _aten.masked_fill, _aten.masked_fill_,
    _aten.where, _aten.maximum, _aten.clamp, _aten.clamp_, _aten.clamp_min, _aten.clamp_max,
    _aten.copy_, _aten.index_put_, _aten.nan_to_num, _aten.tanh, _aten.tanh_,
}  # fmt: skip
PRODUCTS = {_aten.bmm, _aten.baddbmm}
SOFTMAX = {_aten._softmax, _aten._safe_softmax}
FUSED = {
    _aten._scaled_dot_product_flash_attention_for_cpu,
    _aten._scaled_dot_product_flash_attention,
    _aten._scaled_dot_product_efficient_attention,
    _aten._scaled_dot_product_cudnn_attention,
}
NOISE = {_aten.bernoulli_}  # what dropout without a kernel of its own is made of
_NOTED = NOISE | MOVES | KEEPS | SCALES | ADDS | PRODUCTS | SOFTMAX | FUSED


@dataclass(eq=False)
class Node:
    """A tensor, and the operation that gave it."""

    tensor: Tensor
    op: Any = None  # None: an input
    function: Any = None
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    parents: tuple["Node", ...] = ()  # of its tensors, in the order of the arguments

    def replay(self, instead: Tensor) -> Tensor:
        """The same operation on another tensor of the same shape, wherever that lies in memory."""
        if self.op in (_aten.view, _aten._unsafe_view, _aten._reshape_alias):
            return instead.reshape(self.args[1])
        return self.function(instead, *self.args[1:], **self.options)


class OperationGraph(TorchDispatchMode):
    """While this is entered, `see` is shown every product with a softmax and every fused kernel.

    `pending` are softmaxes of products that met no values in such a product, each with what `owner`
    said when it was computed.
    """

    def __init__(
        self,
        see: Callable[[Node], None],
        owner: Callable[[], Any],
        guarded: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        super().__init__()
        self.see, self.owner, self.guarded = see, owner, guarded
        self.nodes: dict[tuple[Any, ...], Node] = {}
        self.scored: dict[tuple[Any, ...], Tensor] = {}  # whatever a product has become a part of
        self.of_products: set[Node] = set()  # softmaxes; others mix without asking any key
        self.pending: dict[Node, Any] = {}
        self.n_softmax = self.n_products = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        out = func(*args, **(kwargs or {}))
        with self.guarded():
            self._note(func, args, kwargs or {}, out)
        return out

    def _note(self, func: Any, args: tuple, options: dict[str, Any], out: Any) -> None:
        op = func.overloadpacket
        given = [t for t in iterate_tensors(args) if _is_real(t)]
        results = [t for t in iterate_tensors(out) if _is_real(t)]
        self.n_products += op in PRODUCTS
        is_scored = op in PRODUCTS or any(_memory(t) in self.scored for t in given)
        if op in _NOTED and results:
            parents = tuple(self._node(t) for t in args if isinstance(t, Tensor))
            node = Node(results[0], op, func, args, options, parents)
            self.nodes[_memory(results[0])] = node
            if op in SOFTMAX:
                self._note_softmax(node, is_scored)
            ways = [softmax_behind(each) for each in parents] if op in PRODUCTS else []
            met = [way[0] for way in ways if way is not None and way[0] in self.of_products]
            if met or op in FUSED:
                for softmax in met:
                    self.pending.pop(softmax, None)
                is_scored = False
                self.see(node)
        if is_scored:
            self.scored |= {_memory(t): t for t in results}

    def _note_softmax(self, node: Node, is_scored: bool) -> None:
        self.n_softmax += 1
        if is_scored:
            self.pending[node] = self.owner()
            self.of_products.add(node)

    def _node(self, tensor: Tensor) -> Node:
        if not _is_real(tensor):
            return Node(tensor)
        return self.nodes.get(_memory(tensor)) or Node(tensor)


def softmax_behind(node: Node) -> list[Node] | None:
    """The way from a softmax to this tensor, both ends included; None where there is none."""
    way = [node]
    while way[0].op in MOVES | KEEPS | ADDS | SCALES:
        if not way[0].parents:
            return None
        way.insert(0, way[0].parents[0])
    return way if way[0].op in SOFTMAX else None


def is_dropout(node: Node) -> bool:
    """Whether this thins: by a kernel for it, or by a factor of noise."""
    if node.op is _aten.native_dropout:
        return True
    factor = node.parents[1] if node.op in SCALES and len(node.parents) > 1 else None
    while factor is not None and factor.op in MOVES | KEEPS | SCALES:
        factor = factor.parents[0]
    return factor is not None and factor.op in NOISE


def products_behind(node: Node, way: tuple[Node, ...] = ()) -> Iterator[tuple[Node, list[Node]]]:
    """Products that reach this tensor cell by cell, and the ways from them to it."""
    if node.op in PRODUCTS:
        yield node, list(way)
    elif node.op in MOVES | KEEPS | SCALES | ADDS:
        for parent in node.parents:
            yield from products_behind(parent, (node, *way))


def _is_real(tensor: Tensor) -> bool:
    return tensor.numel() > 0 and not tensor.is_meta and tensor.layout is torch.strided


def _memory(tensor: Tensor) -> tuple[Any, ...]:
    """What tells living tensors apart: a view is another object each time it is handed over."""
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype
