"""Scores of tokens, the highest first, as a table that can be read."""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from glassformer.analysis.lens import check_top
from glassformer.analysis.vocabulary import name_tokens


@dataclass(eq=False, frozen=True, kw_only=True)
class TokenScores:
    """The tokens that score highest, and where the token that was asked about is among all.

    >>> import torch
    >>> print(TokenScores.of("head 1 attends to", 2, torch.tensor([0.5, -1.0, 2.0]), 2, None))
    head 1 attends to 2, itself in place 1 of 3
        +2.000  2
        +0.500  0
    """

    title: str
    token: str
    tokens: Int[Tensor, " k"]
    scores: Float[Tensor, " k"]
    labels: list[str]
    rank: int  # of the token itself among all; 0 is the first
    n: int  # of all tokens
    notes: tuple[str, ...] = ()  # what was left out

    @classmethod
    def of(
        cls,
        title: str,
        token: int,
        scores: Float[Tensor, " V"],
        top: int,
        tokenizer: Any,
        notes: tuple[str, ...] = (),
    ) -> "TokenScores":
        check_top(top)
        best = scores.topk(min(top, len(scores)))
        names = name_tokens(tokenizer, [token, *best.indices.tolist()])
        return cls(
            title=title,
            token=names[0],
            tokens=best.indices.cpu(),
            scores=best.values.float().cpu(),
            labels=names[1:],
            rank=int((scores > scores[token]).sum()),
            n=len(scores),
            notes=notes,
        )

    def __str__(self) -> str:
        lines = [f"{self.title} {self.token}, itself in place {self.rank + 1} of {self.n}"]
        pairs = zip(self.scores.tolist(), self.labels, strict=True)
        lines += [f"  {score:+8.3f}  {label}" for score, label in pairs]
        return "\n".join([*lines, *(f"  ({note})" for note in self.notes)])

    __repr__ = __str__
