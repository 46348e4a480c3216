"""What each step of a shape trace costs: parameters, multiplications, bytes of its result."""

import math
from dataclasses import dataclass

from glassformer.models.shapes import ShapeStep, ShapeTrace

BYTES = 2  # of a number: bfloat16


@dataclass(frozen=True, slots=True)
class Cost:
    """Parameters that a step is the first to use, FLOPs of its matrix product, result bytes.

    FLOPs count a multiplication and an addition as two; what is done to each number by itself
    (norms, activations, softmax) counts as none. Bytes are those of bfloat16; 0 for what a fused
    kernel never holds, and for views of what another step made.
    """

    parameters: int = 0
    flops: int = 0
    bytes: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.parameters + other.parameters,
            self.flops + other.flops,
            self.bytes + other.bytes,
        )


_VIEWS = ("split", "divide", "halve", "pick")


def measure_costs(trace: ShapeTrace) -> list[Cost]:
    """The cost of each step; a parameter that several steps share counts where it is first used.

    >>> from glassformer.models.shapes import shapes
    >>> f"{sum(cost.parameters for cost in measure_costs(shapes('gpt-2'))):,}"
    '124,439,808'
    """
    counted: set[str] = set()
    costs = []
    for step in trace.steps:
        new = [shape for shape in step.parameters if shape.name not in counted]
        counted |= {shape.name for shape in new}
        is_held = step.held and step.operation not in _VIEWS
        costs.append(
            Cost(
                sum(math.prod(shape.numbers) for shape in new),
                count_flops(step),
                BYTES * sum(math.prod(s.numbers) for s in step.outputs) if is_held else 0,
            )
        )
    return costs


def count_flops(step: ShapeStep) -> int:
    """Two for each number of the result and each term of its sum."""
    if not step.outputs:
        return 0
    size = math.prod(step.outputs[0].numbers)
    if step.operation in ("linear", "route"):
        return 2 * size * step.inputs[0].numbers[-1]
    if step.operation in ("scores", "attend"):
        return 2 * size * step.inputs[0].numbers[-1]
    return 0
