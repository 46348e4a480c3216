"""What a Transformer is, in numbers: one validated value that builds, describes and restores it."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from glassformer.errors import ConfigError
from glassformer.functional.positions.rotary import Layout, Rotary
from glassformer.functional.positions.rotary_scalings import (
    BandedScaling,
    LinearScaling,
    NTKScaling,
    Scaling,
    YaRNScaling,
)
from glassformer.layers.attention import Biases
from glassformer.layers.block import NormPlace
from glassformer.layers.feed_forward import Activation
from glassformer.layers.norm import NormKind
from glassformer.settings import (
    Bounds,
    Count,
    NonNegative,
    Positive,
    Share,
    Tagged,
    Whole,
    as_plain,
    check_bounds,
    read_settings,
)

Family = Literal["encoder", "decoder", "encoder_decoder"]
Pooling = Literal["mean", "first"]
PositionKind = Literal["none", "sinusoidal", "learned", "rotary", "alibi", "relative"]

Layers = Annotated[int, Bounds(least=1, most=10_000)]
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
    base: Annotated[float, Bounds(above=1)] = 10000.0  # sinusoidal and rotary
    layout: Layout = "half"
    scaling: Annotated[Scaling | None, Tagged(SCALINGS)] = None
    n_buckets: Count = 32  # relative
    max_distance: Count = 128

    def __post_init__(self) -> None:
        check_bounds(self, "positions.")
        if self.scaling is not None and self.kind != "rotary":
            raise ConfigError(f"Only rotary positions are scaled; got kind={self.kind!r}.")
        if self.kind == "relative" and (self.n_buckets < 4 or self.n_buckets % 4):
            raise ConfigError(f"n_buckets must be a multiple of 4; got n_buckets={self.n_buckets}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Norms:
    """Which norms there are, and where."""

    kind: NormKind = "layer"
    eps: NonNegative = 1e-5
    place: NormPlace = "pre"
    bias: bool = True
    final: bool = True  # one behind the last block
    embedding: bool = False  # one behind the embeddings
    heads: bool = False  # one for the queries and keys of each head

    def __post_init__(self) -> None:
        check_bounds(self, "norms.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dropout:
    """What is dropped while training."""

    embedding: Share = 0.0
    weights: Share = 0.0
    hidden: Share = 0.0  # inside the feed-forward network
    residual: Share = 0.0

    def __post_init__(self) -> None:
        check_bounds(self, "dropout.")

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
        check_bounds(self, "output.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """A Transformer of one of three families.

    >>> Config(family="decoder", vocab_size=11, dim=8, n_layers=2, n_heads=2, max_len=16).hidden
    32
    """

    family: Family
    vocab_size: Count
    dim: Count
    n_layers: Layers
    n_heads: Count
    max_len: Count
    n_kv_heads: Count | None = None
    head_dim: Count | None = None
    hidden_dim: Count | None = None  # 4 · dim unless given
    n_decoder_layers: Layers | None = None  # n_layers unless given
    activation: Activation = "gelu"
    gated: bool = False
    biases: Biases = "all"
    positions: Positions = field(default_factory=lambda: Positions(kind="learned"))
    norms: Norms = field(default_factory=Norms)
    dropout: Dropout = field(default_factory=Dropout)
    output: Output = field(default_factory=Output)
    scaled_embedding: bool = False
    n_token_types: Whole = 0
    attention_scale: float | None = None
    softcap: Positive | None = None
    window: Count | None = None  # how many tokens a decoder looks at, its own included

    def __post_init__(self) -> None:
        check_bounds(self)
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
        if self.n_decoder_layers is not None and self.family != "encoder_decoder":
            raise ConfigError(
                f"n_decoder_layers is for family='encoder_decoder'; got family={self.family!r}."
            )
        if self.window is not None and self.family == "encoder":
            raise ConfigError(
                f"window is for decoders; got window={self.window} for family='encoder'."
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
        return as_plain(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Config":
        """The config that `as_dict` wrote; unknown or missing fields are named."""
        return read_settings(cls, plain)
