"""The texts of exercises as data: Markdown of the plainest kind, for the terminal and for pages."""

import re
from typing import Literal, NamedTuple


class Passage(NamedTuple):
    """A paragraph, the items of a list, or lines of code that stay as they are."""

    kind: Literal["paragraph", "items", "code"]
    lines: tuple[str, ...]


def read_prose(text: str) -> list[Passage]:
    """The passages of a text, in order.

    >>> read_prose("Write it\\nhere.\\n\\n- one\\n- two")[0].lines
    ('Write it here.',)
    """
    found = []
    for block in re.split(r"\n\n+", text.strip()):
        if block.startswith("    "):
            found.append(Passage("code", tuple(block.splitlines())))
        elif block.startswith(("- ", "* ")):
            found.append(Passage("items", tuple(block.splitlines())))
        else:
            found.append(Passage("paragraph", (_join_lines(block),)))
    return found


def _join_lines(block: str) -> str:
    """Lines as one; Chinese needs no blank between them."""
    return re.sub(r"(?<=[\u3000-\u9fff\uff00-\uffef])\n|\n(?=[\u4e00-\u9fff])", "", block).replace(
        "\n", " "
    )
