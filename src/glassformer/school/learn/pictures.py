"""The pictures of the chapters, by name, computed when they are shown."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.functional import (
    Causal,
    Mask,
    Padding,
    Prefix,
    RowArithmetic,
    attention_weights,
    sinusoidal,
)
from glassformer.languages import Language
from glassformer.school.learn.bars import BAR_PICTURES, Bars
from glassformer.school.learn.batching import draw_batching
from glassformer.school.learn.cache_sizes import CACHE_PICTURES
from glassformer.school.learn.expert_pictures import EXPERT_PICTURES
from glassformer.school.learn.flows import FLOWS
from glassformer.school.learn.isoflop import ISOFLOP_PICTURES
from glassformer.school.learn.memory_pictures import MEMORY_PICTURES
from glassformer.school.learn.merges import MERGE_PICTURES
from glassformer.school.learn.model_pictures import MODEL_PICTURES
from glassformer.school.learn.patching_pictures import PATCHING_PICTURES
from glassformer.school.learn.picture import Album, Matrix, Picture, Row, Steps
from glassformer.school.learn.preferences import draw_preferences
from glassformer.school.learn.rotations import ROTATION_PICTURES
from glassformer.school.learn.sentence_pictures import SENTENCE_PICTURES
from glassformer.school.learn.timeline import read_timelines
from glassformer.school.learn.vision_pictures import VISION_PICTURES

_CAT = ("The", "cat", "sat")
_SENTENCE = ("The", "cat", "sat", "on", "the", "mat")
_THREE = ("我", "爱", "你")


def draw(name: str, language: Language) -> Picture:
    """The numbers of a picture.

    >>> draw("causal", Language("en")).values.int().tolist()[0]
    [1, 0, 0, 0, 0, 0]
    """
    if name not in PICTURES:
        known = ", ".join(PICTURES)
        raise ConfigError(f"A picture is one of {known}; got {name!r}.")
    return PICTURES[name](language)


def _cat(language: Language) -> Picture:  # noqa: ARG001
    dots = torch.tensor([12.5, 30.8, 25.1], dtype=torch.float64)
    values = torch.tensor([[0.1, 0.0], [1.0, 0.2], [0.2, 1.0]], dtype=torch.float64)
    return Steps(RowArithmetic.of_dots(dots, scale=64**-0.5, v=values), _CAT)


def _peaks(language: Language) -> Picture:
    """The largest of eight weights, on average over random vectors."""
    draws = torch.Generator().manual_seed(0)
    plain, scaled = [], []
    for width in (4, 16, 64, 256, 1024):
        q = torch.randn(1000, 1, width, generator=draws)
        dots = (q * torch.randn(1000, 8, width, generator=draws)).sum(-1)
        for bars, scores in ((plain, dots), (scaled, dots / math.sqrt(width))):
            peak = float(scores.softmax(-1).amax(-1).mean())
            bars.append((str(width), peak, f"{peak:.2f}"))
    say = language.say
    return Row(
        (
            Bars(tuple(plain), say("learn.picture.unscaled"), full=1.0),
            Bars(tuple(scaled), say("learn.picture.scaled"), full=1.0),
        )
    )


def _three_words(language: Language) -> Picture:
    scores = torch.tensor([[10, 8, 5], [9, 12, 11], [4, 7, 9]], dtype=torch.float64)
    hidden = ~Causal().dense(3)[0, 0]
    masked = scores.masked_fill(hidden, -math.inf)
    say = language.say
    return Row(
        (
            Matrix("scores", scores, _THREE, _THREE, say("learn.picture.scores")),
            Matrix("scores", masked, _THREE, _THREE, say("learn.picture.masked")),
            Matrix("weights", masked.softmax(-1), _THREE, _THREE, say("learn.picture.weights")),
        )
    )


def _mask(mask: Mask, title: str = "", length: int = 6) -> Matrix:
    return Matrix("mask", mask.dense(length, batch=1)[0, 0], title=title)


def _masks(language: Language) -> Picture:
    say, padding = language.say, Padding([4])
    return Row(
        (
            _mask(Causal(), say("learn.picture.causal")),
            _mask(padding, say("learn.picture.padding")),
            _mask(Causal() & padding, say("learn.picture.both")),
        )
    )


def _families(language: Language) -> Picture:
    say = language.say
    return Row(
        (
            _mask(Padding([6]), say("learn.picture.encoder")),
            _mask(Causal(), say("learn.picture.decoder")),
            _mask(Causal() | Prefix(3), say("learn.picture.prefix")),
        )
    )


def _heads(language: Language) -> Picture:
    """Three heads that start at random: the same words, three ways to look."""
    draws = torch.Generator().manual_seed(4)
    q, k = torch.randn(2, 1, 3, len(_SENTENCE), 8, generator=draws).unbind(0)
    weights = attention_weights(q, k)[0]
    title = language.say
    return Row(
        tuple(
            Matrix("weights", head, _SENTENCE, (), title("learn.picture.head", n=n))
            for n, head in enumerate(weights)
        )
    )


def _averaged_heads(language: Language) -> Picture:
    """PyTorch's module as it starts: two heads, and the mean of both, which it returns."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        attend = nn.MultiheadAttention(16, 2, batch_first=True).eval()
        nn.init.normal_(attend.in_proj_weight, std=0.5)
        x = torch.randn(1, len(_SENTENCE), 16)
    with torch.no_grad():
        heads = attend(x, x, x, average_attn_weights=False)[1][0]
        mean = attend(x, x, x)[1][0]
    say = language.say
    titles = [say("learn.picture.head", n=n) for n in range(2)] + [say("learn.picture.mean")]
    shown = zip((*heads, mean), titles, strict=True)
    return Row(tuple(Matrix("weights", each, _SENTENCE, (), title) for each, title in shown))


