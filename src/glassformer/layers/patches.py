"""From an image to vectors: one for each patch, and one more that has no patch."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import ShapeError


class PatchEmbedding(nn.Module):
    """Cut an image into squares and project each of them (Dosovitskiy et al. 2021, eq. 1).

    A learned class vector comes first; it gathers what is known about the whole image. Patches
    follow row by row.

    >>> PatchEmbedding(12, image_size=10, patch_size=5)(torch.zeros(2, 3, 10, 10)).shape
    torch.Size([2, 5, 12])
    """

    def __init__(self, dim: int, *, image_size: int, patch_size: int, n_channels: int = 3) -> None:
        super().__init__()
        self.image_size, self.n_channels = image_size, n_channels
        # Patches do not overlap, so the convolution is a linear map of each.
        self.projection = nn.Conv2d(n_channels, dim, patch_size, stride=patch_size)
        self.class_vector = nn.Parameter(torch.empty(1, dim))
        nn.init.normal_(self.class_vector, std=0.02)

    def forward(self, images: Float[Tensor, "B n height width"]) -> Float[Tensor, "B L C"]:
        expected = (self.n_channels, self.image_size, self.image_size)
        if images.shape[1:] != expected:
            raise ShapeError(
                f"images must be (B, {', '.join(map(str, expected))}); got "
                f"{tuple(images.shape)}. Scale and crop them first."
            )
        patches = self.projection(images).flatten(2).transpose(1, 2)  # B n C
        first = self.class_vector.expand(len(images), 1, -1)
        return torch.cat([first.to(patches.dtype), patches], dim=1)
