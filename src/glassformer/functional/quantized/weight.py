"""A matrix of one byte a number that takes the place of a float matrix in any module.

`F.linear` and `F.embedding` read the bytes, and matrices that are stacked come apart as they are;
every other operation gets the floats that they stand for. So a model keeps its modules, and whoever
reads a weight reads a number.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_map_only

from glassformer.errors import ConfigError
from glassformer.functional.quantized.linear import (
    KINDS,
    dequantize_rows,
    quantize_rows,
    quantized_linear,
)

_aten: Any = torch.ops.aten
# They read the dtype and the device of their first argument, and none of its numbers.
_MAKERS = (_aten.new_empty.default, _aten.new_zeros.default, _aten.new_ones.default)


class QuantizedWeight(Tensor):
    """`numbers` (int8 or fp8) times `scale` (float32, one for each row), with its model's dtype.

    >>> weight = QuantizedWeight.of(torch.tensor([[1.0, -0.5]]))
    >>> weight.kind, weight.dtype, weight.numbers.dtype
    ('int8', torch.float32, torch.int8)
    >>> weight + 0
    tensor([[ 1.0000, -0.5039]])
    """

    numbers: Tensor
    scale: Tensor

    @staticmethod
    def __new__(cls, numbers: Tensor, scale: Tensor, dtype: torch.dtype) -> "QuantizedWeight":
        weight = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, numbers.shape, dtype=dtype, device=numbers.device
        )
        weight.numbers, weight.scale = numbers, scale
        return weight

    def __init__(self, numbers: Tensor, scale: Tensor, dtype: torch.dtype) -> None:
        pass  # all is done in __new__

    @classmethod
    def of(cls, weight: Tensor, kind: str = "int8") -> "QuantizedWeight":
        """The nearest matrix of this kind, of the same dtype and device."""
        return cls(*quantize_rows(weight, kind), weight.dtype)

    @property
    def kind(self) -> str:
        """What its numbers are: "int8" or "fp8"."""
        return next(kind for kind, dtype in KINDS.items() if dtype == self.numbers.dtype)

    def float_values(self) -> Tensor:
        """What it stands for."""
        return dequantize_rows(self.numbers, self.scale, self.dtype)

    def __tensor_flatten__(self) -> tuple[list[str], torch.dtype]:
        return ["numbers", "scale"], self.dtype

    @classmethod
    def __tensor_unflatten__(
        cls, inner: dict[str, Tensor], dtype: torch.dtype, *_: Any
    ) -> "QuantizedWeight":
        return cls(inner["numbers"], inner["scale"], dtype)

    def _stable_hash_for_caching(self) -> str:
        # What compiled code depends on beside shapes.
        return f"QuantizedWeight {self.kind} {self.dtype}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copy = QuantizedWeight(self.numbers.clone(), self.scale.clone(), self.dtype)
            is_parameter = isinstance(self, torch.nn.Parameter)
            memo[id(self)] = as_parameter(copy) if is_parameter else copy
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        described = f"{tuple(self.shape)}, {self.kind}, {self.dtype}, {self.device}"
        return f"QuantizedWeight({described})"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.linear and len(args) >= 2 and isinstance(args[1], cls):
            bias = args[2] if len(args) > 2 else kwargs.get("bias")
            return quantized_linear(args[0], args[1].numbers, args[1].scale, bias)
        if func is F.embedding and len(args) >= 2 and isinstance(args[1], cls):
            rows, weight = args[0], args[1]
            return (weight.numbers[rows].float() * weight.scale[rows][..., None]).to(weight.dtype)
        if func is Tensor.unbind and len(args) == 1 and not kwargs:  # matrices that were stacked
            pairs = zip(args[0].numbers.unbind(), args[0].scale.unbind(), strict=True)
            return tuple(cls(numbers, scale, args[0].dtype) for numbers, scale in pairs)
        with torch._C.DisableTorchFunctionSubclass():  # results are plain tensors
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, first = kwargs or {}, args[0] if args else None
        if isinstance(first, cls):
            if func in (_aten.detach.default, _aten.alias.default):
                return cls(first.numbers, first.scale, first.dtype)
            if func is _aten.clone.default:
                return cls(first.numbers.clone(), first.scale.clone(), first.dtype)
            if func is _aten._to_copy.default:
                dtype, device = kwargs.get("dtype") or first.dtype, kwargs.get("device")
                return cls(first.numbers.to(device), first.scale.to(device), dtype)
            if func in _MAKERS:
                like = torch.empty(0, dtype=first.dtype, device=first.device)
                return func(like, *args[1:], **kwargs)
            if func._schema.is_mutable:
                raise ConfigError(
                    f"{first.kind} weights cannot be changed in place; got "
                    f"{func.__name__.split('.')[0]} on {tuple(first.shape)}. "
                    "Change the float model, then quantize it."
                )
        args, kwargs = tree_map_only(cls, cls.float_values, (args, kwargs))
        return func(*args, **kwargs)


def as_parameter(weight: Tensor) -> torch.nn.Parameter:
    """A parameter without gradient, which is what modules hold."""
    return torch.nn.Parameter(weight, requires_grad=False)


def find_numbers(weight: Tensor) -> tuple[Tensor, Tensor | None]:
    """The numbers that a matrix stores, and the scale of each row where these have one byte."""
    return (weight.numbers, weight.scale) if isinstance(weight, QuantizedWeight) else (weight, None)
