"""What preference tuning aims at: the reference, shifted towards what is preferred."""

import torch

from glassformer.languages import Language
from glassformer.school.learn.bars import Bars
from glassformer.school.learn.picture import Album, Picture, Row

REFERENCE = (0.4, 0.3, 0.2, 0.1)
REWARDS = (0.0, 1.0, 2.0, 0.5)
_BETAS = (0.1, 0.3, 1.0, 3.0, 10.0)


def tune_policy(beta: float) -> list[float]:
    """The reference times e^(reward / beta), normalized (Rafailov et al. 2023).

    >>> [round(p, 2) for p in tune_policy(1.0)]
    [0.14, 0.29, 0.52, 0.06]
    """
    reference = torch.tensor(REFERENCE, dtype=torch.float64)
    rewards = torch.tensor(REWARDS, dtype=torch.float64)
    return (reference.log() + rewards / beta).softmax(dim=-1).tolist()


def draw_preferences(language: Language) -> Picture:
    """The reference beside the tuned policy, for strong and weak ties to the reference."""
    say = language.say

    def bars(shares: list[float], title: str) -> Bars:
        named = zip("ABCD", REWARDS, shares, strict=True)
        return Bars(
            tuple(
                (f"{name} (r = {reward:g})", share, f"{share:.2f}") for name, reward, share in named
            ),
            title,
            full=1.0,
        )

    return Album(
        tuple(
            (
                f"β = {beta:g}",
                Row(
                    (
                        bars(list(REFERENCE), say("learn.picture.reference")),
                        bars(tune_policy(beta), say("learn.picture.tuned")),
                    )
                ),
            )
            for beta in _BETAS
        )
    )
