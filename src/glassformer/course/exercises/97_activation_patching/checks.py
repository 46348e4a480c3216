"""Parts that react to one another, so that a patch has more than its direct effect."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw


def make_parts(matrices: Tensor) -> list[Callable[[Tensor], Tensor]]:
    return [lambda x, matrix=matrix: torch.tanh(x @ matrix) for matrix in matrices]


def run_plain(m: Any, matrices: Tensor, x: Tensor) -> Any:
    stream, added = m.run(make_parts(matrices), x, {})
    return stream, list(added)


def run_patched(m: Any, matrices: Tensor, x: Tensor, patch: Tensor, part: int) -> Any:
    stream, added = m.run(make_parts(matrices), x, {part: patch})
    return stream, list(added)


def find_effects(m: Any, matrices: Tensor, clean: Tensor, corrupt: Tensor, reader: Tensor) -> Any:
    parts = make_parts(matrices)
    effects = m.patching_effects(parts, clean, corrupt, lambda stream: (stream @ reader).sum())
    return [float(effect) for effect in effects]  # in whichever precision they were collected


def cases(draw: Draw) -> Iterator[Case]:
    for _ in range(2):
        N, L, C = draw.sizes(3, 3, 6)
        matrices, x = draw.normal(N, C, C), draw.normal(L, C)
        yield Case("plain", run_plain, {"matrices": matrices, "x": x}, ("stream", "added"))
        given = {"matrices": matrices, "x": x, "patch": draw.normal(L, C)}
        part = draw.size(0, N - 2)  # not the last: later ones must react
        yield Case("patched", run_patched, {**given, "part": part}, ("stream", "added"))
    for _ in range(3):
        N, L, C = draw.sizes(3, 3, 6)
        yield Case(
            "effects",
            find_effects,
            {
                "matrices": draw.normal(N, C, C),
                "clean": draw.normal(L, C),
                "corrupt": draw.normal(L, C),
                "reader": draw.normal(C),
            },
            ("effects",),
            1e-4,  # where clean and corrupt are close, a share of their distance is less exact
        )
