"""How far and how finely RoPE rotates, with scalings and without: the picture of long texts."""

import math
from collections.abc import Callable

from glassformer.functional.positions.rotary import Rotary
from glassformer.functional.positions.rotary_scalings import (
    LinearScaling,
    NTKScaling,
    Scaling,
    YaRNScaling,
)
from glassformer.languages import Language
from glassformer.school.learn.bars import Bars
from glassformer.school.learn.picture import Album, Picture, Row

# The writer's: heads of width 64, trained on 512 tokens.
_WIDTH, _TRAINED, _FACTOR = 64, 512, 4
_PAIRS = (0, 4, 8, 12, 16, 20, 24, 28, 31)


def _reach(language: Language) -> Picture:
    """Turns by the end of a text, and the angle between neighbours, for pairs fast and slow."""
    say, long = language.say, _TRAINED * _FACTOR
    ways: tuple[tuple[str, int, Scaling | None], ...] = (
        ("learn.picture.rotation.trained", _TRAINED, None),
        ("learn.picture.rotation.unscaled", long, None),
        ("learn.picture.rotation.linear", long, LinearScaling(_FACTOR)),
        ("learn.picture.rotation.ntk", long, NTKScaling(_FACTOR)),
        ("learn.picture.rotation.yarn", long, YaRNScaling(_FACTOR, original_len=_TRAINED)),
    )
    return Album(
        tuple((say(key, n=f"{n:,}"), _rotations(n, scaling, language)) for key, n, scaling in ways)
    )


def _rotations(length: int, scaling: Scaling | None, language: Language) -> Picture:
    trained = Rotary(_WIDTH).frequencies()
    frequencies = Rotary(_WIDTH, scaling=scaling).frequencies()
    reach, steps = [], []
    for pair in _PAIRS:
        name = language.say("learn.picture.rotation.pair", n=pair)
        turns, seen = (
            float(rate[pair]) * n / (2 * math.pi)
            for rate, n in ((frequencies, length), (trained, _TRAINED))
        )
        # All angles of the circle occur within one turn: more of them are nothing new.
        reach.append((name, min(turns, 1.0), f"{_short(turns)} ({_short(seen)})"))
        degrees = math.degrees(float(frequencies[pair]))
        steps.append((name, degrees, f"{_short(degrees)}°"))
    say = language.say
    return Row(
        (
            Bars(tuple(reach), say("learn.picture.rotation.turns"), full=1.0),
            Bars(tuple(steps), say("learn.picture.rotation.step"), full=math.degrees(1.0)),
        )
    )


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"


ROTATION_PICTURES: dict[str, Callable[[Language], Picture]] = {"rope-reach": _reach}
