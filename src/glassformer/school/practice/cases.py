"""What an author of checks writes with: cases, and the usual battery of them.

A case calls the learner's code with inputs and returns what is compared with what the solution
returns. It runs in two processes, one with the solution and one with the learner's code.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.school.practice.drawing import read_drawing
from glassformer.school.practice.random_inputs import Draw, fill

__all__ = ["Case", "Draw", "battery", "blanks", "drawing", "name_error", "prediction"]

_TIMES = 3  # that values are drawn: one draw may hide a mistake, three rarely do
_TORCH = ("parameters", "values", "strided", "gradient", "float32", "bfloat16", "batch")
_NUMPY = ("values", "strided")
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_TOLERANCE = {"float32": 1e-3, "bfloat16": 6e-2}


@dataclass(frozen=True, slots=True)
class Case:
    """One property: a name, a call, what goes in, and what the results are called.

    A number may be off by tolerance × (1 + its size). `loose` is for what is filled in by hand:
    lists and tuples are alike, and the tolerance is the same for every number. `expected` is given
    where something other than the solution says what is right.
    """

    name: str
    call: Callable[..., Any]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    tolerance: float = 1e-5
    loose: bool = False
    choices: tuple[Any, ...] = ()
    expected: Any = None


def battery(
    draw: Draw,
    inputs: Callable[[Draw], dict[str, Any]],
    call: Callable[..., Any],
    *,
    names: tuple[str, ...] = ("out",),
    build: Callable[..., nn.Module] | None = None,
    variants: Sequence[str] | None = None,
    skip: Sequence[str] = (),
) -> Iterator[Case]:
    """The usual cases for a function of tensors or arrays, or for a model made by `build`."""
    is_numpy = any(isinstance(value, np.ndarray) for value in inputs(Draw(0)).values())
    chosen = variants or (_NUMPY if is_numpy else _TORCH)
    for variant in chosen:
        if variant in skip or (variant == "parameters" and build is None):
            continue
        for _ in range(_TIMES if variant == "values" else 1):
            given, key = inputs(draw), draw.key()
            given = {name: _vary(value, variant) for name, value in given.items()}
            result = ("gradient",) if variant == "gradient" else names
            yield Case(
                variant,
                _Battery(variant, call, build, key, tuple(given)),
                given,
                ("parameters",) if variant == "parameters" else result,
                _TOLERANCE.get(variant, 1e-5),
            )


@dataclass(frozen=True, slots=True)
class _Battery:
    """A call of the battery: build if there is something to build, then vary what is returned."""

    variant: str
    call: Callable[..., Any]
    build: Callable[..., nn.Module] | None
    key: int
    order: tuple[str, ...]

    def __call__(self, module: Any, **inputs: Any) -> Any:
        tensors = {k: v for k, v in inputs.items() if isinstance(v, Tensor | np.ndarray)}
        others = {k: v for k, v in inputs.items() if k not in tensors}
        subject, model = module, None
        if self.build is not None:
            subject = model = self.build(module, **others)
            if self.variant == "parameters":
                return {name: list(p.shape) for name, p in model.named_parameters()}
            fill(model.to(torch.float64), self.key).eval()
            model.to(_DTYPES.get(self.variant, torch.float64))
        else:
            tensors = inputs
        if self.variant == "gradient":
            return self._gradients(subject, model, tensors)
        if self.variant == "batch":
            return self._run_last_sequence(subject, tensors)
        return self.call(subject, **tensors)

    def _gradients(self, subject: Any, model: nn.Module | None, tensors: dict[str, Any]) -> Any:
        leaves = {
            name: value.detach().requires_grad_()
            for name, value in tensors.items()
            if isinstance(value, Tensor) and value.is_floating_point()
        }
        results = self.call(subject, **{**tensors, **leaves})
        outs = [out for out in _flatten(results) if isinstance(out, Tensor) and out.requires_grad]
        # Each place of the result counts differently, so that errors cannot cancel.
        total = sum(
            (out * torch.arange(1.0, out.numel() + 1).reshape(out.shape).cos().to(out)).sum()
            for out in outs
        )
        if model is not None:
            leaves |= {name: p for name, p in model.named_parameters() if p.requires_grad}
        grads: Sequence[Tensor | None] = [None] * len(leaves)
        if isinstance(total, Tensor):  # else nothing leads back to the inputs
            grads = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
        return {
            name: torch.zeros_like(leaf) if grad is None else grad
            for (name, leaf), grad in zip(leaves.items(), grads, strict=True)
        }

    def _run_last_sequence(self, subject: Any, tensors: dict[str, Any]) -> Any:
        last = {
            name: value[-1:] if isinstance(value, Tensor | np.ndarray) else value
            for name, value in tensors.items()
        }
        return self.call(subject, **last)


def are_same_result(one: Case, other: Case) -> bool:
    """Whether two cases ask the same function for the same result, with whatever inputs."""
    ones, others = (
        each.call.call if isinstance(each.call, _Battery) else each.call for each in (one, other)
    )
    return one.names == other.names and ones == others


def blanks(*names: str, digits: int = 2) -> Iterator[Case]:
    """One case for each variable that a learner fills in, rounded to so many decimals.

    Whole numbers (`digits=0`) must be the very ones.
    """
    for name in names:
        yield Case(
            "shapes" if digits == 0 else "numbers",
            _Variable(name),
            names=(name,),
            # Half a unit of the last decimal, and a trifle: 0.125 may become 0.12 or 0.13.
            tolerance=0.5 * 10.0**-digits + 1e-9 if digits else 0.0,
            loose=True,
        )


def prediction(name: str, *, choices: Sequence[Any]) -> Iterator[Case]:
    """One case: an answer out of several."""
    yield Case("predict", _Variable(name), names=(name,), loose=True, choices=tuple(choices))


def drawing(name: str, function: str) -> Iterator[Case]:
    """One case: the arrows of the text that a function returns."""
    yield Case(name, _Drawing(function), names=(function,), loose=True)


def name_error(call: Callable[[], Any]) -> str:
    """The kind of error by which a call refuses what it is given; a dash if it raises none.

    >>> name_error(lambda: int("one")), name_error(lambda: int("1"))
    ('ValueError', '–')
    """
    try:
        call()
    except ValueError:
        return "ValueError"  # or a kind of its own below it
    except Exception as error:
        return type(error).__name__
    return "–"


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str

    def __call__(self, module: Any) -> Any:
        return getattr(module, self.name)


@dataclass(frozen=True, slots=True)
class _Drawing:
    name: str

    def __call__(self, module: Any) -> Any:
        text = getattr(module, self.name)()
        # An empty dict would be taken for an empty list of numbers.
        return read_drawing(text) or "" if isinstance(text, str) else text


def _flatten(results: Any) -> list[Any]:
    if isinstance(results, dict):
        return [leaf for value in results.values() for leaf in _flatten(value)]
    if isinstance(results, tuple | list):
        return [leaf for value in results for leaf in _flatten(value)]
    return [results]


def _vary(value: Any, variant: str) -> Any:
    if variant == "strided":
        return _make_strided(value)
    if variant in _DTYPES and isinstance(value, Tensor) and value.is_floating_point():
        return value.to(_DTYPES[variant])
    return value


def _make_strided(value: Any) -> Any:
    """The same numbers, lying apart in memory and in another order."""
    if isinstance(value, Tensor) and value.dim():
        spread = value.repeat_interleave(2, dim=-1)[..., ::2]
        if value.dim() > 1:
            spread = spread.transpose(-2, -1).contiguous().transpose(-2, -1)
        return spread
    if isinstance(value, np.ndarray) and value.ndim:
        return np.asfortranarray(np.repeat(value, 2, axis=-1))[..., ::2]
    return value
