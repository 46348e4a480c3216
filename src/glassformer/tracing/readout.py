"""From the end of the residual stream to the scores of tokens: what the model computes there.

`ReadoutGraph` notes what a model computes between its last block and its logits; `Readout` computes
the same for any other vector. Where it is a norm followed by a matrix, each term of the stream has
an exact share in each score.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from glassformer.errors import TraceError
from glassformer.tracing.norm_form import NormForm

_RESHAPES = ("view", "reshape")
_PRODUCTS = ("linear", "matmul", "__matmul__")


class ClassLabels(NamedTuple):
    """The names of classes, in the place of a tokenizer: what a classifier scores are no tokens."""

    names: tuple[str, ...]

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [self.names[i] for i in ids]


class Slot(NamedTuple):
    """The result of an earlier operation; 0 is the stream itself."""

    number: int


class Operation(NamedTuple):
    """A call of PyTorch, with slots in the place of what followed from the stream."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]
    slot: int  # of its result

    def run(self, values: dict[int, Tensor]) -> Tensor:
        args = tuple(_fill(each, values) for each in self.args)
        return self.function(*args, **{n: _fill(v, values) for n, v in self.options.items()})

    @property
    def slots(self) -> set[int]:
        return {each.number for each in _slots((self.args, list(self.options.values())))}


