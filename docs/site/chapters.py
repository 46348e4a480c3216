"""Chapters as pages: the same text, with pictures, experiments and questions filled in as HTML."""

import re

from glassformer.cli.known_names import exercise_names, experiment_names
from glassformer.languages import Language
from glassformer.school.learn.blocks import REFERENCE, read_blocks
from glassformer.school.learn.chapters import chapter_names
from glassformer.school.learn.html import reference_markup
from glassformer.school.learn.references import Known

_MATH = re.compile(r"^```math\n", re.MULTILINE)
_CHAPTER = re.compile('href="#([a-z]+)"')  # in the book, chapters are anchors of one page
_LINE = re.compile(rf"^{REFERENCE.pattern}$", re.MULTILINE)


def chapter_page(markdown: str, language: Language) -> str:
    """A chapter's text for the site."""
    places = {name: f"{n:02}-{name}.html" for n, name in enumerate(chapter_names(), start=1)}
    known = Known(lab=experiment_names(), practice=exercise_names())

    def fill(found: re.Match[str]) -> str:
        (block,) = read_blocks(found[0])
        html = reference_markup(block, known, language)
        html = _CHAPTER.sub(lambda link: f'href="{places[link[1]]}"', html)
        return f"```{{raw}} html\n{html}\n```"

    return _LINE.sub(fill, _MATH.sub("```{math}\n", markdown))
