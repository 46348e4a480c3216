"""Values of a config that put another part in the place of a usual one."""

from dataclasses import dataclass

from glassformer.errors import ConfigError
from glassformer.layers.experts import Gate, Normalization, check_routing
from glassformer.settings import Count, NonNegative, Positive, Whole, check_bounds


@dataclass(frozen=True, kw_only=True, slots=True)
class Experts:
    """A mixture of experts in the place of the feed-forward network.

    Each token is read by `n_active` of `n_experts` networks of width `hidden_dim`, and by
    `n_shared` more that read every token. The layers in `dense_layers` keep one network, as wide
    as the config says.
    """

    n_experts: Count
    n_active: Count
    hidden_dim: Count
    n_shared: Whole = 0
    gate: Gate = "softmax"
    normalization: Normalization = "chosen"  # softmax after the top k; "all": before it
    scale: Positive = 1.0  # of the weighted sum
    n_groups: Count = 1
    n_active_groups: Count = 1  # whose experts can be chosen for a token
    selection_bias: bool = False  # added to what experts are ranked by
    dense_layers: tuple[Whole, ...] = ()
    balance: NonNegative = 0.01  # of the load-balancing loss while training

    def __post_init__(self) -> None:
        check_bounds(self, "experts.")
        check_routing(self.n_experts, self.n_active, self.n_groups, self.n_active_groups)


@dataclass(frozen=True, kw_only=True, slots=True)
class Latent:
    """Multi-head latent attention (MLA) in the place of self-attention.

    A decoder caches `kv_dim` + `rotary_dim` numbers for each token and layer, and none for each
    head. Of the config's head_dim, `rotary_dim` are rotated, and the others come from the latent.
    """

    kv_dim: Count  # width of the latent of keys and values
    rotary_dim: Count  # of the part of each key that all heads share
    value_dim: Count  # width of a head's values
    q_dim: Count | None = None  # width of a latent of queries; None: they have none

    def __post_init__(self) -> None:
        check_bounds(self, "latent.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Patches:
    """How a vision encoder cuts square images into square patches."""

    image_size: Count  # pixels of a side
    patch_size: Count
    n_channels: Count = 3

    def __post_init__(self) -> None:
        check_bounds(self, "patches.")
        if self.patch_size > self.image_size:
            raise ConfigError(
                "patches.patch_size must not exceed image_size; got patch_size="
                f"{self.patch_size}, image_size={self.image_size}."
            )

    @property
    def n_patches(self) -> int:
        """Whole patches of an image; what is left over at the right and below is not read."""
        return (self.image_size // self.patch_size) ** 2
