"""What a fixed amount of compute buys: models of several sizes that cost the same to train."""

from collections.abc import Callable

from glassformer.languages import Language
from glassformer.school.learn.bars import Bars
from glassformer.school.learn.picture import Album, Picture

# L(N, D) = E + A / N^α + B / D^β, as Besiroglu et al. 2024 fit the runs of Hoffmann et al. 2022.
_A, _ALPHA, _B, _BETA = 482.01, 0.3478, 2085.43, 0.3658
_COMPUTES = (18, 20, 22, 24, 26)  # powers of ten
_FACTORS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16)
_UNITS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


def best_size(compute: float) -> float:
    """The number of parameters with the least loss for a compute of 6 N D operations.

    >>> round(best_size(5.76e23) / 1e9)
    72
    """
    ratio = _ALPHA * _A / (_BETA * _B)
    share = _BETA / (_ALPHA + _BETA)
    return ratio ** (1 / (_ALPHA + _BETA)) * (compute / 6) ** share


def _isoflop(language: Language) -> Picture:
    """The excess over the irreducible loss around the best size, by compute."""
    return Album(tuple((f"C = 10^{power}", _bars(10.0**power, language)) for power in _COMPUTES))


def _bars(compute: float, language: Language) -> Bars:
    best, bars = best_size(compute), []
    for factor in _FACTORS:
        size = best * factor
        tokens = compute / 6 / size
        excess = _A / size**_ALPHA + _B / tokens**_BETA
        name = f"{_format_count(size)}, {_format_count(tokens)}"
        bars.append((name, excess, f"{excess:.3f}"))
    return Bars(tuple(bars), language.say("learn.picture.isoflop"))


def _format_count(count: float) -> str:
    """Two digits and a unit.

    >>> _format_count(72.4e9), _format_count(1.33e12), _format_count(251.0)
    ('72B', '1.3T', '251')
    """
    for size, unit in _UNITS:
        if count >= size:
            shown = count / size
            return f"{shown:.1f}{unit}" if shown < 10 else f"{shown:.0f}{unit}"
    return f"{count:.0f}"


ISOFLOP_PICTURES: dict[str, Callable[[Language], Picture]] = {"isoflop": _isoflop}
