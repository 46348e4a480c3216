"""Chapters as plain values, for a page that draws them itself: text stays text, formulas MathML.

Pictures are sent as their numbers, so that a page can draw them in its own colours and let them be
changed. Code is split into coloured pieces; nothing but formulas is markup.
"""

from typing import Any

from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String

from glassformer.languages import Language
from glassformer.render.numbers import format_numbers, format_weights
from glassformer.school.learn.blocks import (
    Block,
    Formula,
    Heading,
    Items,
    Line,
    Prose,
    Reference,
    Snippet,
    Table,
    Verbatim,
    read_line,
)
from glassformer.school.learn.choices import Choices
from glassformer.school.learn.image_map import ImageMap, plain_image_map
from glassformer.school.learn.mathml import display_mathml, inline_mathml
from glassformer.school.learn.merges import Merges
from glassformer.school.learn.picture import Album, Bars, Flow, Matrix, Picture, Row, Steps
from glassformer.school.learn.pictures import draw
from glassformer.school.learn.timeline import Timeline, plain_timeline

_COLOURS = (
    (Comment, "comment"),
    (String, "string"),
    (Number, "number"),
    (Keyword, "keyword"),
    (Operator.Word, "keyword"),
    (Name.Builtin, "name"),
    (Name.Function, "name"),
    (Name.Class, "name"),
)


def plain_block(block: Block, language: Language) -> dict[str, Any]:
    """A block of a chapter as plain values; `kind` says which.

    >>> plain_block(Verbatim("a < b"), Language("en"))
    {'kind': 'verbatim', 'text': 'a < b'}
    """
    match block:
        case Heading(level, line):
            return {"kind": "heading", "level": level, "line": plain_line(line)}
        case Prose(line):
            return {"kind": "prose", "line": plain_line(line)}
        case Items(lines, first):
            return {"kind": "items", "lines": [plain_line(each) for each in lines], "first": first}
        case Table(head, rows):
            below = [[plain_line(cell) for cell in row] for row in rows]
            return {"kind": "table", "head": [plain_line(cell) for cell in head], "rows": below}
        case Formula(tex):
            return {"kind": "formula", "mathml": display_mathml(tex)}
        case Snippet(code, output):
            return {"kind": "code", "code": plain_code(code), "output": output}
        case Verbatim(text):
            return {"kind": "verbatim", "text": text}
        case Reference("picture", names, caption):
            return {
                "kind": "picture",
                "name": names[0],
                "picture": plain_picture(draw(names[0], language)),
                "caption": plain_line(read_line(caption)) if caption else [],
            }
        case Reference(kind, names):
            return {"kind": kind, "names": list(names)}


def plain_line(line: Line) -> list[dict[str, str]]:
    """The pieces of a line; a formula is MathML, a link the name of a chapter or an address.

    >>> plain_line(read_line("**one** [more](05-masks.md)"))[2]
    {'kind': 'link', 'text': 'more', 'chapter': 'masks'}
    """
    found: list[dict[str, str]] = []
    for piece in line:
        if piece.kind == "formula":
            found.append({"kind": "formula", "mathml": inline_mathml(piece.text)})
        elif piece.leaves_course:
            found.append({"kind": "link", "text": piece.text, "address": piece.target})
        elif piece.kind == "link":
            name = piece.target.removesuffix(".md").partition("-")[2]
            found.append({"kind": "link", "text": piece.text, "chapter": name})
        else:
            found.append({"kind": piece.kind, "text": piece.text})
    return found


def plain_code(code: str) -> list[tuple[str, str]]:
    """Python as pieces of one colour each; together they are the code, sign for sign.

    >>> plain_code("x = 1")
    [('', 'x = '), ('number', '1')]
    """
    found: list[tuple[str, str]] = []
    for token, text in PythonLexer(ensurenl=False, stripnl=False).get_tokens(code):
        colour = next((name for kind, name in _COLOURS if token in kind), "")
        if found and found[-1][0] == colour:
            found[-1] = (colour, found[-1][1] + text)
        else:
            found.append((colour, text))
    return found


def plain_picture(picture: Picture) -> dict[str, Any]:
    """The numbers of a picture, and how they are written."""
    match picture:
        case Row(pictures):
            return {"kind": "row", "pictures": [plain_picture(each) for each in pictures]}
        case Steps(row, tokens):
            assert row.v is not None
            return {
                "kind": "steps",
                "tokens": list(tokens),
                "dots": row.dots.tolist(),
                "scale": row.scale,
                "v": row.v.tolist(),
            }
        case Flow(stages, title):
            shown = [
                {
                    "operation": stage.operation,
                    "name": stage.name,
                    "shape": list(stage.shape),
                    "letters": stage.letters.split(),
                }
                for stage in stages
            ]
            return {"kind": "flow", "title": title, "stages": shown}
        case Bars(bars, title, full):
            most = full or max(length for _, length, _ in bars)
            rows = [{"name": n, "share": length / most, "shown": s} for n, length, s in bars]
            return {"kind": "bars", "title": title, "bars": rows}
        case Album(pictures):
            named = [{"name": name, "picture": plain_picture(each)} for name, each in pictures]
            return {"kind": "album", "pictures": named}
        case Choices(text, tokens, logits):
            return {
                "kind": "choices",
                "text": text,
                "tokens": list(tokens),
                "logits": list(logits),
            }
        case Merges(text, merges):
            return {"kind": "merges", "text": text, "most": len(merges)}
        case ImageMap():
            return plain_image_map(picture)
        case Timeline():
            return plain_timeline(picture)
        case Matrix():
            return _plain_matrix(picture)


def _plain_matrix(picture: Matrix) -> dict[str, Any]:
    """Cells have a share of the colour, 0 to 1, and a text where numbers are to be read."""
    values = picture.values.double()
    flat = values.flatten().tolist()
    shares, shown = [0.0] * len(flat), [""] * len(flat)
    if picture.kind == "scores":
        shown = format_numbers(flat)
    else:
        shares = [(cell + 1) / 2 for cell in flat] if picture.kind == "waves" else flat
        if picture.kind == "weights" and picture.columns:
            shown = format_weights(flat)
    n = values.shape[1]
    return {
        "kind": "matrix",
        "of": picture.kind,
        "title": picture.title,
        "rows": list(picture.rows),
        "columns": list(picture.columns),
        "shares": [shares[i : i + n] for i in range(0, len(flat), n)],
        "shown": [shown[i : i + n] for i in range(0, len(flat), n)],
    }
