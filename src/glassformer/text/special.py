"""The tokens with a part to play: what begins a text, ends it, fills it up, hides a word."""

from dataclasses import asdict, dataclass
from typing import Any

from glassformer.errors import CheckpointError


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecialTokens:
    """Ids by role; a role that nobody has is None or empty.

    >>> SpecialTokens(end=(2,), pad=0)
    SpecialTokens(begin=None, end=(2,), pad=0, mask=None, start=(), never=())
    """

    begin: int | None = None  # stands before a text
    end: tuple[int, ...] = ()  # any of these ends one
    pad: int | None = None
    mask: int | None = None
    start: tuple[int, ...] = ()  # what a translation begins with
    never: tuple[int, ...] = ()  # what is never written

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; `from_dict` reads them back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "SpecialTokens":
        for name, value in plain.items():
            ids = isinstance(value, list | tuple) and all(_is_id(v) for v in value)
            expected = ids if name in ("end", "start", "never") else _is_id(value)
            if name not in cls.__slots__ or not expected:
                raise CheckpointError(f"special tokens cannot have {name}={value!r}.")
        several = {n: tuple(v) for n, v in plain.items() if isinstance(v, list)}
        return cls(**{**plain, **several})


def _is_id(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))
