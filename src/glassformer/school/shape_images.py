"""Small images with one shape each, for a vision transformer that is trained in seconds."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

IMAGE, PATCH, SIDE = 16, 4, 4  # pixels of an image, a patch and a shape
N_PATCHES = (IMAGE // PATCH) ** 2
NOISE = 0.1  # its standard deviation; ink is 1
SHAPES = {
    "ring": ("####", "#..#", "#..#", "####"),
    "disc": (".##.", "####", "####", ".##."),
    "cross": ("#..#", ".##.", ".##.", "#..#"),
    "checks": ("##..", "##..", "..##", "..##"),
}
_PIXELS = torch.tensor(
    [[[pixel == "#" for pixel in row] for row in shape] for shape in SHAPES.values()]
).float()


class ShapeImages(NamedTuple):
    """Images, and for each: which shape, in which quadrant, and which patches it covers."""

    images: Float[Tensor, "B n height width"]
    shapes: Int[Tensor, " B"]
    quadrants: Int[Tensor, " B"]
    covered: Bool[Tensor, "B n_patches"]


def draw_shape_images(generator: torch.Generator, n: int, *, noise: float = NOISE) -> ShapeImages:
    """One shape of 4 × 4 pixels in a quadrant of 8 × 8, anywhere in it, and noise.

    >>> drawn = draw_shape_images(torch.Generator().manual_seed(0), 5)
    >>> drawn.images.shape, int(drawn.covered.sum(1).max()) <= 4
    (torch.Size([5, 1, 16, 16]), True)
    """
    shapes = torch.randint(len(SHAPES), (n,), generator=generator)
    quadrants = torch.randint(4, (n,), generator=generator)
    shift = torch.randint(IMAGE // 2 - SIDE + 1, (n, 2), generator=generator)
    top = quadrants // 2 * (IMAGE // 2) + shift[:, 0]
    left = quadrants % 2 * (IMAGE // 2) + shift[:, 1]
    side = torch.arange(SIDE)
    places = (torch.arange(n)[:, None, None], (top[:, None] + side)[:, :, None],
              (left[:, None] + side)[:, None, :])  # fmt: skip
    images, box = torch.zeros(n, IMAGE, IMAGE), torch.zeros(n, IMAGE, IMAGE)
    images[places], box[places] = _PIXELS[shapes], 1.0
    squares = box.unflatten(2, (-1, PATCH)).unflatten(1, (-1, PATCH))  # n rows P columns P
    covered = squares.amax((2, 4)).flatten(1) > 0
    images += noise * torch.randn(images.shape, generator=generator)
    return ShapeImages(images[:, None], shapes, quadrants, covered)
