"""A chapter as data: Markdown becomes blocks, which the terminal, the book and others draw."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

from glassformer.errors import ConfigError
from glassformer.school.learn.unicode_math import to_unicode

REFERENCE = re.compile(r"\{\{(\w+) ([^|}]+?)(?: \| ([^}]+))?\}\}")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words of a line: plain, or of a kind of their own."""

    text: str
    kind: str = "plain"  # strong, emphasis, code, formula, link
    target: str = ""  # of a link

    @property
    def leaves_course(self) -> bool:
        """Whether it is a link to a page on the web, rather than to another chapter."""
        return self.target.startswith("https://")


Line = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    line: Line


@dataclass(frozen=True, slots=True)
class Prose:
    line: Line


@dataclass(frozen=True, slots=True)
class Items:
    """A list; where it is numbered, with the number of its first line."""

    lines: tuple[Line, ...]
    first: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    head: tuple[Line, ...]
    rows: tuple[tuple[Line, ...], ...]


@dataclass(frozen=True, slots=True)
class Formula:
    """TeX on lines of its own (display math)."""

    tex: str


@dataclass(frozen=True, slots=True)
class Snippet:
    """Python that runs, and what it prints."""

    code: str
    output: str


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Text to be shown as it is: a command, a drawing."""

    text: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A line such as {{lab scale}}: something that lives elsewhere, by its kind and names.

    >>> read_blocks("{{practice split_heads merge_heads}}")
    (Reference(kind='practice', names=('split_heads', 'merge_heads'), caption=''),)
    """

    kind: str
    names: tuple[str, ...]
    caption: str = ""


Block = Heading | Prose | Items | Table | Formula | Snippet | Verbatim | Reference


def read_blocks(markdown: str) -> tuple[Block, ...]:
    """The blocks of a Markdown text, in order.

    >>> read_blocks("# Masks")
    (Heading(level=1, line=(Piece(text='Masks', kind='plain', target=''),)),)
    """
    return tuple(_join_output(_read_tokens(_reader().parse(markdown))))


def read_line(markdown: str) -> Line:
    """The pieces of one line of Markdown.

    >>> [piece.kind for piece in read_line("divide by $d_k$, **always**")]
    ['plain', 'formula', 'plain', 'strong']
    """
    return _read_pieces(_reader().parseInline(markdown)[0].children or [])


def plain_text(line: Line) -> str:
    r"""The words alone, formulas as they can be read.

    >>> plain_text(read_line(r"divide by $\sqrt{d_k}$, **always**"))
    'divide by √dₖ, always'
    """
    return "".join(
        to_unicode(piece.text) if piece.kind == "formula" else piece.text for piece in line
    )


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.inline.ruler.before("escape", "formula", _parse_formula)
    return reader


def _parse_formula(state: StateInline, silent: bool) -> bool:
    """$…$ is TeX, in which neither _ nor \\ means what it means to Markdown."""
    if state.src[state.pos] != "$":
        return False
    end = state.src.find("$", state.pos + 1)
    if end < 0 or end == state.pos + 1:
        return False
    if not silent:
        state.push("formula", "", 0).content = state.src[state.pos + 1 : end]
    state.pos = end + 1
    return True


def _read_tokens(tokens: Sequence[Any]) -> Iterator[Block]:
    left = iter(tokens)
    for token in left:
        match token.type:
            case "heading_open":
                yield Heading(int(token.tag[1:]), _read_pieces(next(left).children))
            case "paragraph_open":
                yield _read_prose(next(left))
            case "fence":
                yield _read_fence(token.info.strip(), token.content)
            case "bullet_list_open" | "ordered_list_open":
                numbered = token.type.startswith("ordered")
                first = int(token.attrs.get("start", 1)) if numbered else None
                yield Items(tuple(_read_items(left, token)), first)
            case "table_open":
                head, *rows = _read_rows(left)
                yield Table(head, tuple(rows))
            case "heading_close" | "paragraph_close":
                pass
            case strange:
                raise ConfigError(
                    "A chapter is made of headings, paragraphs, lists, tables, fences and "
                    f"references; got {strange} in line {(token.map or [0])[0] + 1}."
                )


def _read_prose(token: Any) -> Block:
    found = REFERENCE.fullmatch(token.content.strip())
    if found:
        return Reference(found[1], tuple(found[2].split()), (found[3] or "").strip())
    return Prose(_read_pieces(token.children))


def _read_fence(kind: str, content: str) -> Block:
    content = content.rstrip("\n")
    if kind == "math":
        return Formula(content)
    return Snippet(content, "") if kind == "python" else Verbatim(content)


def _join_output(blocks: Iterator[Block]) -> Iterator[Block]:
    """A snippet and the text below it, which is what it prints, as one block."""
    waiting: Snippet | None = None
    for block in blocks:
        if waiting is not None and isinstance(block, Verbatim):
            yield Snippet(waiting.code, block.text)
            waiting = None
            continue
        if waiting is not None:
            yield waiting
        waiting = block if isinstance(block, Snippet) else None
        if waiting is None:
            yield block
    if waiting is not None:
        yield waiting


def _read_items(tokens: Iterator[Any], opening: Any) -> Iterator[Line]:
    """The items of a list, each of one paragraph."""
    closing = opening.type.replace("open", "close")
    for token in tokens:
        if token.type == closing:
            return
        if token.type == "inline":
            yield _read_pieces(token.children)


def _read_rows(tokens: Iterator[Any]) -> Iterator[tuple[Line, ...]]:
    row: list[Line] = []
    for token in tokens:
        if token.type == "inline":
            row.append(_read_pieces(token.children))
        elif token.type == "tr_close":
            yield tuple(row)
            row = []
        elif token.type == "table_close":
            return


def _read_pieces(tokens: Sequence[Any]) -> Line:
    pieces: list[Piece] = []
    kind, target = "plain", ""
    for token in tokens:
        match token.type:
            case "text" | "text_special":
                pieces.append(Piece(token.content, kind, target))
            case "softbreak" | "hardbreak":
                pieces.append(Piece("\n", kind, target))
            case "code_inline":
                pieces.append(Piece(token.content, "code"))
            case "formula":
                pieces.append(Piece(token.content, "formula"))
            case "strong_open":
                kind = "strong"
            case "em_open":
                kind = "emphasis"
            case "link_open":
                kind, target = "link", str(token.attrs["href"])
            case "strong_close" | "em_close" | "link_close":
                kind, target = "plain", ""
            case strange:
                raise ConfigError(
                    "A line is made of words, **strong**, *emphasis*, `code`, $formulas$ and "
                    f"[links](…); got {strange}."
                )
    return _join_lines(pieces)


def _join_lines(pieces: list[Piece]) -> Line:
    """Lines that were broken to be written, joined: by a blank, but not between Chinese signs."""
    found: list[Piece] = []
    for i, piece in enumerate(pieces):
        text = piece.text
        if text == "\n":
            before = found[-1].text[-1:] if found else ""
            after = pieces[i + 1].text[:1] if i + 1 < len(pieces) else ""
            text = "" if _is_wide(before) or _is_wide(after) else " "
        if text and found and (found[-1].kind, found[-1].target) == (piece.kind, piece.target):
            found[-1] = Piece(found[-1].text + text, piece.kind, piece.target)
        elif text:
            found.append(Piece(text, piece.kind, piece.target))
    return tuple(found)


def _is_wide(sign: str) -> bool:
    return "\u2e80" <= sign <= "\u9fff" or "\uff00" <= sign <= "\uffef"
