"""A language, and what it says for a key."""

import json
import os
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from glassformer.errors import ConfigError

CODES = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Language:
    """One of the languages that glassformer speaks.

    >>> Language("en").say("step.softmax")
    'softmax'
    >>> Language("zh").say("step.sum")
    '加权求和'
    """

    code: str

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ConfigError(
                f"The language must be en (English) or zh (中文); got {self.code!r}. "
                "Use --lang en or --lang zh, or set GLASSFORMER_LANG to one of them."
            )

    def say(self, key: str, **values: object) -> str:
        """The text under `key`, its {named} placeholders filled in.

        {lang} is what a command that the text names must be told to answer in this language.
        """
        found = _catalogue(self.code)[key]
        if "{lang}" in found:
            from glassformer.languages.choice import flag

            values["lang"] = flag(self, os.environ)
        return found.format(**values)


def text(key: str, lang: str, **values: object) -> str:
    """The text under `key` in one language, for a single use.

    >>> text("step.mask", "zh")
    '掩码'
    """
    return Language(lang).say(key, **values)


@cache
def _catalogue(code: str) -> dict[str, str]:
    return json.loads(files("glassformer.languages").joinpath(f"{code}.json").read_text("utf-8"))
