"""Every chapter and question in one HTML file, which needs nothing else and no network."""

from html import escape
from importlib.resources import files
from pathlib import Path

from glassformer.languages import Language
from glassformer.school.learn.chapters import read_chapters
from glassformer.school.learn.html import chapter_markup, highlight_css, line_markup
from glassformer.school.learn.references import Known
from glassformer.storage import atomic_file

_GENERATOR = '<meta name="generator" content="glassformer">'  # only a book of ours is replaced
_LANGUAGES = {"en": "en", "zh": "zh-Hans"}


def write_book(path: Path, *, known: Known, language: Language) -> None:
    """The book in one language, written whole or not at all."""
    text = book_markup(known=known, language=language)
    with atomic_file(path, mark=_GENERATOR.encode()) as unfinished:
        unfinished.write_text(text, "utf-8")


def book_markup(*, known: Known, language: Language) -> str:
    """The whole file as text."""
    say, chapters = language.say, read_chapters(language)
    entries = "".join(
        f'<li><a href="#{chapter.name}">{line_markup(chapter.title)}</a></li>'
        for chapter in chapters
    )
    sections = "\n".join(
        chapter_markup(chapter, known=known, language=language) for chapter in chapters
    )
    style = files("glassformer.school.learn").joinpath("book.css").read_text("utf-8")
    return f"""<!doctype html>
<html lang="{_LANGUAGES[language.code]}">
<head>
<meta charset="utf-8">
{_GENERATOR}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(say("learn.book.title"))}</title>
<style>
{style}
{highlight_css()}
</style>
</head>
<body>
<nav aria-label="{escape(say("learn.book.contents"))}">
<p class="name">glassformer</p>
<ol>{entries}</ol>
</nav>
<main>
<header><h1>{escape(say("learn.book.title"))}</h1><p>{escape(say("learn.book.note"))}</p></header>
{sections}
</main>
</body>
</html>
"""
