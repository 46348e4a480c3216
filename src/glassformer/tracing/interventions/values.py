"""Interventions: small values that say what is changed in a model while it runs.

A *part* is what attention or a feed-forward network adds to the residual stream: `decoder.3.self`,
`decoder.3.cross`, `decoder.3.mlp`. A *border* is the state of the stream after a part, and has its
name; `decoder.start` is the state that the first block reads. A *site* is the attention of a part.

Values are combined by `&` and applied by `gf.change` and `gf.rerun`.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import InterventionError
from glassformer.functional import Bias, Mask
from glassformer.tracing.trace import Trace

Numbers = int | slice | range | Collection[int]  # heads, positions or sequences
How = Literal["zero", "mean", "resample"]
Target = Literal["added", "state"]


class Intervention:
    """Something that is changed; `a & b` changes both."""

    place: str
    sequences: Numbers | None

    def __and__(self, other: "Intervention | Changes") -> "Changes":
        return Changes((self,)) & other

    def __str__(self) -> str:
        shown = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if each.name == "place":
                shown.append(value)
            elif value is not None and value is not each.default and value != each.default:
                shown.append(f"{each.name}={_describe(value)}")
        return f"{type(self).__name__.lower()}({', '.join(shown)})"

    def __repr__(self) -> str:
        return f"<{self}>"

    @property
    def layer(self) -> tuple[str, int]:
        """The stack and the layer that it changes."""
        stack, _, rest = self.place.partition(".")
        number = rest.partition(".")[0]
        if number == "start":
            return stack, 0
        if not number.isdigit():
            raise InterventionError(
                f"A place must name a stack, a layer and a part, decoder.3.self for example; got "
                f"{self.place!r}."
            )
        return stack, int(number)


@dataclass(frozen=True, repr=False, eq=False)
class Ablate(Intervention):
    """Remove what a part adds, or what some of its heads do.

    "zero" puts zeros in its place, "mean" the mean over all positions and sequences, "resample" the
    values at other positions, drawn with `seed`. With `of`, mean and values are those of another
    trace.

    >>> print(Ablate("decoder.3.self", head=2) & Ablate("decoder.4.mlp", how="mean"))
    ablate(decoder.3.self, head=2) & ablate(decoder.4.mlp, how=mean)
    """

    place: str
    head: Numbers | None = None
    how: How = "zero"
    positions: Numbers | None = None
    of: Trace | None = None
    seed: int = 0
    sequences: Numbers | None = None

    def __post_init__(self) -> None:
        if self.how not in ("zero", "mean", "resample"):
            raise InterventionError(f"how must be zero, mean or resample; got {self.how!r}.")
        if self.of is not None and self.how == "zero":
            raise InterventionError(
                "of= is the trace that a mean or other values are taken from; got how='zero'."
            )


@dataclass(frozen=True, repr=False, eq=False)
class Knockout(Intervention):
    """Hide keys from queries at a site: these queries can no longer attend to these keys.

    >>> print(Knockout("decoder.3.self", queries=-1, keys=[0, 1]))
    knockout(decoder.3.self, queries=-1, keys=0 1)
    """

    place: str
    queries: Numbers | None = None
    keys: Numbers | None = None
    head: Numbers | None = None
    sequences: Numbers | None = None


@dataclass(frozen=True, repr=False, eq=False)
class Patch(Intervention):
    """Take what a part or some of its heads add from another trace, at all or some positions.

    what="state" takes the state of the residual stream at this border instead.

    >>> import glassformer as gf
    >>> model = gf.load("translator")
    >>> with gf.watch(model) as trace:
    ...     _ = gf.translate(model, "The cat sat.", to="fr")
    >>> print(Patch("decoder.2.cross", trace, head=1))
    patch(decoder.2.cross, trace=…, head=1)
    """

    place: str
    trace: Trace
    head: Numbers | None = None
    positions: Numbers | None = None
    what: Target = "added"
    sequences: Numbers | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.trace, Trace):
            raise InterventionError(
                f"A patch takes its values from a trace; got {type(self.trace).__name__}."
            )
        if self.what not in ("added", "state"):
            raise InterventionError(f"what must be added or state; got {self.what!r}.")
        if self.what == "state" and self.head is not None:
            raise InterventionError(
                f"The state of the residual stream has no heads; got head={self.head}."
            )


@dataclass(frozen=True, repr=False, eq=False)
class Scale(Intervention):
    """Multiply what a part or some of its heads add.

    >>> print(Scale("decoder.3.mlp", 0.5))
    scale(decoder.3.mlp, factor=0.5)
    """

    place: str
    factor: float
    head: Numbers | None = None
    positions: Numbers | None = None
    sequences: Numbers | None = None

    def __post_init__(self) -> None:
        _check_finite("factor", self.factor)


@dataclass(frozen=True, repr=False, eq=False)
class Steer(Intervention):
    """Add a vector to the residual stream at a border.

    >>> print(Steer("decoder.3.mlp", torch.ones(8), factor=2.0))
    steer(decoder.3.mlp, vector=tensor(8), factor=2.0)
    """

    place: str
    vector: Float[Tensor, "*_ C"]
    factor: float = 1.0
    positions: Numbers | None = None
    sequences: Numbers | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.vector, Tensor) or not self.vector.is_floating_point():
            raise InterventionError(
                f"A vector must be a tensor of real numbers; got {type(self.vector).__name__}."
            )
        if not self.vector.isfinite().all():
            raise InterventionError("A vector must be finite; this one is not.")
        _check_finite("factor", self.factor)


@dataclass(frozen=True, repr=False, eq=False)
class Freeze(Intervention):
    """Give a site the attention weights of another trace, or of a tensor, (…, L, S).

    >>> print(Freeze("encoder.0.self", torch.eye(5), head=1))
    freeze(encoder.0.self, weights=tensor(5 × 5), head=1)
    """

    place: str
    weights: Trace | Float[Tensor, "*_ L S"]
    head: Numbers | None = None
    positions: Numbers | None = None
    sequences: Numbers | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Tensor | Trace):
            raise InterventionError(
                f"Weights must be a tensor or a trace; got {type(self.weights).__name__}."
            )


@dataclass(frozen=True, repr=False, eq=False)
class Swap(Intervention):
    """Compute a site's attention with another mask, bias, scale or softcap.

    What is not given stays; None takes it away. positions="none" leaves out the rotation of queries
    and keys, so with bias=gf.ALiBi.of_heads(n) a model with rotary positions tries others.

    >>> import glassformer as gf
    >>> print(Swap("decoder.3.self", mask=gf.Causal() & gf.Window(4)))
    swap(decoder.3.self, mask=Causal() & Window(left=4))
    """

    place: str
    mask: Mask | Tensor | Literal["same"] | None = "same"
    bias: Bias | Tensor | Literal["same"] | None = "same"
    scale: float | Literal["same"] | None = "same"
    softcap: float | Literal["same"] | None = "same"
    positions: Literal["none", "same"] = "same"
    sequences: Numbers | None = None

    def __post_init__(self) -> None:
        if not self.given and self.positions == "same":
            raise InterventionError(
                "A swap must name what to swap: mask, bias, scale, softcap or positions."
            )
        if self.positions not in ("none", "same"):
            raise InterventionError(f"positions must be 'none'; got {self.positions!r}.")

    @property
    def given(self) -> dict[str, Any]:
        """The options of attention that it replaces."""
        options = {name: getattr(self, name) for name in ("mask", "bias", "scale", "softcap")}
        return {n: v for n, v in options.items() if not (isinstance(v, str) and v == "same")}


@dataclass(frozen=True, repr=False, eq=False)
class Skip(Intervention):
    """Leave out a whole block: the stream passes it unchanged.

    >>> print(Skip("decoder.3"))
    skip(decoder.3)
    """

    place: str
    sequences: Numbers | None = None

    def __post_init__(self) -> None:
        stack, _, number = self.place.partition(".")
        if not stack or not number.isdigit():
            raise InterventionError(
                f"Skip names a block by stack and layer, decoder.3 for example; got {self.place!r}."
            )


@dataclass(frozen=True, repr=False, eq=False)
class Changes:
    """Several interventions, applied together."""

    each: tuple[Intervention, ...] = field(default=())

    @classmethod
    def of(cls, given: "Intervention | Changes | Collection[Intervention]") -> "Changes":
        """One or several; those that contradict each other are rejected."""
        if isinstance(given, Changes):
            return given
        if isinstance(given, Intervention):
            return cls((given,))
        if not isinstance(given, list | tuple) or not all(
            isinstance(each, Intervention) for each in given
        ):
            raise InterventionError(
                f"A change must be an intervention such as gf.Ablate; got {type(given).__name__}."
            )
        return cls(tuple(given))

    @classmethod
    def of_variants(cls, given: Collection[Intervention]) -> "Changes":
        """Those of different sequences, which cannot contradict each other."""
        found = cls(())
        object.__setattr__(found, "each", tuple(given))
        return found

    def __post_init__(self) -> None:
        for i, a in enumerate(self.each):
            for b in self.each[:i]:
                _check_agreement(b, a)

    def __and__(self, other: "Intervention | Changes") -> "Changes":
        return Changes((*self.each, *Changes.of(other).each))

    def __iter__(self) -> Iterator[Intervention]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def __str__(self) -> str:
        return " & ".join(map(str, self.each))

    def __repr__(self) -> str:
        return f"<{self}>"


def resolve_numbers(numbers: Numbers | None, n: int, what: str) -> list[int]:
    """Numbers from 0 to n − 1; negative ones count from the end, None is all.

    >>> resolve_numbers([-1, 2], 5, "head")
    [2, 4]
    """
    if numbers is None:
        return list(range(n))
    if isinstance(numbers, slice):
        return list(range(*numbers.indices(n)))
    chosen = [numbers] if isinstance(numbers, int) else list(numbers)
    if any(isinstance(i, bool) or not isinstance(i, int) for i in chosen):
        raise InterventionError(f"{what} must be whole numbers; got {_describe(numbers)}.")
    if wrong := [i for i in chosen if not -n <= i < n]:
        raise InterventionError(f"{what} must be 0 … {n - 1}; got {wrong[0]}.")
    return sorted({i % n for i in chosen})


_REPLACING = (Ablate, Patch)


def _check_agreement(a: Intervention, b: Intervention) -> None:
    """Two values for the same numbers contradict each other."""
    if not _overlap(a.sequences, b.sequences):
        return
    if isinstance(a, Skip) or isinstance(b, Skip):
        skip, other = (a, b) if isinstance(a, Skip) else (b, a)
        if other.place == skip.place or other.place.startswith(f"{skip.place}."):
            raise InterventionError(f"{other} has no effect where {skip} leaves out the block.")
        return
    if a.place != b.place:
        return
    is_double = isinstance(a, Freeze) and isinstance(b, Freeze)
    if isinstance(a, Swap) and isinstance(b, Swap):
        is_double = bool(a.given.keys() & b.given.keys()) or "same" not in (
            a.positions,
            b.positions,
        )
    if isinstance(a, _REPLACING) and isinstance(b, _REPLACING):
        is_double = getattr(a, "what", "added") == getattr(b, "what", "added")
    if is_double and not isinstance(a, Swap):
        is_double = all(
            _overlap(getattr(a, name), getattr(b, name)) for name in ("head", "positions")
        )
    if {type(a), type(b)} in ({Freeze, Knockout}, {Freeze, Swap}):
        is_double = True
    if is_double:
        raise InterventionError(
            f"{a} and {b} contradict each other: both say what {a.place} computes. Apply one."
        )


def _overlap(a: Any, b: Any) -> bool:
    if a is None or b is None or isinstance(a, slice) or isinstance(b, slice):
        return True
    first, second = ({x} if isinstance(x, int) else set(x) for x in (a, b))
    return bool(first & second) or any(i < 0 for i in first | second)


def _check_finite(name: str, value: Any) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not torch.tensor(float(value)).isfinite():
        raise InterventionError(f"{name} must be a finite number; got {value!r}.")


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"tensor({' × '.join(map(str, value.shape))})"
    if isinstance(value, Trace):
        return "…"
    if isinstance(value, Mask | Bias):
        return repr(value)
    if isinstance(value, range):
        return f"{value.start}:{value.stop}"
    if isinstance(value, slice):
        ends = ["" if n is None else str(n) for n in (value.start, value.stop)]
        return ":".join(ends if value.step is None else [*ends, str(value.step)])
    if isinstance(value, Collection) and not isinstance(value, str):
        return " ".join(map(str, value))
    return str(value)
