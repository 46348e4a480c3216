"""The vision encoder: an image as a sequence of patches, read in both directions."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.layers.patches import PatchEmbedding
from glassformer.models.config import Config
from glassformer.models.stack import Stack
from glassformer.text import SpecialTokens, Tokenizer


class VisionEncoder(nn.Module):
    """An image in, one vector for the whole and one for each patch out (ViT).

    >>> from glassformer.models.variants import Patches
    >>> config = Config(
    ...     family="vision", vocab_size=1, dim=8, n_layers=2, n_heads=2, max_len=5,
    ...     patches=Patches(image_size=10, patch_size=5),
    ... )
    >>> VisionEncoder(config)(torch.zeros(2, 3, 10, 10)).shape
    torch.Size([2, 5, 8])
    """

    name: str | None = None  # what it was loaded as
    tokenizer: Tokenizer | None = None  # an image has none
    special = SpecialTokens()

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.family != "vision" or config.patches is None:
            raise ConfigError(f"VisionEncoder needs family='vision'; got {config.family!r}.")
        self.config = config
        self.embedding = PatchEmbedding(
            config.dim,
            image_size=config.patches.image_size,
            patch_size=config.patches.patch_size,
            n_channels=config.patches.n_channels,
        )
        self.encoder = Stack(config, config.n_layers, causal=False)
        if config.output.classes:
            self.classifier = nn.Linear(config.dim, len(config.output.classes))

    def forward(self, images: Float[Tensor, "B n height width"]) -> Float[Tensor, "B L C"]:
        x = self.embedding(images)
        return self.encoder(x, positions=torch.arange(x.shape[1], device=x.device))

    def classify(self, hidden: Float[Tensor, "B L C"]) -> Float[Tensor, "B n"]:
        """A score for each of config.output.classes, from the class vector."""
        if not self.config.output.classes:
            raise ConfigError(
                "This vision encoder has no classes to tell apart (output.classes is empty); "
                "load or train one that has."
            )
        return self.classifier(hidden[:, 0])
