"""What a Transformer is, in numbers: one validated value that builds, describes and restores it."""

from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from glassformer.attention.rotary import Layout, Rotary
from glassformer.attention.rotary_scalings import (
    BandedScaling,
    LinearScaling,
    NTKScaling,
    Scaling,
    YaRNScaling,
)
from glassformer.errors import ConfigError
from glassformer.layers.attention import Biases
from glassformer.layers.block import NormPlace
from glassformer.layers.feed_forward import ACTIVATIONS, Activation
from glassformer.layers.norm import NormKind

Family = Literal["encoder", "decoder", "encoder_decoder"]
Pooling = Literal["mean", "first"]
PositionKind = Literal["none", "sinusoidal", "learned", "rotary", "alibi", "relative"]

SCALINGS: dict[str, type] = {
    "linear": LinearScaling,
    "ntk": NTKScaling,
    "yarn": YaRNScaling,
    "banded": BandedScaling,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Positions:
    """How a model knows the order of its tokens."""

    kind: PositionKind = "none"
    base: float = 10000.0  # sinusoidal and rotary
    layout: Layout = "half"
    scaling: Scaling | None = None
    n_buckets: int = 32  # relative
    max_distance: int = 128

    def __post_init__(self) -> None:
        _one_of("positions.kind", self.kind, PositionKind)
        if self.scaling is not None and self.kind != "rotary":
            raise ConfigError(f"Only rotary positions are scaled; got kind={self.kind!r}.")
        if self.kind == "relative" and (self.n_buckets < 4 or self.n_buckets % 4):
            raise ConfigError(f"n_buckets must be a multiple of 4; got n_buckets={self.n_buckets}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Norms:
    """Which norms there are, and where."""

    kind: NormKind = "layer"
    eps: float = 1e-5
    place: NormPlace = "pre"
    bias: bool = True
    final: bool = True  # one behind the last block
    embedding: bool = False  # one behind the embeddings
    heads: bool = False  # one for the queries and keys of each head


@dataclass(frozen=True, kw_only=True, slots=True)
class Dropout:
    """What is dropped while training."""

    embedding: float = 0.0
    weights: float = 0.0
    hidden: float = 0.0  # inside the feed-forward network
    residual: float = 0.0

    def __post_init__(self) -> None:
        for each in fields(self):
            share = getattr(self, each.name)
            if not 0 <= share < 1:
                raise ConfigError(f"dropout.{each.name} must be in 0 … 1, without 1; got {share}.")

    @classmethod
    def everywhere(cls, share: float) -> "Dropout":
        return cls(embedding=share, weights=share, hidden=share, residual=share)


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """What is made of the last hidden states."""

    tied: bool = True  # the output matrix is the embedding
    bias: bool = False  # one number per token, added to the logits
    scale: float = 1.0  # of the hidden states, before the output matrix
    masked_tokens: bool = True  # an encoder can fill gaps
    classes: tuple[str, ...] = ()  # and tell these apart
    pooling: Pooling = "mean"  # and make one vector of a text, from all tokens or the first

    def __post_init__(self) -> None:
        _one_of("output.pooling", self.pooling, Pooling)


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """A Transformer of one of three families.

    >>> Config(family="decoder", vocab_size=11, dim=8, n_layers=2, n_heads=2, max_len=16).hidden
    32
    """

    family: Family
    vocab_size: int
    dim: int
    n_layers: int
    n_heads: int
    max_len: int
    n_kv_heads: int | None = None
    head_dim: int | None = None
    hidden_dim: int | None = None  # 4 · dim unless given
    n_decoder_layers: int | None = None  # n_layers unless given
    activation: Activation = "gelu"
    gated: bool = False
    biases: Biases = "all"
    positions: Positions = field(default_factory=lambda: Positions(kind="learned"))
    norms: Norms = field(default_factory=Norms)
    dropout: Dropout = field(default_factory=Dropout)
    output: Output = field(default_factory=Output)
    scaled_embedding: bool = False
    n_token_types: int = 0
    attention_scale: float | None = None
    softcap: float | None = None
    window: int | None = None  # how many tokens a decoder looks at, its own included

    def __post_init__(self) -> None:
        _one_of("family", self.family, Family)
        for name in ("vocab_size", "dim", "n_layers", "n_heads", "max_len"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1; got {name}={getattr(self, name)}.")
        if self.head_dim is None and self.dim % self.n_heads:
            raise ConfigError(
                f"dim must be divisible by n_heads; got dim={self.dim}, n_heads={self.n_heads}. "
                "Use another n_heads, or say head_dim."
            )
        if self.n_heads % self.kv_heads:
            raise ConfigError(
                f"n_heads must be a multiple of n_kv_heads; got n_heads={self.n_heads}, "
                f"n_kv_heads={self.kv_heads}."
            )
        if self.activation not in ACTIVATIONS:
            raise ConfigError(
                f"activation must be one of {', '.join(ACTIVATIONS)}; got {self.activation!r}."
            )
        if self.n_decoder_layers is not None and self.family != "encoder_decoder":
            raise ConfigError(
                f"n_decoder_layers is for family='encoder_decoder'; got family={self.family!r}."
            )
        if self.window is not None and (self.window < 1 or self.family == "encoder"):
            raise ConfigError(
                "window counts the tokens that a decoder looks at and must be at least 1; got "
                f"window={self.window} for family={self.family!r}."
            )
        if self.positions.kind == "rotary":
            self.rotary()

    @property
    def kv_heads(self) -> int:
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def head_width(self) -> int:
        return self.dim // self.n_heads if self.head_dim is None else self.head_dim

    @property
    def hidden(self) -> int:
        return 4 * self.dim if self.hidden_dim is None else self.hidden_dim

    @property
    def decoder_layers(self) -> int:
        return self.n_layers if self.n_decoder_layers is None else self.n_decoder_layers

    def rotary(self) -> Rotary:
        """The rotation of queries and keys, where positions are rotary."""
        p = self.positions
        return Rotary(self.head_width, base=p.base, layout=p.layout, scaling=p.scaling)

    def replace(self, **changes: Any) -> "Config":
        """The same but for these fields."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; `from_dict` reads them back."""
        plain = asdict(self)
        scaling = self.positions.scaling
        if scaling is not None:
            name = next(n for n, kind in SCALINGS.items() if isinstance(scaling, kind))
            plain["positions"]["scaling"] = {"kind": name, **asdict(scaling)}
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Config":
        """The config that `as_dict` wrote; unknown or missing fields are named."""
        parts = dict(plain)
        for name, kind in PARTS.items():
            if isinstance(parts.get(name), dict):
                values = dict(parts[name])
                if isinstance(values.get("scaling"), dict):
                    values["scaling"] = _scaling(values["scaling"])
                parts[name] = from_plain(kind, values, name)
        return from_plain(cls, parts, "the config")


PARTS: dict[str, type] = {
    "positions": Positions,
    "norms": Norms,
    "dropout": Dropout,
    "output": Output,
}


def _scaling(values: dict[str, Any]) -> Scaling:
    values = dict(values)
    name = values.pop("kind", None)
    if name not in SCALINGS:
        raise ConfigError(f"A scaling is one of {', '.join(SCALINGS)}; got {name!r}.")
    return from_plain(SCALINGS[name], values, "scaling")


def from_plain(kind: type, values: dict[str, Any], where: str) -> Any:
    """A dataclass from the values of a JSON file; what does not fit is named."""
    hints = get_type_hints(kind)
    known = {f.name: f for f in fields(kind)}
    strange = sorted(set(values) - set(known))
    if strange:
        raise ConfigError(f"{where} has unknown fields {strange}; known are {sorted(known)}.")
    lacking = [
        name
        for name, f in known.items()
        if f.default is MISSING and f.default_factory is MISSING and name not in values
    ]
    if lacking:
        raise ConfigError(f"{where} lacks the fields {lacking}.")
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    for name, value in values.items():
        if not _fits(value, hints[name]):
            raise ConfigError(f"{where}: {name} cannot be {value!r}.")
    return kind(**values)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value read from JSON is of a field's type; float takes whole numbers too."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(each, parts[0]) for each in value)
    if hint in (int, float):
        numbers = (int, float) if hint is float else int
        return isinstance(value, numbers) and not isinstance(value, bool)
    return isinstance(value, hint)


def _one_of(name: str, value: str, kind: Any) -> None:
    allowed = kind.__args__
    if value not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")
