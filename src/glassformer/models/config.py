"""The configuration of a Transformer: one validated value that builds and restores it."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
from glassformer.layers.latent_attention import check_latent
from glassformer.layers.norm import NormKind
from glassformer.models.variants import Experts, Latent, Patches
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

Family = Literal["encoder", "decoder", "encoder_decoder", "vision"]
Pooling = Literal["mean", "first"]
PositionKind = Literal["none", "sinusoidal", "learned", "rotary", "alibi", "relative"]

Layers = Annotated[int, Bounds(least=1, most=10_000)]
_DERIVED: Any = None  # a size that the other sizes determine

if TYPE_CHECKING:
    DerivedCount = int  # always, once constructed
else:
    DerivedCount = Count | None  # what a caller or a file may give

SCALINGS: dict[str, type] = {
    "linear": LinearScaling,
    "ntk": NTKScaling,
    "yarn": YaRNScaling,
    "banded": BandedScaling,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Positions:
    """How a model encodes the order of its tokens."""

    kind: PositionKind = "none"
    base: Annotated[float, Bounds(above=1)] = 10000.0  # sinusoidal and rotary
    local_base: Annotated[float, Bounds(above=1)] | None = None  # rotary, in layers with a window
    layout: Layout = "half"
    scaling: Annotated[Scaling | None, Tagged(SCALINGS)] = None
    n_buckets: Count = 32  # relative
    max_distance: Count = 128

    def __post_init__(self) -> None:
        check_bounds(self, "positions.")
        if self.scaling is not None and self.kind != "rotary":
            raise ConfigError(
                f"Only rotary positions (RoPE) can be scaled; got kind={self.kind!r}."
            )
        if self.local_base is not None and self.kind != "rotary":
            raise ConfigError(
                f"Only rotary positions (RoPE) can have a local_base; got kind={self.kind!r}."
            )
        if self.kind == "relative" and (self.n_buckets < 4 or self.n_buckets % 4):
            raise ConfigError(f"n_buckets must be a multiple of 4; got n_buckets={self.n_buckets}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Norms:
    """Which norms a model has, and where."""

    kind: NormKind = "layer"
    eps: NonNegative = 1e-5
    place: NormPlace = "pre"
    bias: bool = True
    final: bool = True  # one after the last block
    embedding: bool = False  # one after the embeddings
    first: bool = True  # one before the first attention, where norms are before sublayers
    heads: bool = False  # one for the queries and keys of each head (QK-norm)

    def __post_init__(self) -> None:
        check_bounds(self, "norms.")
        if not self.first and self.place != "pre":
            raise ConfigError(
                "Only a pre-norm model can do without its first norm; got norms.first=False with "
                f"place={self.place!r}."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Dropout:
    """Dropout rates while training."""

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
    """The output layers on top of the last hidden states."""

    tied: bool = True  # the output matrix is the embedding
    bias: bool = False  # one number per token, added to the logits
    scale: float = 1.0  # of the hidden states, before the output matrix
    masked_tokens: bool = True  # an encoder predicts masked tokens
    head_bias: bool = True  # in the dense layer and the norm with which it does
    classes: tuple[str, ...] = ()  # an encoder classifies texts into these
    pooling: Pooling = "mean"  # an encoder embeds a text: mean of all tokens, or the first

    def __post_init__(self) -> None:
        check_bounds(self, "output.")


_NESTED = {"positions": Positions, "norms": Norms, "dropout": Dropout, "output": Output}


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """A Transformer of one of three families.

    >>> Config(family="decoder", vocab_size=11, dim=8, n_layers=2, n_heads=2, max_len=16).hidden_dim
    32

    A size left out is derived at construction: n_kv_heads = n_heads, head_dim = dim / n_heads and
    hidden_dim = 4 · dim.
    """

    family: Family
    vocab_size: Count
    dim: Count
    n_layers: Layers
    n_heads: Count
    max_len: Count
    n_kv_heads: DerivedCount = _DERIVED
    head_dim: DerivedCount = _DERIVED
    hidden_dim: DerivedCount = _DERIVED
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
    # How many tokens one attends to, its own included: those before it in a decoder, as many
    # before as after it in an encoder. The encoder of an encoder-decoder has none.
    window: Count | None = None
    global_layers: tuple[Whole, ...] = ()  # layers that attend to all, despite the window
    experts: Experts | None = None  # in the place of feed-forward networks
    latent: Latent | None = None  # latent attention in the place of self-attention
    patches: Patches | None = None  # of the images that a vision encoder reads

    def __post_init__(self) -> None:
        for name, kind in _NESTED.items():
            given = getattr(self, name)
            if not isinstance(given, kind):
                raise ConfigError(
                    f"{name} must be of the class {kind.__name__}; got {given!r}. "
                    f"Write {name}={kind.__name__}(…)."
                )
        check_bounds(self)
        if self.head_dim is _DERIVED and self.dim % self.n_heads:
            raise ConfigError(
                f"dim must be divisible by n_heads; got dim={self.dim}, n_heads={self.n_heads}. "
                "Use another n_heads, or set head_dim."
            )
        for name, size in self._default_sizes().items():
            if getattr(self, name) is _DERIVED:
                object.__setattr__(self, name, size)  # frozen, and not yet in anybody's hands
        if self.n_heads % self.n_kv_heads:
            raise ConfigError(
                f"n_heads must be a multiple of n_kv_heads; got n_heads={self.n_heads}, "
                f"n_kv_heads={self.n_kv_heads}."
            )
        if self.n_decoder_layers is not None and self.family != "encoder_decoder":
            raise ConfigError(
                f"n_decoder_layers is for family='encoder_decoder'; got family={self.family!r}."
            )
        self._check_window()
        self._check_latent()
        if self.positions.kind == "rotary":
            self.rotary()
        self._check_layer_numbers()
        self._check_patches()

    def _check_patches(self) -> None:
        if (self.patches is not None) != (self.family == "vision"):
            raise ConfigError(
                "patches belong to family='vision', which needs them; got "
                f"family={self.family!r}, patches={self.patches}."
            )
        if self.patches is None:
            return
        expected = self.patches.n_patches + 1
        if self.max_len != expected or self.vocab_size != 1:
            raise ConfigError(
                f"A vision encoder has max_len={expected}, its patches and the class vector, and "
                f"vocab_size=1; got max_len={self.max_len}, vocab_size={self.vocab_size}."
            )

    def _check_window(self) -> None:
        if self.window is not None and self.family == "vision":
            raise ConfigError(
                f"window is for models of text; got window={self.window} for family='vision'."
            )
        if self.window is not None and self.family == "encoder" and self.window % 2 == 0:
            raise ConfigError(
                "An encoder's window must be odd: as many tokens before as after, and its own; got "
                f"window={self.window}. Use {self.window - 1} or {self.window + 1}."
            )
        if self.positions.local_base is None:
            return
        if self.family == "encoder_decoder" or not self.global_layers:
            raise ConfigError(
                "positions.local_base is for encoders and decoders of which some layers have a "
                f"window and some are global; got family={self.family!r}, window={self.window}, "
                f"global_layers={self.global_layers}."
            )

    def _check_latent(self) -> None:
        if self.latent is None:
            return
        check_latent(self.head_dim, self.latent.rotary_dim)
        if self.positions.kind != "rotary":
            raise ConfigError(
                f"Latent attention needs rotary positions; got kind={self.positions.kind!r}."
            )
        if self.n_kv_heads != self.n_heads or self.norms.heads:
            raise ConfigError(
                "Latent attention has keys of its own for each head, without norms; got n_heads="
                f"{self.n_heads}, n_kv_heads={self.n_kv_heads}, norms.heads={self.norms.heads}."
            )

    def _check_layer_numbers(self) -> None:
        if self.global_layers and self.window is None:
            raise ConfigError(
                "global_layers are those without the window of the others; got global_layers="
                f"{self.global_layers} without a window."
            )
        dense = () if self.experts is None else self.experts.dense_layers
        for name, layers, n_layers in (
            ("experts.dense_layers", dense, max(self.n_layers, self.decoder_layers)),
            ("global_layers", self.global_layers, self.decoder_layers),
        ):
            if list(layers) != sorted(set(layers)) or any(i >= n_layers for i in layers):
                raise ConfigError(
                    f"{name} must be layers below {n_layers}, in order, each once; got {layers}."
                )

    def _derived_sizes(self) -> list[str]:
        return [name for name, size in self._default_sizes().items() if getattr(self, name) == size]

    def _default_sizes(self) -> dict[str, int]:
        return {
            "n_kv_heads": self.n_heads,
            "head_dim": self.dim // self.n_heads,
            "hidden_dim": 4 * self.dim,
        }

    @property
    def value_dim(self) -> int:
        """The width of a head's values: that of its keys, but for latent attention."""
        return self.head_dim if self.latent is None else self.latent.value_dim

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        """What a layer's cache keeps of a token: heads, and the widths of their two tensors."""
        if self.latent is not None:
            return 1, self.latent.kv_dim, self.latent.rotary_dim
        return self.n_kv_heads, self.head_dim, self.head_dim

    @property
    def decoder_layers(self) -> int:
        return self.n_layers if self.n_decoder_layers is None else self.n_decoder_layers

    def rotary(self, *, local: bool = False) -> Rotary:
        """The rotation of queries and keys, where positions are rotary; `local` in a window."""
        p = self.positions
        width = self.head_dim if self.latent is None else self.latent.rotary_dim
        base = p.base if p.local_base is None or not local else p.local_base
        return Rotary(width, base=base, layout=p.layout, scaling=p.scaling)

    def replace(self, **changes: Any) -> "Config":
        """A copy with these fields changed; sizes at their defaults are derived again.

        >>> config = Config(family="decoder", vocab_size=5, dim=8, n_layers=2, n_heads=2, max_len=4)
        >>> config.replace(dim=12).head_dim
        6
        """
        return replace(self, **(dict.fromkeys(self._derived_sizes(), _DERIVED) | changes))

    def as_dict(self, *, derived: bool = True) -> dict[str, Any]:
        """Plain values for JSON, which `from_dict` reads back.

        With derived=False, sizes at their defaults are left out and derived again by the reader.
        """
        left_out = () if derived else self._derived_sizes()
        return {name: value for name, value in as_plain(self).items() if name not in left_out}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Config":
        """Read a config that `as_dict` wrote; unknown and missing fields are reported."""
        return read_settings(cls, plain)
