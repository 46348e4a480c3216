"""The residual stream of a block, found by following its additions.

A block reads the stream, and writes to it by adding: whatever it is called, `x = x + f(norm(x))`
is an addition of PyTorch with the stream for one operand. `StreamGraph` notes, while a block runs,
which tensors carry the stream and what was added to it; `steps_to` then reads off the way from the
block's input to its output. Nothing is known of architectures: pre-norm, post-norm, sandwich norms,
parallel branches and scaled residuals are different ways through the same few operations.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from glassformer.tracing.nesting import iterate_tensors

_ADDS = {"add", "__add__", "__radd__"}
_ADDS_IN_PLACE = {"add_", "__iadd__"}
_SCALES = {"mul", "__mul__", "__rmul__", "div", "true_divide", "__truediv__"}
_PRODUCTS = {"linear", "addmm", "matmul", "__matmul__"}
_COPIES = {
    "to", "float", "half", "bfloat16", "double", "type", "type_as", "contiguous", "clone", "detach",
    "dropout", "dropout_", "reshape", "view", "view_as", "alias", "cuda", "cpu", "requires_grad_",
}  # fmt: skip


class NotFollowed(Exception):
    """The output of a block does not come from its input by additions, norms and factors."""


@dataclass(eq=False, frozen=True, slots=True)
class Added:
    """What one part adds to the stream."""

    value: Tensor
    owners: frozenset[str]  # the sites of attention it depends on since the stream was last read
    is_joined: bool = False  # it was added to the term before it, and their sum to the stream
    matrix: "WritingMatrix | None" = None  # where one matrix wrote it


@dataclass(eq=False, frozen=True, slots=True)
class WritingMatrix:
    """The matrix by which a part writes to the stream, and what happens to its result."""

    weight: Tensor  # (C, X)
    bias: Tensor | None
    then: "tuple[Normed | Scaled, ...]" = ()


@dataclass(eq=False, frozen=True, slots=True)
class Normed:
    """A norm: of the stream itself (post-norm), or of what a part adds (sandwich norm)."""

    module: nn.Module
    before: Tensor
    after: Tensor


@dataclass(eq=False, frozen=True, slots=True)
class Scaled:
    """A factor: a number, or one for each feature."""

    factor: float | Tensor


StreamStep = Added | Normed | Scaled


@dataclass(eq=False, frozen=True, slots=True)
class _Stream:
    """A tensor that carries the stream: how it follows from an earlier one."""

    parent: "_Stream | None" = None
    steps: tuple[StreamStep, ...] = ()


@dataclass(eq=False, frozen=True, slots=True)
class _Branch:
    """A tensor that does not: the sites that it depends on, and the terms that it is a sum of."""

    owners: frozenset[str] = frozenset()
    terms: tuple[Added, ...] = ()  # empty: it is one term
    matrix: WritingMatrix | None = None


_NOTHING = _Branch()


class StreamGraph(TorchFunctionMode):
    """While this is entered, each tensor of a block is marked as stream or as branch."""

    def __init__(
        self,
        start: Tensor,
        guarded: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        super().__init__()
        self.start, self.shape, self.guarded = start, start.shape, guarded
        self.nodes: Any = WeakIdKeyDictionary()
        self.nodes[start] = _Stream()
        self.used: Any = WeakIdKeyDictionary()  # what was added: it must stay as it was
        self.owner: str | None = None  # the site inside of whose module we are
        self.fault: str | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        options = kwargs or {}
        name = getattr(func, "__name__", "")
        before = None
        with self.guarded():
            before = self._prepare(name, args)
        out = func(*args, **options)
        if isinstance(out, Tensor | tuple | list):
            with self.guarded():
                self._note(name, before or args, options, out)
        return out

    def _prepare(self, name: str, args: tuple) -> tuple | None:
        """The arguments as they are before an operation that overwrites its first one."""
        if not args or not isinstance(args[0], Tensor) or not _is_in_place(name):
            return None
        node = self.nodes.get(args[0])
        if name in _ADDS_IN_PLACE and self._fits(args[0]) and args[0] not in self.used:
            copy = args[0].clone()
            self.nodes[copy] = node if node is not None else _NOTHING
            if args[0] is self.start:
                self.start = copy
            return (copy, *args[1:])
        if isinstance(node, _Stream) or args[0] in self.used:
            self.fault = f"{name} overwrites the residual stream"
        return None

    def _note(self, name: str, args: tuple, options: dict[str, Any], out: Any) -> None:
        if name == "__get__" or (args and out is args[0] and not _is_in_place(name)):
            return
        for result in iterate_tensors(out):
            if result.is_floating_point():
                self.nodes[result] = self._follow(name, args, options, result)

    def _follow(
        self, name: str, args: tuple, options: dict[str, Any], result: Tensor
    ) -> _Stream | _Branch:
        inputs = list(iterate_tensors(args))
        if self._fits(result) and inputs:
            if name in _ADDS | _ADDS_IN_PLACE and options.get("alpha", 1) == 1 and len(args) == 2:
                node = self._follow_sum(*args)
            elif name in _SCALES and len(args) == 2:
                node = self._follow_product(*args, is_divided="div" in name)
            elif name in _PRODUCTS:
                node = self._follow_matrix(name, args, options, inputs)
            elif name in _COPIES and self._fits(inputs[0]):
                node = self.nodes.get(inputs[0])
            else:
                node = None
            if node is not None:
                return node
        return self._branch(inputs)

    def _fits(self, tensor: Tensor) -> bool:
        """Whether a tensor has the places and features of the stream; some blocks flatten it."""
        return tensor.shape[-1:] == self.shape[-1:] and tensor.numel() == self.shape.numel()

    def _branch(self, inputs: Any) -> _Branch:
        owners = {self.owner} if self.owner is not None else set()
        for tensor in inputs:
            node = self.nodes.get(tensor)
            if isinstance(node, _Branch):
                owners |= node.owners
        return _Branch(frozenset(owners)) if owners else _NOTHING

    def _follow_matrix(
        self, name: str, args: tuple, options: dict[str, Any], inputs: list[Tensor]
    ) -> _Branch | None:
        """A matrix whose result has the features of the stream may be what writes to it."""
        if name == "addmm":  # bias + x @ weight
            if len(args) != 3:
                return None
            bias, weight = args[0].detach(), args[2].detach().mT
        elif name != "linear":
            if len(args) != 2 or args[1].ndim != 2:
                return None
            bias, weight = None, args[1].detach().mT
        else:
            given = dict(zip(("input", "weight", "bias"), args, strict=False)) | options
            weight, bias = given["weight"].detach(), given.get("bias")
            bias = bias if bias is None else bias.detach()
        return replace(self._branch(inputs), matrix=WritingMatrix(weight, bias))

    def _follow_sum(self, a: Any, b: Any) -> _Stream | _Branch | None:
        if not isinstance(a, Tensor) or not isinstance(b, Tensor):
            return None
        if a.shape != b.shape or not self._fits(a):
            return None
        first, second = self.nodes.get(a), self.nodes.get(b)
        if isinstance(second, _Stream):
            a, b, first, second = b, a, second, first
        if isinstance(second, _Stream):  # the stream twice: not a step that is known
            return None
        if isinstance(first, _Stream):
            head, *rest = self._terms(b, second)
            return _Stream(first, (head, *(replace(term, is_joined=True) for term in rest)))
        terms = (*self._terms(a, first), *self._terms(b, second))
        owners = frozenset().union(*(term.owners for term in terms))
        is_one = all(term.owners == owners for term in terms)  # of one part: a sum inside of it
        return _Branch(owners) if is_one else _Branch(owners, terms)

    def _terms(self, tensor: Tensor, node: _Branch | None) -> tuple[Added, ...]:
        node = node or _NOTHING
        self.used[tensor] = True
        value = tensor.detach().view(self.shape)
        return node.terms or (Added(value, node.owners, matrix=node.matrix),)

    def _follow_product(self, a: Any, b: Any, *, is_divided: bool) -> _Stream | _Branch | None:
        if _is_factor(a, self.shape) and not is_divided:
            a, b = b, a
        if not isinstance(a, Tensor) or not _is_factor(b, self.shape) or not self._fits(a):
            return None
        factor = 1 / b if is_divided else b
        factor = factor.detach() if isinstance(factor, Tensor) else float(factor)
        node = self.nodes.get(a)
        if isinstance(node, _Stream):
            return _Stream(node, (Scaled(factor),))
        if isinstance(node, _Branch) and node.terms:
            terms = tuple(Added(term.value * factor, term.owners) for term in node.terms)
            return _Branch(node.owners, terms)
        return self._continue(node, Scaled(factor))

    def _continue(self, node: Any, step: Normed | Scaled) -> _Branch | None:
        """What a matrix has written goes through one more step."""
        if not isinstance(node, _Branch) or node.matrix is None:
            return None
        return replace(node, matrix=replace(node.matrix, then=(*node.matrix.then, step)))

    def pass_norm(self, module: nn.Module, before: Tensor, after: Tensor) -> None:
        """A norm was called: what it is given may be the stream, which then passes through it."""
        node = self.nodes.get(before)
        if not self._fits(after):
            return
        step = Normed(module, before.detach(), after.detach())
        if isinstance(node, _Stream):
            self.nodes[after] = _Stream(node, (step,))
        elif (continued := self._continue(node, step)) is not None:
            self.nodes[after] = continued

    def steps_to(self, end: Tensor) -> list[StreamStep]:
        """The steps from the block's input to its output, in order."""
        if self.fault is not None:
            raise NotFollowed(self.fault)
        node = self.nodes.get(end)
        if not isinstance(node, _Stream):
            raise NotFollowed("its output is not its input plus what its parts add")
        steps: list[StreamStep] = []
        while node is not None:
            steps[:0] = node.steps
            node = node.parent
        return steps


def _is_in_place(name: str) -> bool:
    if name.startswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name != "__invert__")
    return name.endswith("_") and not name.endswith("__")


def _is_factor(value: Any, shape: torch.Size) -> bool:
    """Whether this multiplies every place of a stream alike: a number, or one for each feature."""
    if isinstance(value, Tensor):
        return value.numel() == 1 or value.shape == shape[-1:]
    return isinstance(value, int | float) and not isinstance(value, bool)
