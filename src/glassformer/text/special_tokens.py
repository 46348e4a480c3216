"""Special tokens: beginning and end of a text, padding, mask."""

from dataclasses import dataclass
from typing import Any

from glassformer.errors import CheckpointError, ConfigError
from glassformer.settings import as_plain, read_settings


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecialTokens:
    """Token ids by role; None or empty if no token has it.

    >>> SpecialTokens(end=(2,), pad=0)
    SpecialTokens(begin=None, end=(2,), pad=0, mask=None, start=(), never=())
    """

    begin: int | None = None  # precedes a text
    end: tuple[int, ...] = ()  # any of these ends a text
    pad: int | None = None
    mask: int | None = None
    start: tuple[int, ...] = ()  # the first tokens of a translation
    never: tuple[int, ...] = ()  # tokens that are never generated

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; `from_dict` reads them back."""
        return as_plain(self)

    @classmethod
    def from_dict(cls, plain: Any, where: str = "special tokens") -> "SpecialTokens":
        try:
            found = read_settings(cls, plain, f"The part {where}")
        except ConfigError as error:
            raise CheckpointError(str(error)) from None
        ids = [getattr(found, n) for n in ONE] + [i for n in SEVERAL for i in getattr(found, n)]
        wrong = [i for i in ids if i is not None and not 0 <= i < 2**31]
        if wrong:
            raise CheckpointError(f"Tokens have ids from 0; {where} have {wrong[0]}.")
        return found


ONE = ("begin", "pad", "mask")
SEVERAL = ("end", "start", "never")
