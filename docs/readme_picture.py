"""The README's moving picture, drawn from what `glassformer look` prints: docs/pictures/look.svg.

    python docs/readme_picture.py

The command is typed, the translation appears, and the rows of its cross-attention follow one by
one. A test runs the command again and compares every line.
"""

import contextlib
import io
import os
from pathlib import Path
from unittest import mock
from xml.sax.saxutils import escape

from glassformer.cli import main

WORDS = ["look", "The cat sat on the mat.", "--to", "fr"]
PROMPT = '$ glassformer look "The cat sat on the mat." --to fr'
FILE = Path(__file__).parent / "pictures" / "look.svg"
SHADES = {"░": 0.12, "▒": 0.4, "▓": 0.7, "█": 1.0}
CHAR, LINE, MARGIN = 8.4, 20, 16  # of a 14-pixel monospaced font
STEP, HOLD = 0.25, 4.0  # seconds for a line, and for the whole picture at the end


def printed_lines() -> list[str]:
    """The translation and the head that tells most, as the program prints them."""
    settings = {"COLUMNS": "76", "GLASSFORMER_LANG": "en", "NO_COLOR": "1"}
    with mock.patch.dict(os.environ, settings), contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(WORDS) == 0
    lines = out.getvalue().splitlines()
    start = next(i for i, line in enumerate(lines) if " queries by " in line)
    end = next(i for i, line in enumerate(lines) if line.startswith("Weights:"))
    return [lines[0], "", *lines[start : end - 1]]


def draw(lines: list[str]) -> str:
    """An SVG that shows everything, then one line after another, again and again."""
    shown = [PROMPT, *lines]
    width = round(2 * MARGIN + CHAR * max(map(len, shown)))
    height = 2 * MARGIN + LINE * len(shown)
    total = STEP * len(shown) + HOLD
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(PROMPT)}</title>",
        f"<style>{_style(len(shown), total)}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#2e3440"/>',
    ]
    for number, line in enumerate(shown):
        y = MARGIN + LINE * number
        parts.append(f'<g style="animation-name:a{number}">{_draw_line(line, y)}</g>')
    return "\n".join([*parts, "</svg>", ""])


def _style(n: int, total: float) -> str:
    """Fonts and colours, and when each line appears; the picture begins as it ends, complete."""
    return (
        "text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d8dee9;white-space:pre}"
        "rect.cell{fill:#88c0d0}"
        f"g{{animation:a {total:.2f}s infinite;animation-delay:-{total - HOLD:.2f}s;opacity:0}}"
        "@media(prefers-reduced-motion:reduce){g{animation:none;opacity:1}}"
        + "".join(_appear(i, STEP * i / total) for i in range(n))
    )


def _appear(number: int, when: float) -> str:
    start = 100 * when
    return (
        f"@keyframes a{number}{{0%,{start:.2f}%{{opacity:0}}{start + 0.01:.2f}%,100%{{opacity:1}}}}"
    )


def _draw_line(line: str, y: int) -> str:
    """Text as text; shaded cells as rectangles, so that no font decides how dark they are."""
    cells = "".join(
        f'<rect class="cell" x="{MARGIN + CHAR * i:.1f}" y="{y + 2}" width="{CHAR}" '
        f'height="{LINE - 4}" opacity="{SHADES[mark]}"/>'
        for i, mark in enumerate(line)
        if mark in SHADES
    )
    words = "".join(" " if mark in SHADES else mark for mark in line).rstrip()
    places = " ".join(f"{MARGIN + CHAR * i:.1f}" for i in range(len(words)))
    text = f'<text x="{places}" y="{y + 15}">{escape(words)}</text>' if words else ""
    return cells + text


if __name__ == "__main__":
    FILE.write_text(draw(printed_lines()), "utf-8")
