"""Chapters as pages: the same text, with figures, experiments and questions filled in as HTML."""

import re
from html import escape

from course_pages import title_of
from live_figures import SCRIPT, is_live, live_markup

from glassformer.cli.known_names import exercise_names, experiment_names
from glassformer.languages import Language
from glassformer.school.learn.blocks import REFERENCE, Reference, read_blocks
from glassformer.school.learn.chapters import chapter_file, chapter_names
from glassformer.school.learn.html import reference_markup
from glassformer.school.learn.picture_html import picture_markup
from glassformer.school.learn.pictures import draw
from glassformer.school.learn.references import TITLES, Known

_MATH = re.compile(r"^```math\n", re.MULTILINE)
_CHAPTER = re.compile('href="#([a-z-]+)"')  # in the book, chapters are anchors of one page
_LINE = re.compile(rf"^{REFERENCE.pattern}$", re.MULTILINE)
_COMMAND = re.compile(r"<code>glassformer (lab|practice) ([a-z0-9_-]+)</code>")


def chapter_page(markdown: str, language: Language) -> str:
    """A chapter's text for the site."""
    places = {name: chapter_file(name).replace(".md", ".html") for name in chapter_names()}
    known = Known(lab=experiment_names(), practice=exercise_names())

    def fill(found: re.Match[str]) -> str:
        (block,) = read_blocks(found[0])
        assert isinstance(block, Reference)
        html = _reference(block, known, language)
        html = _CHAPTER.sub(lambda link: f'href="{places[link[1]]}"', html)
        return f"```{{raw}} html\n{html}\n```"

    page = _LINE.sub(fill, _MATH.sub("```{math}\n", markdown))
    return f"{page}\n```{{raw}} html\n{SCRIPT}\n```\n" if 'class="live"' in page else page


def _reference(block: Reference, known: Known, language: Language) -> str:
    if block.kind in ("lab", "practice"):
        return _links(block, language)
    html = _COMMAND.sub(
        r'<a href="../\1/\2.html">\g<0></a>', reference_markup(block, known, language)
    )
    if block.kind == "picture" and is_live(picture := draw(block.names[0], language)):
        drawn = picture_markup(picture, language=language)
        html = html.replace(drawn, live_markup(picture, drawn, language))
    return html


def _links(block: Reference, language: Language) -> str:
    """Links to the pages of exercises or experiments, by their titles."""
    title = language.say(TITLES[block.kind])
    gap = "" if title.endswith("：") else " "
    links = language.say("list.comma").join(
        f'<a href="../{block.kind}/{name}.html">{escape(title_of(block.kind, name, language))}</a>'
        for name in block.names
    )
    return f'<p class="pointer">{escape(title)}{gap}{links}</p>'
