"""Fonts for figures: matplotlib draws an empty box for a character that no font has."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from glassformer.render.marks import visible_token

# Fonts with Chinese characters, on various systems.
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
# Names of their files: a font may be newer than matplotlib's font list.
_FILES = re.compile(
    "NotoSansCJK-Reg|SourceHanSans.*-Reg|wqy-|PingFang|Hiragino Sans GB|msyh|simhei"
)
_LATIN = "DejaVu Sans"  # included with matplotlib
_MOST_CHARACTERS = 20  # of a token along an axis


@cache
def font_families() -> list[str]:
    """The fonts to use: matplotlib's own and, if available, a Chinese one."""
    return [_LATIN, *(_installed_fonts() or _find_fonts())[:1]]


def _installed_fonts() -> list[str]:
    from matplotlib import font_manager

    there = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in _CHINESE if name in there]


def _find_fonts() -> list[str]:
    from matplotlib import font_manager

    for path in font_manager.findSystemFonts():
        if _FILES.match(Path(path).name):
            font_manager.fontManager.addfont(path)
    return _installed_fonts()


def add_fallback_fonts(svg: str) -> str:
    """Add fallback fonts to an SVG, so that any system can show its text, Chinese included."""
    own = ", ".join(f"'{name}'" for name in font_families())
    others = ", ".join(f"'{name}'" for name in _CHINESE if name not in font_families())
    return svg.replace(own, f"{own}, {others}, sans-serif")


def has_chinese() -> bool:
    """Whether a font with Chinese characters is available."""
    return len(font_families()) > 1


def make_drawable(tokens: Sequence[str], most: int = _MOST_CHARACTERS) -> list[str]:
    """Replace characters that no font has by their code points.

    Dollar signs are escaped: matplotlib would read a formula between two of them.
    """
    return [_short(token, most).replace("$", r"\$") for token in tokens]


def _short(token: str, most: int) -> str:
    text = "".join(map(_drawable_character, unicodedata.normalize("NFC", visible_token(token))))
    return text if len(text) <= most else f"{text[: most - 1]}…"


@cache
def _drawable_character(character: str) -> str:
    if any(font.get_char_index(ord(character)) for font in _fonts()):
        return character
    return f"U+{ord(character):04X}"


@cache
def _fonts() -> list[Any]:
    from matplotlib import font_manager

    return [font_manager.get_font(font_manager.findfont(name)) for name in font_families()]
