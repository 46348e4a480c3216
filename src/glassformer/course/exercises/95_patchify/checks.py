"""Images that are not square, with several channels, so that no mix-up of axes hides."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, C, P, rows, columns = draw.sizes(5, 2, 6)
    return {"images": draw.normal(B, C, rows * P, columns * P), "P": P}


def cut(m: Any, images: Tensor, P: int) -> Any:
    return m.patchify(images, P)


def join(m: Any, patches: Tensor, P: int, height: int, width: int) -> Any:
    return m.unpatchify(patches, P, height, width)


def there_and_back(m: Any, images: Tensor, P: int) -> Any:
    return m.unpatchify(m.patchify(images, P), P, *images.shape[2:])


def cases(draw: Draw) -> Iterator[Case]:
    numbered = torch.arange(24.0, dtype=torch.float64).reshape(1, 1, 4, 6)
    yield Case("squares", cut, {"images": numbered, "P": 2}, ("patches",))
    yield Case("channels", cut, inputs(draw), ("patches",))
    yield from battery(draw, inputs, cut, names=("patches",), variants=("strided", "gradient"))
    B, C, P, rows, columns = draw.sizes(5, 2, 6)
    patches = {"patches": draw.normal(B, rows * columns, C * P * P), "P": P}
    size = {"height": rows * P, "width": columns * P}
    yield Case("back", join, {**patches, **size}, ("image",))
    yield Case("round", there_and_back, inputs(draw), ("image",))
