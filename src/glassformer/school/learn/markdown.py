"""Blocks of a chapter as Markdown again, in the dialects of notebooks, with links between them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from glassformer.school.learn.blocks import (
    Block,
    Formula,
    Heading,
    Items,
    Line,
    Piece,
    Prose,
    Table,
    Verbatim,
)

_SPECIAL = re.compile(r"[\\`*_\[\]<>$]")


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where kinds of notebooks differ: their files, links between them, escapes, folded text."""

    suffix: str
    link: str  # to the notebook {name}
    folded: str  # {text} that is opened by a click on {title}
    escapes: Mapping[str, str] = field(default_factory=dict)  # where a backslash is not enough

    def escape(self, text: str) -> str:
        """Text in which nothing means more than itself."""
        return _SPECIAL.sub(lambda found: self.escapes.get(found[0], f"\\{found[0]}"), text)


JUPYTER = Dialect(
    suffix=".ipynb",
    link="{name}.ipynb",
    folded="<details><summary>{title}</summary>\n\n{text}\n\n</details>",
)
MARIMO = Dialect(
    suffix=".py",
    link="?file={name}.py",
    folded="/// details | {title}\n\n{text}\n\n///",
    escapes={"<": "&lt;", ">": "&gt;", "[": "&#91;", "]": "&#93;"},  # \\[ begins a formula
)


def block_markdown(block: Block, dialect: Dialect) -> str:
    """A block that is neither code nor a reference."""
    match block:
        case Heading(level, line):
            return f"{'#' * level} {line_markdown(line, dialect)}"
        case Prose(line):
            return line_markdown(line, dialect)
        case Items(lines, first):
            marks = ["-"] * len(lines) if first is None else _numbers(first, len(lines))
            pairs = zip(marks, lines, strict=True)
            return "\n".join(f"{mark} {line_markdown(line, dialect)}" for mark, line in pairs)
        case Table(head, rows):
            rule = f"|{'---|' * len(head)}"
            return "\n".join([_row(head, dialect), rule, *(_row(row, dialect) for row in rows)])
        case Formula(tex):
            return f"$$\n{tex.strip()}\n$$"
        case Verbatim(text):
            return f"```text\n{text}\n```"
    raise TypeError(f"no Markdown is known for {block!r}")


def line_markdown(line: Line, dialect: Dialect) -> str:
    r"""The pieces of a line.

    >>> from glassformer.school.learn.blocks import read_line
    >>> line_markdown(read_line("**2 * 3** is [not](05-masks.md) $x_1$"), JUPYTER)
    '**2 \\* 3** is [not](05-masks.ipynb) $x_1$'
    """
    return "".join(_piece(piece, dialect) for piece in line)


def _piece(piece: Piece, dialect: Dialect) -> str:
    text = dialect.escape(piece.text)
    match piece.kind:
        case "formula":
            return f"${piece.text}$"
        case "code":
            return f"`` {piece.text} ``" if "`" in piece.text else f"`{piece.text}`"
        case "strong":
            return f"**{text}**"
        case "emphasis":
            return f"*{text}*"
        case "link":
            target = piece.target
            if not piece.leaves_course:
                target = dialect.link.format(name=target.removesuffix(".md"))
            return f"[{text}]({target})"
    return text


def _row(cells: Sequence[Line], dialect: Dialect) -> str:
    shown = (line_markdown(cell, dialect).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(shown)} |"


def _numbers(first: int, n: int) -> list[str]:
    return [f"{number}." for number in range(first, first + n)]
