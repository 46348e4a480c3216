"""Pictures of a router: which experts the tokens of a sentence go to, and what does not fit."""

from collections.abc import Callable

import torch
from torch import Tensor

from glassformer.languages import Language
from glassformer.layers import Router, Routing
from glassformer.layers.experts import Normalization
from glassformer.school.learn.picture import Album, Matrix, Picture, Row

_SENTENCE = ("The", "cat", "sat", "on", "the", "mat")
_N, _DIM = 4, 8
_WAYS: tuple[tuple[str, int, Normalization], ...] = (
    ("learn.picture.expert.one", 1, "all"),
    ("learn.picture.expert.before", 2, "all"),
    ("learn.picture.expert.after", 2, "chosen"),
    ("learn.picture.expert.every", _N, "chosen"),
)


def _routing(language: Language) -> Picture:
    """One router at random, in four ways: what it prefers, what it decides, and the load."""
    say = language.say
    experts = tuple(str(n + 1) for n in range(_N))
    pages = []
    for key, k, normalization in _WAYS:
        found = route_sentence(k, normalization)
        decided = torch.zeros(len(_SENTENCE), _N).scatter(1, found.experts, found.weights)
        shares = found.experts.flatten().bincount(minlength=_N) / found.experts.numel()
        weights = torch.cat([decided, shares[None]])
        rows = (*_SENTENCE, say("learn.picture.expert.load"))
        preferred = Matrix(
            "weights", found.affinities, _SENTENCE, experts, say("learn.picture.expert.preferred")
        )
        chosen = Matrix("weights", weights, rows, experts, say("learn.picture.expert.weights"))
        pages.append((say(key), Row((preferred, chosen))))
    return Album(tuple(pages))


def route_sentence(k: int, normalization: Normalization) -> Routing:
    """What a router with random weights decides for six random vectors."""
    draws = torch.Generator().manual_seed(5)
    x, weight = torch.randn(len(_SENTENCE), _DIM, generator=draws), _draw_weight(draws)
    with torch.random.fork_rng(devices=[]):
        router = Router(_DIM, n_experts=_N, n_active=k, normalization=normalization)
    with torch.no_grad():
        router.weight.copy_(weight)
        return router(x)


def _draw_weight(draws: torch.Generator) -> Tensor:
    return 0.5 * torch.randn(_N, _DIM, generator=draws)


EXPERT_PICTURES: dict[str, Callable[[Language], Picture]] = {"routing": _routing}
