"""Learning by reading and answering: chapters, their pictures, the book, questions.

Texts are data: chapters/ holds Markdown in both languages, questions/ TOML. Reading order: blocks
(Markdown to data), chapters, picture and pictures with flows (numbers, by name), questions and
answers, references (what points where). For the terminal: formulas, picture_drawing, drawing; for
the book: mathematics, picture_markup, markup, book. Coming back to questions: repetition, session,
progress. Imports render and what lies below it; never lab or practice, which it knows by names.
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
