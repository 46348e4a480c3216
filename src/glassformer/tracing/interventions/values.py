"""Interventions: small values that say what is changed in a model while it runs.

A *part* is what attention or a feed-forward network adds to the residual stream: `decoder.3.self`,
`decoder.3.cross`, `decoder.3.mlp`. A *border* is the state of the stream after a part, and has its
name; `decoder.start` is the state that the first block reads. A *site* is the attention of a part.

Values are combined by `&` and applied by `gf.change` and `gf.rerun`.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from jaxtyping import Float
from torch import Tensor

from glassformer.errors import InterventionError
from glassformer.functional import Bias, Mask
from glassformer.functional.biases import as_bias
from glassformer.functional.masks import as_mask
from glassformer.tracing.interventions.intervention import Intervention
from glassformer.tracing.interventions.numbers import Numbers, overlap
from glassformer.tracing.trace import Trace

How = Literal["zero", "mean", "resample"]
Target = Literal["added", "state"]


@dataclass(frozen=True, repr=False, eq=False)
class Ablate(Intervention):
    """Remove what a part adds, or what some of its heads do.

    "zero" puts zeros in its place, "mean" the mean over all positions and sequences, "resample" the
    values at other positions, drawn with `seed`. With `of`, mean and values are those of another
    trace, without its first `skip` positions.

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
    skip: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.skip) is not int or self.skip < 0 or (self.skip and self.of is None):
            raise InterventionError(
                f"skip must be a number of positions of the trace of=; got {self.skip!r}."
            )
        if self.how not in ("zero", "mean", "resample"):
            raise InterventionError(f"how must be zero, mean or resample; got {self.how!r}.")
        if self.of is not None and self.how == "zero":
            raise InterventionError(
                "of= is the trace that a mean or other values are taken from; got how='zero'."
            )
        if type(self.seed) is not int or not 0 <= self.seed < 2**63:
            raise InterventionError(f"seed must be a whole number from 0 up; got {self.seed!r}.")


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
        super().__post_init__()
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
        super().__post_init__()
        _check_finite("factor", self.factor)


@dataclass(frozen=True, repr=False, eq=False)
class Steer(Intervention):
    """Add a vector to the residual stream at a border.

    >>> import torch
    >>> print(Steer("decoder.3.mlp", torch.ones(8), factor=2.0))
    steer(decoder.3.mlp, vector=tensor(8), factor=2.0)
    """

    place: str
    vector: Float[Tensor, "*_ C"]
    factor: float = 1.0
    positions: Numbers | None = None
    sequences: Numbers | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
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

    >>> import torch
    >>> print(Freeze("encoder.0.self", torch.eye(5), head=1))
    freeze(encoder.0.self, weights=tensor(5 × 5), head=1)
    """

    place: str
    weights: Trace | Float[Tensor, "*_ L S"]
    head: Numbers | None = None
    positions: Numbers | None = None
    sequences: Numbers | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.weights, Tensor | Trace):
            raise InterventionError(
                f"Weights must be a tensor or a trace; got {type(self.weights).__name__}."
            )
        if isinstance(self.weights, Trace):
            return
        if not self.weights.is_floating_point() or not 2 <= self.weights.ndim <= 4:
            raise InterventionError(
                "Weights must be real numbers in a tensor (…, L, S) of at most 4 dimensions; got "
                f"{self.weights.dtype} of shape {tuple(self.weights.shape)}."
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
    numbers: ClassVar = ("sequences",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.given and self.positions == "same":
            raise InterventionError(
                "A swap must name what to swap: mask, bias, scale, softcap or positions."
            )
        if self.positions not in ("none", "same"):
            raise InterventionError(f"positions must be 'none'; got {self.positions!r}.")
        for name in ("scale", "softcap"):
            if self.given.get(name) is not None:
                _check_finite(name, self.given[name])
        if self.given.get("softcap") is not None and self.given["softcap"] <= 0:
            raise InterventionError(f"softcap must be greater than 0; got {self.softcap}.")
        for name, read in (("mask", as_mask), ("bias", as_bias)):
            if self.given.get(name) is not None:  # a tensor becomes a value that can be saved
                object.__setattr__(self, name, read(self.given[name]))

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
        super().__post_init__()
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

    def __eq__(self, other: object) -> bool:
        return self.each == other.each if isinstance(other, Changes) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.each)


_REPLACING = (Ablate, Patch)


def _check_agreement(a: Intervention, b: Intervention) -> None:
    """Two values for the same numbers contradict each other."""
    if not overlap(a.sequences, b.sequences):
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
            overlap(getattr(a, name), getattr(b, name)) for name in ("head", "positions")
        )
    if {type(a), type(b)} in ({Freeze, Knockout}, {Freeze, Swap}):
        is_double = True
    if is_double:
        raise InterventionError(
            f"{a} and {b} contradict each other: both say what {a.place} computes. Apply one."
        )


def _check_finite(name: str, value: Any) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) < 3e38:  # float32 ends there
        raise InterventionError(f"{name} must be a finite number; got {repr(value)[:60]}.")
