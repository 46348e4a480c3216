"""Rankings with and without ties; the right documents lie anywhere."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw


def draw_scores(draw: Draw) -> dict[str, Any]:
    Q, N = draw.size(7, 9), draw.size(11, 14)
    right = draw.integers(0, N, Q)
    scores = draw.normal(Q, N)
    scores[range(Q), right] += 1.0  # better than chance, and not perfect
    return {"scores": scores, "right": right}


def draw_ties(draw: Draw) -> dict[str, Any]:
    given = draw_scores(draw)
    return given | {"scores": given["scores"].round()}


def call_ranks(m: Any, scores: Tensor, right: Tensor) -> Any:
    return [int(rank) for rank in m.ranks(scores, right)]


def call_recall(m: Any, scores: Tensor, right: Tensor) -> Any:
    return tuple(float(m.recall_at_k(scores, right, k)) for k in (1, 3, 5))


def call_reciprocal(m: Any, scores: Tensor, right: Tensor) -> Any:
    return float(m.mean_reciprocal_rank(scores, right))


def cases(draw: Draw) -> Iterator[Case]:
    recalls = ("recall@1", "recall@3", "recall@5")
    for _ in range(2):
        yield Case("ranks", call_ranks, draw_scores(draw), ("ranks",))
    for _ in range(2):
        yield Case("recall", call_recall, draw_scores(draw), recalls)
        yield Case("reciprocal", call_reciprocal, draw_scores(draw), ("MRR",))
    for _ in range(3):  # one wrong rank alone looks like a factor
        yield Case("ties", call_ranks, draw_ties(draw), ("ranks",))
    yield Case("ties", call_recall, draw_ties(draw), recalls)
