"""A matrix of int8 numbers that takes the place of a float matrix in any module.

`F.linear` and `F.embedding` read the integers, and matrices that are stacked come apart as int8;
every other operation gets the floats that they stand for. So a model keeps its modules, and whoever
reads a weight reads a number.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_map_only

from glassformer.errors import ConfigError
from glassformer.functional.int8.linear import dequantize_rows, int8_linear, quantize_rows

_aten: Any = torch.ops.aten
# They read the dtype and the device of their first argument, and none of its numbers.
_MAKERS = (_aten.new_empty.default, _aten.new_zeros.default, _aten.new_ones.default)


class Int8Weight(Tensor):
    """`integers` (int8) times `scale` (float32, one for each row); its dtype is that of its model.

    >>> weight = Int8Weight.of(torch.tensor([[1.0, -0.5]]))
    >>> weight.dtype, weight.integers.dtype
    (torch.float32, torch.int8)
    >>> weight + 0
    tensor([[ 1.0000, -0.5039]])
    """

    integers: Tensor
    scale: Tensor

    @staticmethod
    def __new__(cls, integers: Tensor, scale: Tensor, dtype: torch.dtype) -> "Int8Weight":
        weight = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, integers.shape, dtype=dtype, device=integers.device
        )
        weight.integers, weight.scale = integers, scale
        return weight

    def __init__(self, integers: Tensor, scale: Tensor, dtype: torch.dtype) -> None:
        pass  # all is done in __new__

    @classmethod
    def of(cls, weight: Tensor) -> "Int8Weight":
        """The nearest int8 matrix, of the same dtype and device."""
        return cls(*quantize_rows(weight), weight.dtype)

    def float_values(self) -> Tensor:
        """What it stands for."""
        return dequantize_rows(self.integers, self.scale, self.dtype)

    def __tensor_flatten__(self) -> tuple[list[str], torch.dtype]:
        return ["integers", "scale"], self.dtype

    @classmethod
    def __tensor_unflatten__(
        cls, inner: dict[str, Tensor], dtype: torch.dtype, *_: Any
    ) -> "Int8Weight":
        return cls(inner["integers"], inner["scale"], dtype)

    def _stable_hash_for_caching(self) -> str:
        return f"Int8Weight {self.dtype}"  # what compiled code depends on beside shapes

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copy = Int8Weight(self.integers.clone(), self.scale.clone(), self.dtype)
            is_parameter = isinstance(self, torch.nn.Parameter)
            memo[id(self)] = as_parameter(copy) if is_parameter else copy
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"Int8Weight({tuple(self.shape)}, {self.dtype}, {self.device})"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.linear and len(args) >= 2 and isinstance(args[1], cls):
            bias = args[2] if len(args) > 2 else kwargs.get("bias")
            return int8_linear(args[0], args[1].integers, args[1].scale, bias)
        if func is F.embedding and len(args) >= 2 and isinstance(args[1], cls):
            rows, weight = args[0], args[1]
            return (weight.integers[rows].float() * weight.scale[rows][..., None]).to(weight.dtype)
        if func is Tensor.unbind and len(args) == 1 and not kwargs:  # matrices that were stacked
            pairs = zip(args[0].integers.unbind(), args[0].scale.unbind(), strict=True)
            return tuple(cls(integers, scale, args[0].dtype) for integers, scale in pairs)
        with torch._C.DisableTorchFunctionSubclass():  # results are plain tensors
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, first = kwargs or {}, args[0] if args else None
        if isinstance(first, cls):
            if func in (_aten.detach.default, _aten.alias.default):
                return cls(first.integers, first.scale, first.dtype)
            if func is _aten.clone.default:
                return cls(first.integers.clone(), first.scale.clone(), first.dtype)
            if func is _aten._to_copy.default:
                dtype, device = kwargs.get("dtype") or first.dtype, kwargs.get("device")
                return cls(first.integers.to(device), first.scale.to(device), dtype)
            if func in _MAKERS:
                like = torch.empty(0, dtype=first.dtype, device=first.device)
                return func(like, *args[1:], **kwargs)
            if func._schema.is_mutable:
                raise ConfigError(
                    "int8 weights cannot be changed in place; got "
                    f"{func.__name__.split('.')[0]} on {tuple(first.shape)}. "
                    "Change the float model, then quantize it."
                )
        args, kwargs = tree_map_only(cls, cls.float_values, (args, kwargs))
        return func(*args, **kwargs)


def as_parameter(weight: Tensor) -> torch.nn.Parameter:
    """A parameter without gradient, which is what modules hold."""
    return torch.nn.Parameter(weight, requires_grad=False)


def find_numbers(weight: Tensor) -> tuple[Tensor, Tensor | None]:
    """The numbers that a matrix stores, and the scale of each row where these are int8."""
    return (weight.integers, weight.scale) if isinstance(weight, Int8Weight) else (weight, None)
