"""Numbers of heads, positions, keys or sequences: one, several, or a slice.

As text: `3`, `0 2 5`, `4:8`, `::2`. Several are a set: their order does not matter.
"""

import re
from collections.abc import Collection
from typing import Any

from glassformer.errors import InterventionError

Numbers = int | slice | range | Collection[int]

_LARGEST = 2**31 - 1
_SEVERAL = re.compile(r"-?[0-9]{1,19}( +-?[0-9]{1,19})*")
_SLICE = re.compile(r"(-?[0-9]{1,19})?:(-?[0-9]{1,19})?(?::(-?[0-9]{1,19}))?")


def resolve_numbers(numbers: Numbers | None, n: int, what: str) -> list[int]:
    """Numbers from 0 to n − 1; negative ones count from the end, None is all.

    >>> resolve_numbers([-1, 2], 5, "head")
    [2, 4]
    """
    if numbers is None:
        return list(range(n))
    check_numbers(numbers, what)
    if isinstance(numbers, slice):
        return list(range(*numbers.indices(n)))
    chosen = [numbers] if isinstance(numbers, int) else list(numbers)
    if wrong := [i for i in chosen if not -n <= i < n]:
        raise InterventionError(f"{what} must be 0 … {n - 1}; got {wrong[0]}.")
    return sorted({i % n for i in chosen})


def check_numbers(numbers: Any, what: str) -> None:
    """Reject what is neither whole numbers nor a slice of them; None is all."""
    if numbers is None:
        return
    if isinstance(numbers, slice):
        given = [n for n in (numbers.start, numbers.stop, numbers.step) if n is not None]
        is_wrong = numbers.step == 0
    else:
        is_several = isinstance(numbers, Collection) and not isinstance(numbers, str | dict)
        given = list(numbers) if is_several else [numbers]
        is_wrong = False
    if is_wrong or not all(type(n) is int and abs(n) <= _LARGEST for n in given):
        raise InterventionError(
            f"{what} must be whole numbers, or a slice of them; got {repr(numbers)[:60]}."
        )


def format_numbers(numbers: Numbers) -> str:
    """Numbers as they are written.

    >>> format_numbers([2, 5]), format_numbers(slice(3, None)), format_numbers(range(4, 7))
    ('2 5', '3:', '4 5 6')
    """
    if isinstance(numbers, slice):
        ends = ["" if n is None else str(n) for n in (numbers.start, numbers.stop)]
        return ":".join(ends if numbers.step is None else [*ends, str(numbers.step)])
    chosen = as_tuple(numbers)
    return " ".join(map(str, chosen)) if chosen else "0:0"  # none at all


def parse_numbers(text: str) -> Numbers | None:
    """The numbers that a text describes; None where it describes none."""
    if found := _SLICE.fullmatch(text):
        parts = [None if n is None else int(n) for n in found.groups()]
        return None if parts[2] == 0 else slice(*parts)
    if not _SEVERAL.fullmatch(text):
        return None
    chosen = [int(n) for n in text.split()]
    return chosen[0] if len(chosen) == 1 else chosen


def as_tuple(numbers: Numbers | None) -> Any:
    """A tuple that is equal for equal numbers: 2 and [2], [0, 2] and (2, 0)."""
    if numbers is None:
        return None
    if isinstance(numbers, slice):
        whole = numbers.start, numbers.stop, numbers.step
        return () if whole == (0, 0, None) else ("slice", *whole)
    return (numbers,) if isinstance(numbers, int) else tuple(sorted(set(numbers)))


def overlap(a: Any, b: Any) -> bool:
    """Whether two choices may have a number in common, however many there are."""
    if a is None or b is None or isinstance(a, slice) or isinstance(b, slice):
        return True
    first, second = ({x} if isinstance(x, int) else set(x) for x in (a, b))
    return bool(first & second) or any(i < 0 for i in first | second)
