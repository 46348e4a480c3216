"""Encoder and decoder: one reads a text, the other writes another, looking at it."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.functional import Mask
from glassformer.layers import TokenEmbedding
from glassformer.models.cache import ModelCache
from glassformer.models.config import Config
from glassformer.models.decoder import causal_masks, new_cache
from glassformer.models.output_heads import NextTokenHead
from glassformer.models.stack import Stack, token_positions
from glassformer.text import SpecialTokens, Tokenizer


class EncoderDecoder(nn.Module):
    """A text and the beginning of its translation in, scores for the next token out.

    >>> import torch
    >>> config = Config(
    ...     family="encoder_decoder", vocab_size=11, dim=8, n_layers=2, n_heads=2, max_len=16
    ... )
    >>> EncoderDecoder(config)(torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5]])).shape
    torch.Size([1, 2, 11])
    """

    name: str | None = None  # what it was loaded as
    tokenizer: Tokenizer | None = None  # this and the next come with saved weights
    special = SpecialTokens()

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.family != "encoder_decoder":
            raise ConfigError(
                f"EncoderDecoder needs family='encoder_decoder'; got {config.family!r}."
            )
        self.config = config
        self.embedding = TokenEmbedding(
            config.vocab_size, config.dim, scaled=config.scaled_embedding
        )
        self.encoder = Stack(config, config.n_layers, causal=False)
        self.decoder = Stack(config, config.decoder_layers, causal=True, cross=True)
        self.head = NextTokenHead(config)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        tokens: Int[Tensor, "B L"],
        *,
        source_mask: Mask | None = None,
        mask: Mask | None = None,
    ) -> Float[Tensor, "B L V"]:
        context = self.encode(source, mask=source_mask)
        return self.decode(tokens, context, context_mask=source_mask, mask=mask)

    def encode(
        self,
        source: Int[Tensor, "B S"],
        *,
        mask: Mask | None = None,
        positions: Int[Tensor, " S"] | Int[Tensor, "B S"] | None = None,
    ) -> Float[Tensor, "B S C"]:
        """The context for the decoder; `mask` hides padding."""
        if positions is None:
            positions = token_positions(source, self.config, None)
        return self.encoder(
            self.embedding(source), positions=positions, mask=mask, global_mask=mask
        )

    def decode(
        self,
        tokens: Int[Tensor, "B L"],
        context: Float[Tensor, "B S C"],
        *,
        context_mask: Mask | None = None,
        mask: Mask | None = None,
        positions: Int[Tensor, " L"] | Int[Tensor, "B L"] | None = None,
        cache: ModelCache | None = None,
    ) -> Float[Tensor, "B L V"]:
        """Scores for the next token; with a cache, the context's keys are computed once."""
        x = self.hidden(
            tokens, context, context_mask=context_mask, mask=mask, positions=positions, cache=cache
        )
        return self.head(x, self.embedding.weight)

    def hidden(
        self,
        tokens: Int[Tensor, "B L"],
        context: Float[Tensor, "B S C"],
        *,
        context_mask: Mask | None = None,
        mask: Mask | None = None,
        positions: Int[Tensor, " L"] | Int[Tensor, "B L"] | None = None,
        cache: ModelCache | None = None,
    ) -> Float[Tensor, "B L C"]:
        """The decoder's hidden states, from which the head computes logits."""
        if positions is None:
            positions = token_positions(tokens, self.config, cache)
        return self.decoder(
            self.embedding(tokens),
            positions=positions,
            **causal_masks(self.config, mask, cache),
            cache=cache,
            context=context,
            context_mask=context_mask,
        )

    def new_cache(self, batch: int = 1, *, max_len: int | None = None) -> ModelCache:
        """A cache that grows, or with `max_len` one of fixed size, for compiled steps."""
        return new_cache(
            self.config, self.config.decoder_layers, self.embedding.weight, batch, max_len
        )
