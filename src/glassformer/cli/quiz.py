"""`glassformer quiz`: questions that come back when they are due."""

import json
import sys
import unicodedata
from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from glassformer.cli.completion import complete_chapter
from glassformer.cli.help import Command
from glassformer.cli.learn import known_names, open_progress, save_progress
from glassformer.cli.terminal import terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.school.learn import Question
    from glassformer.school.progress import ProgressStore

_MOST = 10  # questions of a round
_GRADES = {  # what may be typed, in the order of 1 … 4, and how it reads
    "again": "quiz.grade.again",
    "hard": "quiz.grade.hard",
    "good": "quiz.grade.good",
    "easy": "quiz.grade.easy",
}


class _End(Exception):
    """The learner wants to stop, or there is nothing more to read."""


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("quiz", cls=Command, help=say("quiz.help"))
    def quiz(
        chapter: Annotated[
            str | None,
            typer.Argument(
                metavar="[CHAPTER]", help=say("quiz.topic"), autocompletion=complete_chapter
            ),
        ] = None,
        topic: Annotated[
            str | None, typer.Option("--topic", metavar="NAME", help=say("quiz.topic"))
        ] = None,
        most: Annotated[
            int, typer.Option("--most", metavar="N", min=1, help=say("quiz.most", n=_MOST))
        ] = _MOST,
        listed: Annotated[bool, typer.Option("--list", help=say("quiz.list"))] = False,
        progress: Annotated[
            str | None, typer.Option("--progress", metavar="FILE", help=say("learn.progress"))
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help=say("quiz.json"))] = False,
    ) -> None:
        asked = _select_questions(topic or chapter, language)
        kept = open_progress(progress, language)
        if as_json:
            rows = [_as_dict(question, kept, language) for question in asked]
            typer.echo(json.dumps(rows, ensure_ascii=False))
        elif listed:
            _list(asked, kept, _narrow_terminal(), language)
        else:
            _Round(asked, kept, most, language).run()


def _narrow_terminal() -> Console:
    """A terminal, however narrow: questions are prose, which loses no digits."""
    console = terminal()
    console.width = min(console.width, Console().width)
    return console


def _select_questions(topic: str | None, language: Language) -> "list[Question]":
    from glassformer.school.learn import read_questions, topics

    if topic is not None and topic not in topics():
        raise ConfigError(
            language.say("quiz.error.topic", topics=", ".join(topics()), got=repr(topic))
        )
    return [question for question in read_questions() if topic in (None, question.topic)]


