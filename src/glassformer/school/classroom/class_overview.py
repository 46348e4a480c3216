"""A class at a glance: who has solved what, who is stuck where, which mistakes are frequent.

Without a grader the table says what the files say. With one, every source is graded again in the
sandbox, and the table says what was found; the files' own statements then decide nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glassformer.languages import Language
from glassformer.school.classroom.class_folder import ClassFolder
from glassformer.school.classroom.hand_in import (
    HandedExercise,
    HandIn,
    UnusableHandIn,
    hash_exercise,
    read_hand_in,
)
from glassformer.school.practice import Exercise
from glassformer.school.practice.grading import Grader, GradingError
from glassformer.school.practice.report import Finding, GradingReport

SOLVED, TRIED, UNTRIED, UNGRADED = "solved", "tried", "untried", "ungraded"


@dataclass(kw_only=True)
class LearnerRow:
    """One learner: the state of every exercise of the class."""

    name: str  # with the file's name behind it, where two learners share one
    file: Path
    hand_in: HandIn
    states: dict[str, str] = field(default_factory=dict)

    @property
    def n_solved(self) -> int:
        return sum(state == SOLVED for state in self.states.values())


@dataclass(frozen=True, slots=True)
class FrequentMistake:
    """A named mistake, and how many learners made it."""

    exercise: str
    sentence: str
    n_learners: int


@dataclass(kw_only=True)
class ClassOverview:
    """Everything there is to show about a class."""

    classroom: ClassFolder
    is_regraded: bool
    rows: list[LearnerRow]
    mistakes: list[FrequentMistake] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    n_unusable: int = 0  # files that could not be read

    def list_stuck(self) -> list[tuple[str, list[str]]]:
        """Exercises that were tried and not solved, with the names; most learners first."""
        stuck = [
            (exercise.name, [row.name for row in self.rows if row.states[exercise.name] == TRIED])
            for exercise in self.classroom.exercises
        ]
        return sorted((each for each in stuck if each[1]), key=lambda each: -len(each[1]))


def survey_class(
    classroom: ClassFolder,
    language: Language,
    *,
    grader: Grader | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> ClassOverview:
    """Read all hand-ins of a class; with a grader, grade every source again."""
    overview = ClassOverview(classroom=classroom, is_regraded=grader is not None, rows=[])
    files = list_hand_ins(classroom)
    overview.rows = _select_newest(_read_all(files, overview), overview)
    versions = {exercise.name: hash_exercise(exercise) for exercise in classroom.exercises}
    seen: Counter[tuple[str, str]] = Counter()
    for n, row in enumerate(overview.rows):
        progress(n)
        named = _survey_learner(row, overview, versions, grader, language)
        seen.update(set(named))
    progress(len(overview.rows))
    overview.mistakes = [FrequentMistake(*key, n) for key, n in seen.most_common()]
    return overview


def list_hand_ins(classroom: ClassFolder) -> list[Path]:
    """The files that learners have handed in."""
    if not classroom.hand_ins.is_dir():
        return []
    return sorted(each for each in classroom.hand_ins.glob("*.json") if each.name[0] != ".")


def _read_all(files: Iterable[Path], overview: ClassOverview) -> list[tuple[Path, HandIn]]:
    found = []
    for file in files:
        try:
            found.append((file, read_hand_in(file)))
        except UnusableHandIn as error:
            overview.n_unusable += 1
            overview.notes.append(Finding(error.key, {"file": _show(file), **error.values}))
    return found


def _select_newest(
    found: Sequence[tuple[Path, HandIn]], overview: ClassOverview
) -> list[LearnerRow]:
    """The newest file of each learner; file names distinguish learners with the same name."""
    newest: dict[tuple[str, str], tuple[Path, HandIn]] = {}
    for file, hand_in in sorted(found, key=lambda each: each[1].made):
        key = (hand_in.name, hand_in.learner)
        if key in newest:
            values = {"file": _show(newest[key][0]), "newer": _show(file)}
            overview.notes.append(Finding("classroom.file.older", values))
        newest[key] = (file, hand_in)
    counts = Counter(name for name, _ in newest)
    for name in sorted(name for name, n in counts.items() if n > 1):
        overview.notes.append(Finding("classroom.namesakes", {"name": name, "n": counts[name]}))
    return [
        LearnerRow(
            name=name if counts[name] == 1 else f"{name} ({_show(file)})",
            file=file,
            hand_in=hand_in,
        )
        for (name, _), (file, hand_in) in sorted(newest.items(), key=lambda each: each[0])
    ]


def _survey_learner(
    row: LearnerRow,
    overview: ClassOverview,
    versions: dict[str, str],
    grader: Grader | None,
    language: Language,
) -> list[tuple[str, str]]:
    """Fill in the states of one learner; returns the mistakes, by exercise and sentence."""
    hand_in, notes, named = row.hand_in, overview.notes, []
    if not hand_in.is_intact:
        notes.append(Finding("classroom.file.changed", {"file": _show(row.file), "name": row.name}))
    handed = {each.name: each for each in hand_in.exercises}
    outside = sorted(set(handed) - set(versions))
    if outside:
        notes.append(
            Finding("classroom.outside", {"name": row.name, "exercises": ", ".join(outside)})
        )
    others = sorted(n for n in set(handed) & set(versions) if handed[n].version != versions[n])
    if others:
        notes.append(
            Finding("classroom.edition", {"name": row.name, "exercises": ", ".join(others)})
        )
    for exercise in overview.classroom.exercises:
        one = handed.get(exercise.name)
        if one is None:
            row.states[exercise.name] = UNTRIED
            continue
        named += _list_recorded(exercise, one, language)
        if grader is None:
            row.states[exercise.name] = SOLVED if one.passed else TRIED
            continue
        row.states[exercise.name], sentences = _regrade(row, exercise, one, grader, notes, language)
        named += [(exercise.name, sentence) for sentence in sentences]
    return named


def _regrade(
    row: LearnerRow,
    exercise: Exercise,
    handed: HandedExercise,
    grader: Grader,
    notes: list[Finding],
    language: Language,
) -> tuple[str, list[str]]:
    values = {"name": row.name, "exercise": exercise.name}
    try:
        report = grader.grade_source(exercise, handed.source)
    except GradingError:
        notes.append(Finding("classroom.ungraded", values))
        return UNGRADED, []
    if report.passed:
        return SOLVED, []
    if handed.passed:
        notes.append(Finding("classroom.claimed", values))
    return TRIED, _name_mistakes(report, exercise, language)


def _name_mistakes(report: GradingReport, exercise: Exercise, language: Language) -> list[str]:
    if not report.names_mistake:
        return []
    texts = {fault.name: fault.sentence(language.code) for fault in exercise.faults()}
    known = [texts[name] for name in report.faults] if report.names_faults else []
    return known + [language.say(each.key, **each.values) for each in report.explained]


def _list_recorded(
    exercise: Exercise, handed: HandedExercise, language: Language
) -> list[tuple[str, str]]:
    """Mistakes that the file says were named on the way; only those that the exercise knows."""
    texts = {fault.name: fault.sentence(language.code) for fault in exercise.faults()}
    return [(exercise.name, texts[name]) for name in handed.mistakes if name in texts]


def describe_overview(overview: ClassOverview, language: Language) -> dict[str, Any]:
    """An overview as plain values."""
    return {
        "title": overview.classroom.title,
        "is_regraded": overview.is_regraded,
        "exercises": [exercise.name for exercise in overview.classroom.exercises],
        "learners": [
            {
                "name": row.name,
                "file": row.file.name,
                "made": row.hand_in.made,
                "glassformer": row.hand_in.made_with,
                "is_intact": row.hand_in.is_intact,
                "solved": row.n_solved,
                "exercises": row.states,
            }
            for row in overview.rows
        ],
        "stuck": [{"exercise": name, "learners": who} for name, who in overview.list_stuck()],
        "mistakes": [
            {"exercise": each.exercise, "sentence": each.sentence, "learners": each.n_learners}
            for each in overview.mistakes
        ],
        "notes": [language.say(note.key, **note.values) for note in overview.notes],
        "unusable": overview.n_unusable,
    }


def _show(file: Path) -> str:
    """A file's name without what could control a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in file.name)
