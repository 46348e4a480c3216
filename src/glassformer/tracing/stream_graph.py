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
from typing import Any, Protocol

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
    name: str | None = None  # of an intervention that added it; None: a part of the model
    state: Tensor | None = None  # that the intervention leaves: a sum would round it

    @classmethod
    def between(cls, before: Tensor, after: Tensor, name: str) -> "Added":
        """What an intervention adds, that makes one state of another."""
        value = (after - before).detach()
        return cls(value, frozenset(), name=name, state=after.detach())


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
    number: int = 0  # in the order in which they were made


@dataclass(eq=False, frozen=True, slots=True)
class _Branch:
    """A tensor that does not: the sites that it depends on, and the terms that it is a sum of."""

    owners: frozenset[str] = frozenset()
    terms: tuple[Added, ...] = ()  # empty: it is one term
    matrix: WritingMatrix | None = None


_NOTHING = _Branch()


class StreamEdits(Protocol):
    """What is changed in the stream while a block runs; streams are numbered as they are made."""

    def edit_parts(
        self, number: int, steps: tuple[StreamStep, ...]
    ) -> tuple[StreamStep, ...] | None:
        """Other terms in place of those that were added; None for the same."""
        ...

    def edit_state(self, number: int, state: Tensor) -> Tensor | None:
        """Another state in place of this one; None for the same."""
        ...


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
        self.n_streams = 0
        self.edits: StreamEdits | None = None  # what is changed on the way
        self.n_edited = 0  # the last stream that was offered to them
        self.is_paused = False  # while edits compute

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        options = kwargs or {}
        if self.is_paused:
            return func(*args, **options)
        name = getattr(func, "__name__", "")
        before = None
        with self.guarded():
            before = self._prepare(name, args)
        out = func(*args, **options)
        if isinstance(out, Tensor | tuple | list):
            with self.guarded():
                self._note(name, before or args, options, out)
            if self.edits is not None and isinstance(out, Tensor):
                return self.edit(out, before or args, is_in_place=before is not None)
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
            steps = (head, *(replace(term, is_joined=True) for term in rest))
            return self._make_stream(first, steps)
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
            return self._make_stream(node, (Scaled(factor),))
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
            self.nodes[after] = self._make_stream(node, (step,))
        elif (continued := self._continue(node, step)) is not None:
            self.nodes[after] = continued

    def _make_stream(self, parent: _Stream, steps: tuple[StreamStep, ...]) -> _Stream:
        self.n_streams += 1
        return _Stream(parent, steps, self.n_streams)

    def edit(self, out: Tensor, args: tuple, *, is_in_place: bool = False) -> Tensor:
        """The stream with what is changed here, where `out` has just become the stream."""
        node = self.nodes.get(out)
        if self.edits is None or not isinstance(node, _Stream) or node.number <= self.n_edited:
            return out
        self.n_edited = node.number
        parent, changed = node.parent, out
        if any(isinstance(step, Added) for step in node.steps):
            steps = self.edits.edit_parts(node.number, node.steps)
            if steps is not None:
                x = next(t for t in iterate_tensors(args) if self.nodes.get(t) is parent)
                changed, node = x + _sum_terms(steps).view_as(x), replace(node, steps=steps)
        before = changed.view(self.shape)  # some blocks flatten it
        state = self.edits.edit_state(node.number, before)
        if state is not None:
            self.nodes[changed] = node
            node = _Stream(node, (Added.between(before, state, "change"),), node.number)
            changed = state.view_as(changed)
        if changed is out:
            return out
        if is_in_place:
            changed = out.copy_(changed)
        self.nodes[changed] = node
        return changed

    def way_to(self, end: Tensor) -> list[tuple[int, tuple[StreamStep, ...]]]:
        """The numbered steps from the block's input to its output, in order."""
        if self.fault is not None:
            raise NotFollowed(self.fault)
        node = self.nodes.get(end)
        if not isinstance(node, _Stream):
            raise NotFollowed("its output is not its input plus what its parts add")
        way: list[tuple[int, tuple[StreamStep, ...]]] = []
        while node is not None:
            if node.steps:
                way.insert(0, (node.number, node.steps))
            node = node.parent
        return way

    def steps_to(self, end: Tensor) -> list[StreamStep]:
        """The steps from the block's input to its output, in order."""
        return [step for _, steps in self.way_to(end) for step in steps]


def _sum_terms(steps: tuple[StreamStep, ...]) -> Tensor:
    """The terms in the order in which the block added them."""
    values = [step.value for step in steps if isinstance(step, Added)]
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _is_in_place(name: str) -> bool:
    if name.startswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name != "__invert__")
    return name.endswith("_") and not name.endswith("__")


def _is_factor(value: Any, shape: torch.Size) -> bool:
    """Whether this multiplies every place of a stream alike: a number, or one for each feature.

    A number with the dimensions of the stream is one for each place, of which there is only one.
    """
    if isinstance(value, Tensor):
        return (value.numel() == 1 and value.ndim <= 1) or value.shape == shape[-1:]
    return isinstance(value, int | float) and not isinstance(value, bool)
