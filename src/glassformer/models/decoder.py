"""The decoder: a language model that reads to the left and predicts the next token."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.functional import Causal, Mask, Window
from glassformer.functional.cache import GrowingCache, StaticCache
from glassformer.layers import TokenEmbedding
from glassformer.models.cache import ModelCache
from glassformer.models.config import Config
from glassformer.models.output_heads import NextTokenHead
from glassformer.models.stack import Stack, token_positions
from glassformer.text import SpecialTokens, Tokenizer


class Decoder(nn.Module):
    """Tokens in, a score for every possible next token out.

    >>> import torch
    >>> config = Config(family="decoder", vocab_size=11, dim=8, n_layers=2, n_heads=2, max_len=16)
    >>> Decoder(config)(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 11])
    """

    name: str | None = None  # what it was loaded as
    tokenizer: Tokenizer | None = None  # this and the next come with saved weights
    special = SpecialTokens()

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.family != "decoder":
            raise ConfigError(f"Decoder needs family='decoder'; got {config.family!r}.")
        self.config = config
        self.embedding = TokenEmbedding(
            config.vocab_size, config.dim, scaled=config.scaled_embedding
        )
        self.decoder = Stack(config, config.n_layers, causal=True)
        self.head = NextTokenHead(config)

    def forward(
        self,
        tokens: Int[Tensor, "B L"],
        *,
        mask: Mask | None = None,
        positions: Int[Tensor, " L"] | Int[Tensor, "B L"] | None = None,
        cache: ModelCache | None = None,
    ) -> Float[Tensor, "B L V"]:
        """`mask` hides more than the future does: padding, other documents."""
        x = self.hidden(tokens, mask=mask, positions=positions, cache=cache)
        return self.head(x, self.embedding.weight)

    def hidden(
        self,
        tokens: Int[Tensor, "B L"],
        *,
        mask: Mask | None = None,
        positions: Int[Tensor, " L"] | Int[Tensor, "B L"] | None = None,
        cache: ModelCache | None = None,
    ) -> Float[Tensor, "B L C"]:
        """The hidden states from which the head computes logits."""
        if positions is None:
            positions = token_positions(tokens, self.config, cache)
        return self.decoder(
            self.embedding(tokens),
            positions=positions,
            **causal_masks(self.config, mask, cache),
            cache=cache,
        )

    def new_cache(self, batch: int = 1, *, max_len: int | None = None) -> ModelCache:
        """A cache that grows, or with `max_len` one of fixed size, for compiled steps."""
        return new_cache(self.config, self.config.n_layers, self.embedding.weight, batch, max_len)


def causal_mask(mask: Mask | None, cache: ModelCache | None, window: int | None = None) -> Mask:
    """Nothing ahead, nothing that `mask` hides, nothing further back than the window.

    A cache of fixed size gives the position of its first query.
    """
    static = cache is not None and isinstance(cache.layers[0], StaticCache)
    offset = cache.length if static else None  # type: ignore[union-attr]
    causal: Mask = Causal(offset=offset)
    if window is not None:
        causal = causal & Window(left=window - 1, offset=offset)
    return causal if mask is None else causal & mask


def causal_masks(
    config: Config, mask: Mask | None, cache: ModelCache | None
) -> dict[str, Mask | None]:
    """What the layers of a decoder may see: `mask`, and `global_mask` of those without a window."""
    local = causal_mask(mask, cache, config.window)
    return {
        "mask": local,
        "global_mask": causal_mask(mask, cache) if config.global_layers else None,
    }


def new_cache(
    config: Config, n_layers: int, like: Tensor, batch: int, max_len: int | None
) -> ModelCache:
    """An empty cache with the dtype and the device of `like`."""
    if max_len is None:
        return ModelCache(n_layers, GrowingCache)
    n_heads, k_dim, v_dim = config.cache_shape
    return ModelCache(
        n_layers,
        lambda: StaticCache(
            batch,
            n_heads,
            max_len,
            k_dim,
            v_dim,
            dtype=like.dtype,
            device=like.device,
        ),
    )
