"""Attention drawn on the image: pixels, and under them how much each patch receives."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from jaxtyping import Float
from rich.console import Group, RenderableType
from rich.text import Text
from torch import Tensor

from glassformer.render.marks import shade

_INK = "■"
_LEAST_INK = 0.5  # of a pixel that is drawn


@dataclass(frozen=True, eq=False)
class ImageMap:
    """An image of one channel and a share for each of its patches; the largest share is darkest."""

    pixels: Float[Tensor, "height width"]
    shares: Float[Tensor, "rows columns"]
    title: str = ""

    def cells(self) -> Iterator[list[tuple[float, str]]]:
        """Row by row: the share behind each pixel, between 0 and 1, and its ink."""
        side = self.pixels.shape[0] // self.shares.shape[0]
        behind = (self.shares / self.shares.max()).repeat_interleave(side, 0)
        behind = behind.repeat_interleave(side, 1)
        for shares, pixels in zip(behind.tolist(), self.pixels.tolist(), strict=True):
            yield [
                (round(share, 3), _INK if pixel >= _LEAST_INK else "")
                for share, pixel in zip(shares, pixels, strict=True)
            ]


def plain_image_map(picture: ImageMap) -> dict[str, Any]:
    """A matrix for the page, whose cells have a colour and, where there is ink, a sign."""
    rows = list(picture.cells())
    return {
        "kind": "matrix",
        "of": "weights",
        "title": picture.title,
        "rows": [],
        "columns": [],
        "shares": [[share for share, _ in row] for row in rows],
        "shown": [[ink for _, ink in row] for row in rows],
    }


def image_map_markup(picture: ImageMap) -> str:
    """A table for the book."""
    lines = "".join(
        "<tr>"
        + "".join(f'<td style="--share: {share:.3f}">{ink}</td>' for share, ink in row)
        + "</tr>"
        for row in picture.cells()
    )
    title = f'<div class="picture-title">{escape(picture.title)}</div>' if picture.title else ""
    return f'<div>{title}<table class="marks weights">{lines}</table></div>'


def draw_image_map(picture: ImageMap) -> RenderableType:
    """Two characters for each pixel: ink, or the shade of its patch."""
    drawn = Text(no_wrap=True)
    for row in picture.cells():
        for share, ink in row:
            if ink:
                drawn.append("██", style="bold")
            else:
                drawn.append(shade(0.7 * share) * 2, style="cyan")  # the fullest sign is ink
        drawn.append("\n")
    drawn.rstrip()
    return Group(Text(picture.title, style="bold"), drawn) if picture.title else drawn
