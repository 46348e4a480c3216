"""Chapters, their pictures, the book, and the questions of the quiz.

The texts are data in course: chapters as Markdown, questions as TOML. Reading order: blocks
(Markdown to data), chapters, picture, bars, merges, choices, image_map, timeline, pictures and the
modules of single pictures (numbers, by name), questions and answers, references (what points
where). For the terminal: unicode_math, picture_terminal, terminal; for the book: mathml,
picture_html, html, book; for notebooks: markdown, notebook_cells, shown_picture, notebook
(Jupyter), cell_names and marimo_notebook. A round of the quiz: session. Imports generation, render
and what lies below them; never lab or practice, which it knows by name only.
"""

from glassformer.school.learn.chapters import Chapter, chapter_names, read_chapter, read_chapters
from glassformer.school.learn.questions import Question, read_questions, topics
from glassformer.school.learn.references import Known, unknown_references

__all__ = [
    "Chapter",
    "Known",
    "Question",
    "chapter_names",
    "read_chapter",
    "read_chapters",
    "read_questions",
    "topics",
    "unknown_references",
]