class _Round:
    """One round at the terminal, or through a pipe: a line is read for everything asked."""

    def __init__(
        self, asked: "list[Question]", progress: "ProgressStore", most: int, language: Language
    ) -> None:
        from glassformer.school.learn import Known
        from glassformer.school.learn.session import QuizSession

        self.progress, self.language, self.is_kept = progress, language, True
        self.console: Console = _narrow_terminal()
        self.known = Known(*known_names())
        self.session = QuizSession(asked, progress.cards, today=date.today(), most=most)

    def run(self) -> None:
        say, session = self.language.say, self.session
        if session.next() is None:
            self._print(say("quiz.nothing", day=self._next_day()))
            return
        self._print(
            say("quiz.start", due=session.n_due, new=session.n_new, total=session.total), "dim"
        )
        try:
            while (question := session.next()) is not None:
                self._ask(question)
                self.progress.cards = session.cards
                self._save()  # after every answer: Ctrl-C loses none
        except (_End, KeyboardInterrupt):
            self.console.print()
        if not self.is_kept:
            return  # nothing comes back that was not kept
        if session.done:
            self._print(say("quiz.end", n=len(session.done), day=self._next_day()))
        else:
            self._print(say("quiz.none"))

    def _save(self) -> None:
        """What cannot be kept is told once, and does not end the round."""
        if self.is_kept:
            self.is_kept = save_progress(self.progress, self.language)

    def _ask(self, question: "Question") -> None:
        from glassformer.school.learn.terminal import draw_line
        from glassformer.school.spaced_repetition import GRADES

        say = self.language.say
        number = min(len(self.session.done) + 1, self.session.total)
        self.console.print()
        self._print(f"{number} / {self.session.total}  {question.topic}", "dim")
        self.console.print(draw_line(question.ask[self.language.code], style="bold"))
        if question.answer is not None:
            right = self._ask_typed(question)
            self._print(say("quiz.right" if right else "quiz.wrong"), "green" if right else "red")
            self._answer(question)
            self.session.grade(GRADES["good" if right else "again"])
            return
        self._read(say("quiz.reveal"))
        self._answer(question)
        self.session.grade(GRADES[self._grade()])

    def _ask_typed(self, question: "Question") -> bool:
        assert question.answer is not None
        say = self.language.say
        hint = say("quiz.type.shape" if question.answer.is_shape else "quiz.type.number")
        while True:
            typed = self._read(hint)
            if not typed:
                return False
            judged = question.answer.accepts(typed)
            if judged is not None:
                return judged
            self._print(say("quiz.unread", got=repr(typed[:40])), "dim")

    def _grade(self) -> str:
        say = self.language.say
        grades: dict[str, str] = {}
        for number, (grade, key) in enumerate(_GRADES.items(), start=1):
            grades |= {str(number): grade, grade: grade, say(key): grade}
        while (typed := self._read(say("quiz.grade")).lower()) not in grades:
            self._print(say("quiz.grade.unread", got=repr(typed[:40])), "dim")
        return grades[typed]

    def _answer(self, question: "Question") -> None:
        from glassformer.school.learn.terminal import draw_code, draw_line, draw_proofs

        code = self.language.code
        parts: list[RenderableType] = [draw_line(question.short[code], style="bold")]
        parts += [draw_line(question.full[code])]
        if question.code:
            parts += [Padding(draw_code(question.code.strip()), (0, 0, 0, 2))]
        parts += [draw_proofs(question, known=self.known, language=self.language)]
        for part in parts:
            self.console.print(Padding(part, (0, 0, 0, 2)))

    def _read(self, prompt: str) -> str:
        """A line, without its end; prompts that want a key are lines too, so that pipes work."""
        self.console.print(Text(f"{prompt} ", style="dim"), end="")
        self.console.file.flush()
        line = sys.stdin.readline()
        if not sys.stdin.isatty():
            self.console.print()
        typed = unicodedata.normalize("NFKC", line).strip()  # １ and ，are typed in Chinese
        if not line or typed.lower() in ("q", "quit"):
            raise _End
        return typed

    def _print(self, text: str, style: str = "") -> None:
        from glassformer.render.paragraph import Paragraph

        self.console.print(Paragraph(text, style=style))

    def _next_day(self) -> str:
        return min(card.due for card in self.session.cards.values())


def _as_dict(question: "Question", progress: "ProgressStore", language: Language) -> dict[str, Any]:
    card = progress.cards.get(question.name)
    code = language.code
    return {
        "name": question.name,
        "topic": question.topic,
        "ask": question.ask[code],
        "short": question.short[code],
        "full": question.full[code],
        "answer": None if question.answer is None else str(question.answer),
        "proofs": [" ".join(proof) for proof in question.proofs],
        "card": None if card is None else card.as_dict(),
    }


def _list(
    asked: "list[Question]", progress: "ProgressStore", console: Console, language: Language
) -> None:
    from glassformer.school.learn.terminal import draw_line

    say: Callable[..., str] = language.say
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(say("quiz.column.topic"), style="cyan", no_wrap=True)
    table.add_column(say("quiz.column.question"))
    table.add_column(say("quiz.column.due"), no_wrap=True)
    for question in asked:
        card = progress.cards.get(question.name)
        due = say("quiz.new") if card is None else card.due
        table.add_row(question.topic, draw_line(question.ask[language.code]), due)
    console.print(table)
    console.print()
    n_seen = sum(question.name in progress.cards for question in asked)
    n_typed = sum(question.answer is not None for question in asked)
    console.print(Text(say("quiz.count", n=len(asked), seen=n_seen, typed=n_typed), style="dim"))
