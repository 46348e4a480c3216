"""The encoder: reads a text in both directions, for understanding rather than writing."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.functional import Mask, Padding, Window
from glassformer.layers import TokenEmbedding
from glassformer.models.config import Config
from glassformer.models.output_heads import ClassificationHead, MaskedTokenHead
from glassformer.models.stack import Stack, token_positions
from glassformer.text import SpecialTokens, Tokenizer


class Encoder(nn.Module):
    """Tokens in, one vector for each of them out; `fill` scores what a masked token could be.

    >>> config = Config(family="encoder", vocab_size=11, dim=8, n_layers=2, n_heads=2, max_len=16)
    >>> Encoder(config)(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 8])
    """

    name: str | None = None  # what it was loaded as
    tokenizer: Tokenizer | None = None  # this and the next come with saved weights
    special = SpecialTokens()

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.family != "encoder":
            raise ConfigError(f"Encoder needs family='encoder'; got {config.family!r}.")
        self.config = config
        self.embedding = TokenEmbedding(
            config.vocab_size, config.dim, scaled=config.scaled_embedding
        )
        if config.n_token_types:
            self.token_types = TokenEmbedding(config.n_token_types, config.dim)
        self.encoder = Stack(config, config.n_layers, causal=False)
        if config.output.masked_tokens:
            self.head = MaskedTokenHead(config)
        if config.output.classes:
            self.classifier = ClassificationHead(
                config.dim, len(config.output.classes), dropout=config.dropout.residual
            )

    def forward(
        self,
        tokens: Int[Tensor, "B L"],
        *,
        mask: Mask | None = None,
        token_types: Int[Tensor, "B L"] | None = None,
        positions: Int[Tensor, " L"] | Int[Tensor, "B L"] | None = None,
    ) -> Float[Tensor, "B L C"]:
        """`mask` hides padding; `token_types` tells first from second text, all 0 unless given."""
        if positions is None:
            positions = token_positions(tokens, self.config, None)
        x = self.embedding(tokens)
        if self.config.n_token_types:
            types = torch.zeros_like(tokens) if token_types is None else token_types
            x = x + self.token_types(types)
        return self.encoder(x, positions=positions, **reading_masks(self.config, mask))

    def fill(self, hidden: Float[Tensor, "B L C"]) -> Float[Tensor, "B L V"]:
        """A score for every token at every place, from the encoder's vectors."""
        if not self.config.output.masked_tokens:
            raise ConfigError(
                "This encoder has no head for masked tokens (output.masked_tokens is False); "
                "load or train one that has."
            )
        return self.head(hidden, self.embedding.weight)

    def classify(self, hidden: Float[Tensor, "B L C"]) -> Float[Tensor, "B n"]:
        """A score for each of config.output.classes, from the first token's vector."""
        if not self.config.output.classes:
            raise ConfigError(
                "This encoder has no classes to tell apart (output.classes is empty); "
                "load or train one that has."
            )
        return self.classifier(hidden)

    def embed(
        self, tokens: Int[Tensor, "B L"], *, lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B C"]:
        """One vector of length 1 for each text: the mean of its tokens' vectors, or the first."""
        hidden = self(tokens, mask=None if lengths is None else Padding(lengths))
        if self.config.output.pooling == "first":
            return F.normalize(hidden[:, 0], dim=-1)
        if lengths is None:
            return F.normalize(hidden.mean(1), dim=-1)
        real = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        return F.normalize((hidden * real[..., None]).sum(1), dim=-1)


def reading_masks(config: Config, mask: Mask | None) -> dict[str, Mask | None]:
    """What the layers of an encoder may see: `mask`, and `global_mask` of those without a window.

    A window of 2n + 1 tokens reaches n to either side.
    """
    if config.window is None:
        return {"mask": mask, "global_mask": mask}
    near: Mask = Window(left=config.window // 2, right=config.window // 2)
    return {"mask": near if mask is None else near & mask, "global_mask": mask}
