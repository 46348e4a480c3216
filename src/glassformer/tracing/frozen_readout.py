"""A readout with a dense layer before the unembedding, frozen so that scores add up.

Masked language models compute unembedding(norm(f(dense(x)))). For one x, the norm divides by a
number and f(y) = y · (f(y) / y) multiplies each feature by one; with these held fixed, scores are
affine in x. That they are is proved by computing them for other vectors.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.norm_form import NormForm
from glassformer.tracing.readout import Operation, Readout, ReadoutGraph, Slot

_NONLINEARITIES = {"gelu", "relu", "silu", "tanh", "sigmoid", "leaky_relu", "elu", "mish"}
_NORMS = {"layer_norm", "rms_norm"}
_TOLERANCE = 1e-5  # models cast to float32 on their way


class FrozenReadout:
    """The scores of tokens as an affine function, exact at the state for which it was frozen."""

    def __init__(self, readout: Readout, end: Float[Tensor, " C"]) -> None:
        self.operations = _list_operations(readout, end[None, None])
        self.frozen: dict[int, Tensor] = {}  # what each operation multiplies by, by slot
        self.sizes: dict[int, Tensor] = {}
        self.names: list[str] = []
        self.last = "unembedding" if readout.classes is None else "classes"
        self.doubles: dict[int, tuple[Tensor, Tensor]] = {}  # by id, with the tensor itself
        self.end = end.detach().double().cpu()
        with torch.no_grad():
            self.scores = self._run(self.end)
            self.constants = self._run(torch.zeros_like(self.end))
            self._prove()

    @property
    def n_tokens(self) -> int:
        return len(self.scores)

    def measure(
        self, tokens: list[int], signs: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, " C"], float]:
        """The direction in which the stream is seen by tokens, and what is there without it."""
        x = self.end.clone().requires_grad_()
        with torch.enable_grad():
            score = signs @ self._run(x)[tokens]
        (direction,) = torch.autograd.grad(score, x)
        return direction, float(signs @ self.constants[tokens])

    def _prove(self) -> None:
        """An affine function of a sum is known from its parts."""
        part = self.end * torch.linspace(-1, 2, len(self.end), dtype=torch.float64)
        sum_of_parts = self._run(part) + self._run(self.end - part) - self.constants
        apart = (sum_of_parts - self.scores).abs().amax()
        if not apart <= _TOLERANCE * max(float(self.scores.abs().amax()), 1e-30):
            raise TraceError(
                "Scores must be linear in the stream once norms and nonlinearities are frozen; "
                f"those of this model differ by {float(apart):.2g}."
            )

    def _run(self, x: Float[Tensor, " C"]) -> Float[Tensor, " V"]:
        values: dict[int, Tensor] = {0: x[None, None]}
        for each in self.operations:
            args = self._fill(each.args, values)
            options = {name: self._fill(value, values) for name, value in each.options.items()}
            name = getattr(each.function, "__name__", "")
            if name in _NONLINEARITIES:
                values[each.slot] = self._scale(each, args, options)
            elif name in _NORMS:
                values[each.slot] = self._norm(each, name, args, options)
            else:
                values[each.slot] = each.function(*args, **options)
                if name == "rsqrt":  # an RMSNorm that is written out
                    values[each.slot] = self._freeze_size(each, values[each.slot])
        return values[self.operations[-1].slot].reshape(-1).double()

    def _scale(self, operation: Operation, args: tuple, options: dict[str, Any]) -> Tensor:
        given = args[0] if args else next(iter(options.values()))
        if operation.slot not in self.frozen:
            ratio = operation.function(*args, **options) / given
            self.frozen[operation.slot] = ratio.nan_to_num(0.0, 0.0, 0.0)
            self._state(f"the slopes of the nonlinearity before the {self.last}")
        return given * self.frozen[operation.slot]

    def _norm(
        self, operation: Operation, name: str, args: tuple, options: dict[str, Any]
    ) -> Tensor:
        names = ("input", "normalized_shape", "weight", "bias", "eps")
        names = names if name == "layer_norm" else (*names[:3], "eps")
        found = dict(zip(names, args, strict=False)) | options
        eps = found.get("eps")
        form = NormForm(
            is_centred=name == "layer_norm",
            eps=1e-5 if eps is None else eps,
            gain=found.get("weight"),
            bias=found.get("bias"),
        )
        given = found["input"]
        return form.push(given, self._freeze_size(operation, given)) + form.offset(given)

    def _freeze_size(self, operation: Operation, given: Tensor) -> Tensor:
        """What a size is computed from, or its inverse, as it was at the first run."""
        if operation.slot not in self.sizes:
            self.sizes[operation.slot] = given
            self._state("the size that the final norm divides by")
        return self.sizes[operation.slot]

    def _state(self, name: str) -> None:
        if name not in self.names:
            self.names.append(name)

    def _fill(self, value: Any, values: dict[int, Tensor]) -> Any:
        """The arguments of an operation, in float64."""
        if isinstance(value, Slot):
            return values[value.number]
        if isinstance(value, Tensor) and value.is_floating_point():
            if id(value) not in self.doubles:
                self.doubles[id(value)] = value, value.double().cpu()
            return self.doubles[id(value)][1]
        if type(value) in (tuple, list):
            return type(value)(self._fill(each, values) for each in value)
        return value


def _list_operations(readout: Readout, x: Float[Tensor, "1 1 C"]) -> list[Operation]:
    """The operations between a state and its scores, seen by running them."""
    graph = ReadoutGraph()
    with torch.no_grad(), graph:
        graph.begin(x)
        scores = readout.scores(x)
    number = graph.numbers.get(scores)
    if not number:
        raise TraceError("The scores of this model do not follow from the stream.")
    return [each for each in graph.operations if each.slot <= number]