class ReadoutGraph(TorchFunctionMode):
    """While this is entered, operations on what follows from `start` are noted.

    It is entered once for a whole pass, so that modes are left in the order in which they were
    entered, and begins anew at the end of every block.
    """

    def __init__(self, guarded: Callable[[], AbstractContextManager[Any]] = nullcontext) -> None:
        super().__init__()
        self.guarded = guarded
        self.stop()

    def begin(self, start: Tensor) -> None:
        """The stream ends here, unless another block follows."""
        self.stop()
        self.start = start.detach()
        self.numbers[start] = 0

    def stop(self) -> None:
        """Another block follows, or nothing has run yet."""
        self.start: Tensor | None = None
        self.numbers: Any = WeakIdKeyDictionary()
        self.operations: list[Operation] = []
        self.norm: NormForm | None = None  # of the stream, where the first step is one

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        out = func(*args, **(kwargs or {}))
        if self.start is None:
            return out
        if isinstance(out, Tensor) and getattr(func, "__name__", "") != "__get__":
            with self.guarded():
                self._note(func, args, kwargs or {}, out)
        return out

    def _note(self, func: Any, args: tuple, options: dict[str, Any], out: Tensor) -> None:
        given, named = self._replace(args), {n: self._replace(v) for n, v in options.items()}
        if not any(True for _ in _slots((given, list(named.values())))):
            return
        if out in self.numbers and not getattr(func, "__name__", "").endswith("_"):
            return  # returned as it was
        first = args[0] if args and isinstance(args[0], Tensor) else None
        if func.__name__ in _RESHAPES and first is not None and first.shape[-1] == out.shape[-1]:
            func, given, named = _reshape_places, (given[0], Slot(0), out.ndim), {}
        self.operations.append(Operation(func, given, named, len(self.operations) + 1))
        self.numbers[out] = len(self.operations)

    def _replace(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            number = self.numbers.get(value)
            return value.detach() if number is None else Slot(number)
        if type(value) in (tuple, list):
            return type(value)(self._replace(each) for each in value)
        return value

    def pass_norm(self, module: nn.Module, before: Tensor, after: Tensor) -> None:
        if self.numbers.get(before) == 0 and self.norm is None:
            with suppress(TraceError):  # then the scores are not split, but computed all the same
                self.norm = NormForm.of(module, before, after)

    def read(self, logits: Tensor) -> "Readout":
        """The readout that ended in these scores; they must be what it computes."""
        number = self.numbers.get(logits)
        if not number or self.start is None:
            raise TraceError("its scores do not follow from the stream by known operations")
        needed, operations = {number}, []
        for each in reversed(self.operations):
            if each.slot in needed:
                needed |= each.slots
                operations.insert(0, each)
        if 0 not in needed:
            raise TraceError("its scores do not depend on the stream")
        operations, pooled = _drop_row_selections(operations, self.start)
        if logits.ndim == 2 and pooled is None:
            raise TraceError("its scores are not those of one position, but of several together")
        where = self.start.device
        readout = Readout(operations=operations, norm=self.norm, pooled=pooled, device=where)
        x, expected = self.start[:1, -1:], logits.detach()[:1, -1:]
        if pooled is not None:
            x = self.start[range(len(pooled)), list(pooled)][:, None]
            expected = logits.detach()[:, None]
        found = readout.compute_alone(x)
        if found is None or found.shape != expected.shape:
            raise TraceError("its scores do not follow from one position of the stream")
        apart = (found - expected).abs().amax()
        if apart > torch.finfo(logits.dtype).eps ** 0.5 * expected.abs().amax():
            raise TraceError(f"its scores could not be computed again; they differ by {apart:.2g}")
        return readout.find_matrix(x[:1])


class _LastMatrix(TorchFunctionMode):
    """While this is entered, the matrix of the latest product is remembered."""

    matrix: Tensor | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        options = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _PRODUCTS:
            given = [t for t in (*args, *options.values()) if isinstance(t, Tensor)]
            self.matrix = given[1].detach() if name == "linear" else given[1].detach().mT
        return func(*args, **options)


@dataclass(eq=False, kw_only=True)
class Readout:
    """What a model makes of the end of its stream: `readout(x)` are the scores of every token."""

    operations: list[Operation] = field(default_factory=list)
    norm: NormForm | None = None
    matrix: Float[Tensor, "V C"] | None = None  # where scores are linear in the norm of the stream
    bias: Float[Tensor, " V"] | None = None
    factor: float = 1.0  # of the scores
    is_capped: bool = False  # whether a soft cap follows, which no longer adds up
    reason: str = ""  # why there is no matrix
    tokenizer: Any = None
    classes: ClassLabels | None = None  # what is scored, where it is not tokens
    pooled: tuple[int, ...] | None = None  # the position of each sequence that a classifier reads
    device: torch.device | None = None  # where the stream ended; None: wherever it is

    @property
    def vocabulary(self) -> Any:
        """What names the scores: a tokenizer, or the labels of classes."""
        return self.tokenizer if self.classes is None else self.classes

    @property
    def scores_tokens(self) -> bool:
        """Whether it is known, and gives every position scores of tokens."""
        return bool(self.operations) and self.classes is None and self.pooled is None

    def find_pooled(self, sequence: int) -> int | None:
        """The position that a classifier reads; None where every position has scores."""
        if self.pooled is None:
            return None
        return self.pooled[sequence if len(self.pooled) > 1 else 0]

    def __call__(self, x: Float[Tensor, "B L C"]) -> Float[Tensor, "B L V"]:
        """The scores of every token, were the stream to end in x."""
        with torch.no_grad():
            return self.scores(x)

    def scores(self, x: Float[Tensor, "B L C"]) -> Float[Tensor, "B L V"]:
        """The same scores, to be differentiated by x."""
        values = {0: x if self.device is None else x.to(self.device)}
        for each in self.operations:
            values[each.slot] = each.run(values)
        return values[self.operations[-1].slot]

    def compute_alone(self, x: Float[Tensor, "B 1 C"]) -> Tensor | None:
        """The scores of one position; None where they need others."""
        try:
            return self(x)
        except (RuntimeError, IndexError):  # shapes that do not fit
            return None

    def find_unembedding(self, x: Float[Tensor, "1 1 C"]) -> Float[Tensor, "V X"]:
        """The last matrix on the way to the scores, with a row for each token; seen by running."""
        with _LastMatrix() as seen:
            n_tokens = self(x).shape[-1]
        if seen.matrix is None or len(seen.matrix) != n_tokens:
            raise TraceError("The scores of this model do not end in a matrix, a row per token.")
        return seen.matrix

    def find_matrix(self, x: Tensor) -> "Readout":
        """Recognise a norm, a factor and a matrix among the operations."""
        linear = [op for op in self.operations if _name(op) in _PRODUCTS]
        if len(linear) != 1:
            self.reason = f"{len(linear)} matrices lie between the stream and the scores, not one"
            return self
        (op,) = linear
        given = [each for each in (*op.args, *op.options.values()) if isinstance(each, Tensor)]
        matrix = given[0] if _name(op) == "linear" else given[0].mT
        values = {0: x}
        for each in self.operations:
            if each is op:
                break
            values[each.slot] = each.run(values)
        (slot,) = op.slots
        read, normed = values[slot].double(), (self.norm or _same)(x.double())
        factor = float((read * normed).sum() / normed.square().sum().clamp(min=1e-300))
        tolerance = 64 * torch.finfo(x.dtype).eps * float(read.abs().amax())
        if read.shape != normed.shape or (read - factor * normed).abs().amax() > tolerance:
            self.reason = "what the matrix reads is not the norm of the stream times a number"
            return self
        bias = given[1] if len(given) > 1 else None
        with torch.no_grad():
            raw = op.run(values).double()
        scores = self(x).double().to(raw.device)  # layers on several devices return to the first
        after = float((scores * raw).sum() / raw.square().sum().clamp(min=1e-300))
        bound = 64 * torch.finfo(x.dtype).eps * float(scores.abs().amax())
        self.is_capped = bool((scores - after * raw).abs().amax() > bound)
        after = 1.0 if self.is_capped else after
        self.factor = _round_to_one(factor * after)
        self.matrix, self.bias = matrix, bias if bias is None else bias * _round_to_one(after)
        return self

    def require_matrix(self) -> Tensor:
        if self.matrix is None:
            raise TraceError(
                f"Scores must be linear in the norm of the stream to be split; {self.reason}."
            )
        return self.matrix


def _reshape_places(x: Tensor, start: Tensor, n_dims: int) -> Tensor:
    """Places in one row or in sequences, however many there are."""
    return x.reshape(-1, x.shape[-1]) if n_dims == 2 else x.reshape(*start.shape[:-1], -1)


def _round_to_one(factor: float) -> float:
    return 1.0 if abs(factor - 1) < 1e-6 else factor


def _same(x: Tensor) -> Tensor:
    return x


def _name(operation: Operation) -> str:
    return getattr(operation.function, "__name__", "")


def _drop_row_selections(
    operations: list[Operation], start: Float[Tensor, "B L C"]
) -> tuple[list[Operation], tuple[int, ...] | None]:
    """Without the choice of positions, and the one that a classifier chose for each sequence.

    Generation reads the last position only, a classifier the first or the last; we read all.
    """
    same: dict[Any, Any] = {}
    kept, pooled = [], None
    for each in operations:
        if _name(each) == "__getitem__":
            chosen = _find_pooled(each.args[1], *start.shape[:2])
            if chosen is not None or _selects_rows(each.args[1]):
                number = each.args[0].number
                same[each.slot] = same.get(number, number)
                pooled = chosen or pooled
                continue
        renamed = _rename((each.args, each.options), same)
        kept.append(each._replace(args=renamed[0], options=renamed[1]))
    return kept, pooled


def _find_pooled(index: Any, B: int, L: int) -> tuple[int, ...] | None:
    """The position of each sequence that an index picks: x[:, 0], or x[arange(B), last]."""
    whole = slice(None)
    if not isinstance(index, tuple) or not 2 <= len(index) <= 3:
        return None
    first, row, *rest = index
    if not all(isinstance(each, slice) and each == whole for each in rest):
        return None
    if isinstance(row, int) and isinstance(first, slice) and first == whole:
        return (row % L,) * B
    if not isinstance(first, Tensor) or not isinstance(row, Tensor) or row.is_floating_point():
        return None
    if first.tolist() != list(range(B)) or row.shape != (B,):
        return None
    return tuple(i % L for i in row.tolist())


def _selects_rows(index: Any) -> bool:
    whole = slice(None)
    if not isinstance(index, tuple) or not 2 <= len(index) <= 3:
        return False
    return isinstance(index[1], slice) and all(
        isinstance(each, slice) and each == whole for each in (index[0], *index[2:])
    )


def _rename(value: Any, same: dict[int, int]) -> Any:
    if isinstance(value, Slot):
        return Slot(same.get(value.number, value.number))
    if type(value) in (tuple, list):
        return type(value)(_rename(each, same) for each in value)
    if isinstance(value, dict):
        return {name: _rename(each, same) for name, each in value.items()}
    return value


def _fill(value: Any, values: dict[int, Tensor]) -> Any:
    if isinstance(value, Slot):
        return values[value.number]
    if type(value) in (tuple, list):
        return type(value)(_fill(each, values) for each in value)
    return value


def _slots(value: Any) -> Iterator[Slot]:
    if isinstance(value, Slot):
        yield value
    elif type(value) in (tuple, list):
        for each in value:
            yield from _slots(each)
