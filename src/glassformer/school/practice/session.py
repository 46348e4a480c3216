"""A practice session as a state machine: events in, a screen out, independent of a terminal.

state   keys and saves            what is asked of the driver
─────   ──────────────            ───────────────────────────
work    n h l c r s q, a save     `wanted`: the exercise to grade next, if any
list    j k Enter l q
reset   y, anything else
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from glassformer.languages import Language
from glassformer.school.practice.capstone.parts import TRACKS, TRANSLATOR
from glassformer.school.practice.exercise import Brief, Exercise
from glassformer.school.practice.report import GradingReport
from glassformer.school.practice.workspace import Workspace
from glassformer.school.progress import ProgressStore, Unsaved


@dataclass(frozen=True, slots=True)
class Key:
    """A key: a letter, or one of up, down, enter, escape."""

    name: str


@dataclass(frozen=True, slots=True)
class Saved:
    """Files that were changed, created or deleted."""

    paths: frozenset[Path]


@dataclass(frozen=True, slots=True)
class Graded:
    """A report that was asked for."""

    report: GradingReport


Event = Key | Saved | Graded


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """Everything there is to draw, in no particular language but that of its notice."""

    state: str
    exercise: Exercise
    file: Path
    exercises: Sequence[Exercise]
    passed: frozenset[str]
    report: GradingReport | None
    running: bool
    hints: tuple[str, ...]
    n_hints: int
    notice: str
    keys: tuple[tuple[str, str], ...]  # a key, and the catalogue's key for what it does
    cursor: int = 0
    solution: Path | None = None
    shows_solution: bool = False


@dataclass(kw_only=True)
class PracticeSession:
    """The state of a practice session."""

    exercises: Sequence[Exercise]
    workspace: Workspace
    progress: ProgressStore
    language: Language
    notice: str = ""
    state: str = "work"
    ended: bool = False
    unsaved: str = ""  # why the progress could not be written, last time
    _place: int = 0
    _cursor: int = 0
    _reports: dict[str, GradingReport] = field(default_factory=dict)
    _queue: list[Exercise] = field(default_factory=list)
    _n_queued: int = 0
    _stale: set[str] = field(default_factory=set)  # saved again while being graded
    _leaving: bool = False
    _shows_solution: bool = False
    _hides_hints: bool = False  # once passed, they would push the good news out of the window

    def __post_init__(self) -> None:
        names = [exercise.name for exercise in self.exercises]
        if self.progress.current in names:
            self._place = names.index(self.progress.current)
        else:
            self._place = self._first_open(0)
        self.progress.current = self.current.name
        self._queue = [self.current]

    @property
    def current(self) -> Exercise:
        return self.exercises[self._place]

    @property
    def wanted(self) -> Exercise | None:
        """What is to be graded next; the driver answers with `Graded`."""
        return self._queue[0] if self._queue else None

    def handle(self, event: Event) -> None:
        """One event."""
        match event:
            case Graded(report):
                self._on_graded(report)
            case Saved(paths):
                self._on_saved(paths)
            case Key(name):
                self._on_key(name)

    def screen(self) -> Screen:
        """What is to be seen now."""
        brief = self.current.brief(self.language.code)
        n_read = count_hints_read(self.progress, self.current, brief)
        is_passed = self.current.name in self.progress.passed
        solution = self.workspace.solution_file(self.current)
        return Screen(
            state=self.state,
            exercise=self.current,
            file=self.workspace.file(self.current),
            exercises=self.exercises,
            passed=frozenset(self.progress.passed),
            report=self._reports.get(self.current.name),
            running=self.wanted is not None and self.wanted.name == self.current.name,
            hints=() if self._hides_hints else brief.hints[:n_read],
            n_hints=len(brief.hints),
            notice=self._notice(),
            keys=self._keys(is_passed),
            cursor=self._cursor,
            solution=solution if is_passed and solution.exists() else None,
            shows_solution=self._shows_solution and is_passed,
        )

    def _notice(self) -> str:
        say = self.language.say
        if self.state == "reset":
            return say("practice.question.reset", file=self.current.file_name)
        if self._n_queued > 1 and self._queue:
            n = self._n_queued - len(self._queue) + 1
            return say("practice.notice.checking", n=n, total=self._n_queued)
        return self.notice

    def _keys(self, is_passed: bool) -> tuple[tuple[str, str], ...]:
        if self.state == "list":
            return (
                ("↑ ↓", "practice.key.move"),
                ("Enter", "practice.key.go"),
                ("l", "practice.key.back"),
                ("q", "practice.key.quit"),
            )
        if self.state == "reset":
            return (("y", "practice.key.yes"), ("n", "practice.key.no"))
        solution = (("s", "practice.key.solution"),) if is_passed else ()
        return (
            ("n", "practice.key.next"),
            ("h", "practice.key.hint"),
            ("l", "practice.key.list"),
            ("c", "practice.key.check"),
            ("r", "practice.key.reset"),
            *solution,
            ("q", "practice.key.quit"),
        )

    def _on_graded(self, report: GradingReport) -> None:
        if report.exercise in self._stale:
            self._stale.discard(report.exercise)
            return
        self._queue = [each for each in self._queue if each.name != report.exercise]
        self._reports[report.exercise] = report
        if report.exercise == self.current.name:
            self._hides_hints = report.passed
        if report.passed:
            self._on_passed(report.exercise)
        elif report.kind != "needs":
            self.progress.passed.discard(report.exercise)
            if report.faults and report.names_faults:
                self.progress.note_mistakes(report.exercise, report.faults)
            self._save()
        if self._n_queued > 1 and not self._queue:
            self.notice = self.language.say(
                "practice.notice.checked",
                n=sum(each.name in self.progress.passed for each in self.exercises),
                total=len(self.exercises),
            )
            self._n_queued = 0

    def _on_passed(self, name: str) -> None:
        self.progress.mark_passed(name, date.today())
        exercise = next(each for each in self.exercises if each.name == name)
        try:
            self.workspace.reveal(exercise)
        except OSError as error:
            file = self.workspace.solution_file(exercise)
            self._say("practice.notice.readonly", file=file, reason=error.strerror)
        else:
            self._say_what_it_is_a_part_of(name)
        self._save()

    def _say_what_it_is_a_part_of(self, name: str) -> None:
        track = next((each for each in TRACKS.values() if name in each.parts), None)
        if track is not None and self.current.name == name:
            path = "" if track.name == TRANSLATOR else f" --path {track.name}"
            command = f"glassformer practice capstone{path}{self.workspace.options}"
            self._say("practice.notice.part", command=command)

    def _on_saved(self, paths: frozenset[Path]) -> None:
        if self.workspace.file(self.current).name in {path.name for path in paths}:
            self.notice, self._leaving = "", False
            self._request_grading(self.current)

    def _request_grading(self, exercise: Exercise) -> None:
        if any(each.name == exercise.name for each in self._queue):
            self._stale.add(exercise.name)
        else:
            self._queue.insert(0, exercise)

    def _on_key(self, key: str) -> None:
        if key == "q" and self.state != "reset":
            self.ended = True
        elif self.state == "list":
            self._on_key_in_list(key)
        elif self.state == "reset":
            self.state = "work"
            if key == "y":
                self._reset()
        else:
            self._on_key_at_work(key)

    def _on_key_at_work(self, key: str) -> None:
        leaving, self._leaving = self._leaving, False
        self.notice = ""
        self._shows_solution = self._shows_solution and key == "h"
        match key:
            case "n":
                self._next(leaving)
            case "h":
                self._hint()
            case "l":
                self.state, self._cursor = "list", self._place
            case "c":
                self._queue = list(self.exercises)
                self._n_queued = len(self._queue)
            case "r":
                self.state = "reset"
            case "s":
                self._shows_solution = self.current.name in self.progress.passed
                if not self._shows_solution:
                    self._say("practice.notice.solution")

    def _on_key_in_list(self, key: str) -> None:
        match key:
            case "up" | "k":
                self._cursor = max(0, self._cursor - 1)
            case "down" | "j":
                self._cursor = min(len(self.exercises) - 1, self._cursor + 1)
            case "enter":
                self.state = "work"
                self._go_to(self._cursor)
            case "l" | "escape":
                self.state = "work"

    def _next(self, leaving: bool) -> None:
        if self.current.name not in self.progress.passed and not leaving:
            self._leaving = True
            self._say("practice.notice.unsolved")
            return
        place = self._first_open(self._place + 1)
        if place < len(self.exercises):
            self._go_to(place)
        elif all(each.name in self.progress.passed for each in self.exercises):
            self._say("practice.notice.last")
        else:
            self._say("practice.notice.rest")

    def _first_open(self, start: int) -> int:
        """The first exercise from here on that is not passed; past the end if there is none."""
        for place in range(start, len(self.exercises)):
            if self.exercises[place].name not in self.progress.passed:
                return place
        return len(self.exercises) if start else 0

    def _go_to(self, place: int) -> None:
        self._place = place
        self.progress.current = self.current.name
        self.notice, self._shows_solution, self._hides_hints = "", False, False
        self._save()
        self._request_grading(self.current)

    def _hint(self) -> None:
        self._hides_hints = False
        brief = self.current.brief(self.language.code)
        read = count_hints_read(self.progress, self.current, brief)
        if read == len(brief.hints):
            self._say("practice.hint.none")
            return
        self.progress.hints[self.current.name] = read + 1
        self._save()

    def _reset(self) -> None:
        file = self.current.file_name
        try:
            kept = self.workspace.reset(self.current)
        except OSError as error:
            self._say("practice.notice.readonly", file=file, reason=error.strerror)
            return
        self.progress.passed.discard(self.current.name)
        self._save()
        if kept is not None:
            self._say("practice.notice.reset", file=file, old=f"old/{kept.name}")
        self._request_grading(self.current)

    def _save(self) -> None:
        try:
            # A folder that was deleted stays deleted until the learner asks for it.
            self.progress.save(create_folder=False)
            self.unsaved = ""
        except Unsaved as error:
            self.unsaved = error.reason
            self._say("practice.notice.progress", reason=self.unsaved)

    def _say(self, key: str, **values: object) -> None:
        self.notice = self.language.say(key, **values)


def count_hints_read(progress: ProgressStore, exercise: Exercise, brief: Brief) -> int:
    """How many hints were read; a file of progress may say more than there are."""
    return min(max(progress.hints.get(exercise.name, 0), 0), len(brief.hints))