def _previous(language: Language) -> Picture:  # noqa: ARG001
    """A head built by hand: the query of place i is the key of place i − 1."""
    places = torch.eye(len(_SENTENCE))
    q = 6.0 * places.roll(1, dims=0)
    q[0] = 6.0 * places[0]
    weights = attention_weights(q[None, None], places[None, None], mask=Causal(), scale=1.0)
    return Matrix("weights", weights[0, 0], _SENTENCE, _SENTENCE)


def _induction(language: Language) -> Picture:
    """Two heads built by hand, on texts that repeat: the second finds what followed last time."""
    texts = ("A B C D A B C D", "the cat sat the cat sat", "A A B A A B", "one two three four")
    return Album(tuple((text, _two_heads(text.split(), language)) for text in texts))


def _two_heads(names: Sequence[str], language: Language) -> Picture:
    words = sorted(set(names))
    x = torch.eye(len(words))[[words.index(name) for name in names]]
    places = torch.eye(len(names))
    previous = _attend(places.roll(1, dims=0), places)
    before = previous @ x
    before[0] = 0.0  # nothing precedes the first token
    titles = [language.say("learn.picture.previous"), language.say("learn.picture.induction")]
    shown = zip((previous, _attend(x, before)), titles, strict=True)
    return Row(tuple(Matrix("weights", each, tuple(names), (), title) for each, title in shown))


def _attend(q: Tensor, k: Tensor) -> Tensor:
    sharp = (30.0 * q)[None, None]  # nearly a hard choice
    return attention_weights(sharp, k[None, None], mask=Causal(), scale=1.0)[0, 0]


def _waves(language: Language) -> Picture:  # noqa: ARG001
    return Matrix("waves", sinusoidal(24, 32))


def _wave_products(language: Language) -> Picture:
    table = sinusoidal(41, 64)
    products = (table @ table[20]) / (table[20] @ table[20])
    say = language.say
    bars = (
        (f"{i - 20:+d}" if i != 20 else "0", float(products[i]), f"{products[i]:.2f}")
        for i in range(10, 31, 2)
    )
    return Bars(tuple(bars), say("learn.picture.distance"))


def _floor_division(language: Language) -> Picture:
    dots, say = torch.tensor([12.5, 30.8, 25.1], dtype=torch.float64), language.say
    return Row(
        tuple(
            Matrix("weights", scores.softmax(-1)[None], ("cat",), _CAT, say(key))
            for scores, key in (
                (dots / 8, "learn.picture.divided"),
                (dots // 8, "learn.picture.floored"),
            )
        )
    )


def _history(language: Language) -> Picture:
    return Album(tuple((each.title, each) for each in read_timelines(language)))


PICTURES: dict[str, Callable[[Language], Picture]] = {
    **BAR_PICTURES,
    "cat": _cat,
    "peaks": _peaks,
    "three-words": _three_words,
    "causal": lambda language: _mask(Causal()),  # noqa: ARG005
    "masks": _masks,
    "families": _families,
    "heads": _heads,
    "averaged": _averaged_heads,
    "previous": _previous,
    "induction": _induction,
    "waves": _waves,
    "wave-products": _wave_products,
    "floored": _floor_division,
    "batching": draw_batching,
    "preferences": draw_preferences,
    "history": _history,
    **FLOWS,
    **MERGE_PICTURES,
    **MODEL_PICTURES,
    **ROTATION_PICTURES,
    **CACHE_PICTURES,
    **EXPERT_PICTURES,
    **MEMORY_PICTURES,
    **ISOFLOP_PICTURES,
    **VISION_PICTURES,
    **PATCHING_PICTURES,
    **SENTENCE_PICTURES,
}
