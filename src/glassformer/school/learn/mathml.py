"""Formulas for a browser: TeX in, MathML out, which every browser draws by itself."""

import html
import re

from latex2mathml.converter import convert

from glassformer.school.learn.unicode_math import split_rows

_OUTER = re.compile(r"^<math[^>]*>(.*)</math>$", re.DOTALL)
_LETTERS = re.compile(r'(?:<mi mathvariant="normal">\w</mi>){2,}')


def inline_mathml(tex: str) -> str:
    """A formula inside of a line, as an element `math`."""
    return _wrap(_convert(tex), tex)


def display_mathml(tex: str) -> str:
    """A formula on lines of its own; where it has several, their signs stand below each other."""
    rows = split_rows(tex)
    if len(rows) == 1:
        return _wrap(_convert(" ".join(rows[0]), "block"), tex, ' display="block"')
    cells = (
        "".join(
            f'<mtd style="text-align: {"left" if i else "right"}">{_convert(cell, "block")}</mtd>'
            for i, cell in enumerate(row)
        )
        for row in rows
    )
    table = "".join(f"<mtr>{row}</mtr>" for row in cells)
    return _wrap(f'<mtable displaystyle="true">{table}</mtable>', tex, ' display="block"')


def _wrap(inner: str, tex: str, more: str = "") -> str:
    return f'<math{more} aria-label="{html.escape(" ".join(tex.split()))}">{inner}</math>'


def _convert(tex: str, display: str = "inline") -> str:
    """What latex2mathml makes, but for words, which it sets letter by letter, and ∞ and ⊤, which it
    takes for operators with gaps around them."""
    found = _OUTER.match(convert(tex, display=display))
    assert found is not None
    words = _LETTERS.sub(lambda run: f"<mi>{re.sub('<[^>]*>', '', run[0])}</mi>", found[1])
    for code, sign in (("&#x0221E;", "∞"), ("&#x022A4;", "⊤")):
        words = words.replace(f"<mo>{code}</mo>", f"<mi>{sign}</mi>")
    return words
