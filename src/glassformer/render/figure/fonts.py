"""What a picture's fonts can write: matplotlib draws an empty box for what they lack."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from glassformer.render.marks import shown

# Fonts with Chinese characters, on the systems that have them.
_CHINESE = (
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "Arial Unicode MS",
)
# How files with them are called: a font may be younger than matplotlib's list of fonts.
_FILES = re.compile(
    "NotoSansCJK-Reg|SourceHanSans.*-Reg|wqy-|PingFang|Hiragino Sans GB|msyh|simhei"
)
_LATIN = "DejaVu Sans"  # comes with matplotlib
_MOST_CHARACTERS = 20  # of a token along a side


@cache
def families() -> list[str]:
    """The fonts to write with: matplotlib's own, and a Chinese one if there is one."""
    return [_LATIN, *(_known() or _looked_up())[:1]]


def _known() -> list[str]:
    from matplotlib import font_manager

    there = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in _CHINESE if name in there]


def _looked_up() -> list[str]:
    from matplotlib import font_manager

    for path in font_manager.findSystemFonts():
        if _FILES.match(Path(path).name):
            font_manager.fontManager.addfont(path)
    return _known()


def with_fallbacks(svg: str) -> str:
    """An SVG whose text names a font that every reader's system has, Chinese ones included."""
    own = ", ".join(f"'{name}'" for name in families())
    others = ", ".join(f"'{name}'" for name in _CHINESE if name not in families())
    return svg.replace(own, f"{own}, {others}, sans-serif")


def has_chinese() -> bool:
    return len(families()) > 1


def drawable(tokens: Sequence[str], most: int = _MOST_CHARACTERS) -> list[str]:
    """Tokens in which characters that no font here has are written as their numbers.

    Dollars are escaped: between two of them matplotlib reads formulas.
    """
    return [_short(token, most).replace("$", r"\$") for token in tokens]


def _short(token: str, most: int) -> str:
    text = "".join(map(_drawable, unicodedata.normalize("NFC", shown(token))))
    return text if len(text) <= most else f"{text[: most - 1]}…"


@cache
def _drawable(character: str) -> str:
    if any(font.get_char_index(ord(character)) for font in _fonts()):
        return character
    return f"U+{ord(character):04X}"


@cache
def _fonts() -> list[Any]:
    from matplotlib import font_manager

    return [font_manager.get_font(font_manager.findfont(name)) for name in families()]
