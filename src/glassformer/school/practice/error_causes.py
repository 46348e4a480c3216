"""What an error of Python or torch means in the code of an exercise."""

import re
from collections.abc import Mapping
from typing import Any

from glassformer.school.practice.report import Finding
from glassformer.school.practice.result_relations import name_sizes

# The message, by a pattern with named parts, and the sentence that is filled with them.
_CAUSES: tuple[tuple[str, str], ...] = (
    (r"view size is not compatible", "practice.cause.view"),
    (
        r"mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<one>\d+) and (?P<other>\d+)x\d+\)",
        "practice.cause.product",
    ),
    (
        r"Expected size for first two dimensions of batch2 tensor to be: \[\d+, (?P<one>\d+)\] "
        r"but got: \[\d+, (?P<other>\d+)\]",
        "practice.cause.product",
    ),
    (
        r"matmul: Input operand 1 has a mismatch.*size (?P<other>\d+) is different from "
        r"(?P<one>\d+)",
        "practice.cause.product",
    ),
    (r"size mismatch, got .*?x(?P<one>\d+),(?P<other>\d+)", "practice.cause.product"),
    (
        r"shapes \(.*?(?P<one>\d+)\) and \((?P<other>\d+),.*\) not aligned",
        "practice.cause.product",
    ),
    (
        r"The size of tensor a \((?P<one>\d+)\) must match the size of tensor b "
        r"\((?P<other>\d+)\) at non-singleton dimension (?P<axis>\d+)",
        "practice.cause.broadcast",
    ),
    (
        r"The expanded size of the tensor \((?P<one>\d+)\) must match the existing size "
        r"\((?P<other>\d+)\) at non-singleton dimension (?P<axis>\d+)",
        "practice.cause.broadcast",
    ),
    (
        r"Index tensor must have the same number of dimensions as (input|self) tensor",
        "practice.cause.gather",
    ),
    (
        r"operands could not be broadcast together with shapes (?P<one>\(.*?\)) (?P<other>\(.*?\))",
        "practice.cause.shapes",
    ),
    (
        r"shape '\[(?P<one>[-\d, ]+)\]' is invalid for input of size (?P<other>\d+)",
        "practice.cause.reshape",
    ),
    (
        r"cannot reshape array of size (?P<other>\d+) into shape \((?P<one>[\d, ]+)\)",
        "practice.cause.reshape",
    ),
    (
        r"Sizes of tensors must match except in dimension (?P<axis>-?\d+)",
        "practice.cause.concatenate",
    ),
    (
        r"Tensors must have same number of dimensions: got (?P<one>\d+) and (?P<other>\d+)",
        "practice.cause.ranks",
    ),
    (r"name '(?P<name>\w+)' is not defined", "practice.cause.name"),
    (
        r"cannot access local variable '(?P<name>\w+)'",
        "practice.cause.local",
    ),
    (
        r"(?P<name>\w+)\(\): argument '\w+' \(position \d+\) must be Tensor, not (?P<type>\w+)",
        "practice.cause.tensor",
    ),
    (r"Dimension out of range .*but got (?P<axis>-?\d+)", "practice.cause.dimension"),
    (r"axis (?P<axis>-?\d+) is out of bounds", "practice.cause.dimension"),
    (
        r"cannot assign .* before Module.__init__\(\) call",
        "practice.cause.super",
    ),
    (
        r"'(?P<type>\w+)' object has no attribute '(?P<name>\w+)'",
        "practice.cause.attribute",
    ),
    (
        r"module '(?P<type>[\w.]+)' has no attribute '(?P<name>\w+)'",
        "practice.cause.attribute",
    ),
    (
        r"(must have the same dtype|expected scalar type|expected m1 and m2 to have the same dtype"
        r"|expected .* to have (the )?same dtype)",
        "practice.cause.dtype",
    ),
    (
        r"(only supports boolean masks|expected self and mask to have|mask dtype|"
        r"masked_fill_ only supports)",
        "practice.cause.mask",
    ),
    (
        r"(?P<name>[\w.]+)\(\) missing \d+ required (positional|keyword-only) arguments?: "
        r"(?P<part>.+)",
        "practice.cause.missing",
    ),
    (
        r"(?P<name>[\w.]+)\(\) takes .*positional arguments? but (?P<part>\d+) (was|were) given",
        "practice.cause.toomany",
    ),
    (
        r"(?P<name>[\w.]+)\(\) got an unexpected keyword argument '(?P<part>\w+)'",
        "practice.cause.keyword",
    ),
    (r"'(?P<type>[\w.]+)' object is not callable", "practice.cause.callable"),
    (r"'(?P<type>[\w.]+)' object is not subscriptable", "practice.cause.subscript"),
    (r"'(?P<type>[\w.]+)' object is not iterable", "practice.cause.iterate"),
    (r"cannot unpack non-iterable (?P<type>\w+) object", "practice.cause.iterate"),
    (
        r"(not enough|too many) values to unpack \(expected (?P<one>\d+)",
        "practice.cause.unpack",
    ),
    (
        r"Boolean value of Tensor with more than one value is ambiguous",
        "practice.cause.truth",
    ),
    (r"truth value of an array with more than one element", "practice.cause.truth"),
    (r"too many indices for (tensor|array)", "practice.cause.indices"),
    (
        r"unsupported operand type\(s\) for (?P<part>.+?): '(?P<one>[\w.]+)' and "
        r"'(?P<other>[\w.]+)'",
        "practice.cause.operands",
    ),
    (
        r"bitwise_not|~ \(operator.invert\) is only implemented|ufunc 'invert' not supported",
        "practice.cause.invert",
    ),
    (
        r"one of the variables needed for gradient computation has been modified by an inplace",
        "practice.cause.inplace",
    ),
    (
        r"a (view of a )?leaf Variable that requires grad is being used in an in-?place",
        "practice.cause.inplace",
    ),
    (r"Can't call numpy\(\) on Tensor that requires grad", "practice.cause.numpy"),
    (
        r"(does not require grad and does not have a grad_fn)",
        "practice.cause.gradient",
    ),
    (
        r"index (?P<one>-?\d+) is out of bounds for dimension (?P<axis>\d+) with size "
        r"(?P<other>\d+)",
        "practice.cause.index",
    ),
    (r"maximum recursion depth exceeded", "practice.cause.recursion"),
    (r"division by zero", "practice.cause.zero"),
    (r"string index out of range|list index out of range", "practice.cause.list"),
)


def explain_error(error: str, message: str, inputs: Mapping[str, Any]) -> Finding | None:
    """What to do about an error, with the sizes called by their names where only one has them."""
    if error == "RecursionError":
        return Finding("practice.cause.recursion")
    for pattern, key in _CAUSES:
        if found := re.search(pattern, message):
            values = {name: part for name, part in found.groupdict().items() if part is not None}
            for name in ("one", "other"):
                if values.get(name, "").isdigit():
                    values[name] = _name_size(int(values[name]), inputs)
            return Finding(key, values)
    return None


def _name_size(number: int, inputs: Mapping[str, Any]) -> str:
    """A size and which it is, if a single dimension of the inputs has it.

    >>> import torch
    >>> _name_size(3, {"q": torch.zeros(2, 3)})
    '3 (q.shape[-1])'
    """
    names = [name for name, size in name_sizes(inputs) if size == number and "shape" in name]
    endings = {name.rsplit(".", 1)[1] for name in names}
    return f"{number} ({names[0]})" if names and len(endings) == 1 else str(number)
