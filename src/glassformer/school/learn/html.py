"""Chapters and questions as HTML, for the book."""

from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from glassformer.languages import Language
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
from glassformer.school.learn.chapters import Chapter
from glassformer.school.learn.mathml import display_mathml, inline_mathml
from glassformer.school.learn.picture_html import picture_markup
from glassformer.school.learn.pictures import draw
from glassformer.school.learn.questions import Question, read_questions
from glassformer.school.learn.references import TITLES, Known, format_reference

_ELEMENTS = {"strong": "strong", "emphasis": "em", "code": "code"}


def chapter_markup(chapter: Chapter, *, known: Known, language: Language) -> str:
    """A chapter as a section with the anchor of its name."""
    title = f"<h1><span>{chapter.number}</span> {line_markup(chapter.title)}</h1>"
    body = "\n".join(_block(block, known, language) for block in chapter.blocks)
    return f'<section id="{chapter.name}">\n{title}\n{body}\n</section>'


def line_markup(line: Line) -> str:
    """The pieces of a line; links lead to other chapters of the same book, or to cited works.

    >>> line_markup(read_line("**one** [more](05-masks.md)"))
    '<strong>one</strong> <a href="#masks">more</a>'
    """
    parts = []
    for piece in line:
        if piece.kind == "formula":
            parts.append(inline_mathml(piece.text))
        elif piece.leaves_course:
            parts.append(f'<a href="{escape(piece.target)}">{escape(piece.text)}</a>')
        elif piece.kind == "link":
            name = piece.target.removesuffix(".md").partition("-")[2]
            parts.append(f'<a href="#{escape(name)}">{escape(piece.text)}</a>')
        elif piece.kind in _ELEMENTS:
            element = _ELEMENTS[piece.kind]
            parts.append(f"<{element}>{escape(piece.text)}</{element}>")
        else:
            parts.append(escape(piece.text))
    return "".join(parts)


def highlight_css() -> str:
    """The style sheet for code, in light and in dark."""
    light = HtmlFormatter(style="friendly").get_style_defs(".code")
    dark = HtmlFormatter(style="monokai").get_style_defs(".code")
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"


def _block(block: Block, known: Known, language: Language) -> str:
    match block:
        case Heading(level, line):
            return f"<h{level}>{line_markup(line)}</h{level}>"
        case Prose(line):
            return f"<p>{line_markup(line)}</p>"
        case Items(lines, first):
            items = "".join(f"<li>{line_markup(line)}</li>" for line in lines)
            return f"<ul>{items}</ul>" if first is None else f'<ol start="{first}">{items}</ol>'
        case Table(head, rows):
            top = "".join(f"<th>{line_markup(cell)}</th>" for cell in head)
            below = "".join(
                f"<tr>{''.join(f'<td>{line_markup(cell)}</td>' for cell in row)}</tr>"
                for row in rows
            )
            return f'<div class="wide"><table><tr>{top}</tr>{below}</table></div>'
        case Formula(tex):
            return f'<div class="formula">{display_mathml(tex)}</div>'
        case Snippet(code, output):
            return f'<div class="snippet">{code_markup(code)}{_output(output)}</div>'
        case Verbatim(text):
            return f"<pre>{escape(text)}</pre>"
        case Reference():
            return reference_markup(block, known, language)


def code_markup(code: str) -> str:
    """Python in colours."""
    return highlight(code, PythonLexer(), HtmlFormatter(cssclass="code", wrapcode=True)).strip()


def _output(output: str) -> str:
    return f'<pre class="output">{escape(output)}</pre>' if output else ""


def reference_markup(block: Reference, known: Known, language: Language) -> str:
    """A picture, questions, or a pointer to an experiment, an exercise, a chapter or code."""
    if block.kind == "picture":
        picture = picture_markup(draw(block.names[0], language), language=language)
        caption = line_markup(read_line(block.caption)) if block.caption else ""
        caption = f"<figcaption>{caption}</figcaption>" if caption else ""
        return f"<figure>{picture}{caption}</figure>"
    if block.kind == "quiz":
        by_name = {question.name: question for question in read_questions()}
        asked = "".join(_question(by_name[name], known, language) for name in block.names)
        return f'<div class="questions">{asked}</div>'
    return _pointer(block.kind, block.names, known, language)


def _question(question: Question, known: Known, language: Language) -> str:
    code = language.code
    short, full = (line_markup(read_line(t[code])) for t in (question.short, question.full))
    proofs = "".join(_pointer(kind, (name,), known, language) for kind, name in question.proofs)
    snippet = code_markup(question.code.strip()) if question.code else ""
    return (
        f"<details><summary>{line_markup(read_line(question.ask[code]))}</summary>"
        f"<p><strong>{short}</strong></p><p>{full}</p>{snippet}{proofs}</details>"
    )


def _pointer(kind: str, names: tuple[str, ...], known: Known, language: Language) -> str:
    title = language.say(TITLES[kind])
    gap = "" if title.endswith("：") else " "
    if kind == "chapter":
        shown = ", ".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in names)
    else:
        shown = escape(format_reference(kind, names, known, language))
        if all(known.has(kind, name) for name in names):
            shown = f"<code>{shown}</code>"
    return f'<p class="pointer">{escape(title)}{gap}{shown}</p>'
