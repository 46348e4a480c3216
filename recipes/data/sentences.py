"""How sentences are written: one form for each sign, so that nothing is learned twice.

              as it comes              as we write it
    English   That’s it                That's it
    French    Salut!  J’ai «tout»      Salut !  J'ai « tout »
    Chinese   你懂嗎 ?  他說：「好.」     你懂吗？他说：“好。”

Chinese becomes simplified by OpenCC (character by character; words of Taiwan stay what they are).
"""

import re
import unicodedata
from functools import cache
from typing import Any

from glassformer.errors import ConfigError
from glassformer.installation import install_command

_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))
_LATIN = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "…": "...", "。": ".", "С": "C"})
_MARKS = {"﹐": "，", "「": "“", "」": "”", "『": "‘", "』": "’", "(": "（", ")": "）"}
_CHINESE = str.maketrans({**_MARKS, "妳": "你", "牠": "它"})
_WIDE = dict(zip(",?!:;", "，？！：；", strict=True))
# What OpenCC leaves: the particle 着 is written 著 in Taiwan, and 著 is also a word of its own.
_PARTICLE = re.compile("(?<![显名土原论巨专编卓昭])著(?![名作称者述书])")


def english(text: str) -> str:
    """An English sentence.

    >>> english("That’s\\u00a0 it.")
    "That's it."
    """
    return plain(text).translate(_LATIN)


def french(text: str) -> str:
    """A French sentence; a space goes before ? ! ; : and inside « ».

    >>> french("«Où?» J’y vais à 2:30 !")
    "« Où ? » J'y vais à 2:30 !"
    """
    text = plain(text).translate(_LATIN)
    text = re.sub(r"(?<=[^\s?!])([?!;])", r" \1", text)
    text = re.sub(r"(?<=\S)(»|:(?=\s|$))", r" \1", text)
    return re.sub(r"«(?=\S)", "« ", text)


def chinese(text: str) -> str:
    """A Chinese sentence in simplified characters and with full-width marks, without spaces.

    >>> chinese("我們 10:30 走, 好嗎?")
    '我们10:30走，好吗？'
    """
    text = _PARTICLE.sub("着", simplified(text)).translate(_CHINESE)
    text = "".join(_narrow(sign) for sign in text)
    # A mark between two Latin letters or digits belongs to them: 10:30, 3.4.
    text = re.sub(r"(?<![0-9A-Za-z])\s*[,?!:;]|\s*[,?!:;](?![0-9A-Za-z])", _widened, text)
    text = re.sub(r"(?<=[^\x00-\x7f])\.(?![0-9A-Za-z])|\s*\.$", "。", text)
    text = _curly(text)
    return re.sub(r"(?<=[^\x00-\x7f])\s+|\s+(?=[^\x00-\x7f])", "", text)


def simplified(text: str) -> str:
    """The same Chinese in simplified characters, its marks as they are.

    >>> simplified("漢字 ?")
    '汉字 ?'
    """
    return _converter().convert(plain(text))


def plain(text: str) -> str:
    """Composed letters, nothing invisible, single plain spaces.

    >>> plain(" e\\u0301te\\u0301\\u202f!")
    'été !'
    """
    return " ".join(unicodedata.normalize("NFC", text).translate(_INVISIBLE).split())


def plain_marks() -> dict[str, str]:
    """How English sentences write other marks, and what is invisible, which is left out.

    >>> plain_marks()["’"], plain_marks()["\\u00ad"]
    ("'", '')
    """
    marks = {chr(code): mark for code, mark in _LATIN.items() if not chr(code).isalpha()}
    return {chr(code): "" for code in _INVISIBLE} | marks


def likeness(text: str) -> str:
    """What two sentences share that differ in case, spaces and marks alone.

    >>> likeness("I'm OK!") == likeness("im  ok")
    True
    """
    return " ".join("".join(c for c in text.casefold() if c.isalnum() or c.isspace()).split())


def _narrow(sign: str) -> str:
    is_wide_letter = "\uff01" <= sign <= "\uff5e" and sign not in "，！？：；（）"
    return chr(ord(sign) - 0xFEE0) if is_wide_letter else sign


def _widened(found: re.Match[str]) -> str:
    return _WIDE[found[0].strip()]


def _curly(text: str) -> str:
    parts = text.split('"')
    if len(parts) % 2 == 0:  # one of them has no partner
        return text
    return parts[0] + "".join("“”"[i % 2] + part for i, part in enumerate(parts[1:]))


@cache
def _converter() -> Any:
    try:
        import opencc
    except ImportError:
        raise ConfigError(
            "Chinese must be brought to simplified characters by the package opencc; it is not "
            f"installed. Run: {install_command('recipes')}"
        ) from None
    return opencc.OpenCC("t2s")
