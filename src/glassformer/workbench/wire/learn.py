"""Learn: the course and its parts. These jobs read no model; they name a part and a language."""

from typing import Annotated, Any, Literal

from pydantic import Field

from glassformer.workbench.wire.requests import Answer, Name, Request, Text

Code = Literal["en", "zh"]
Piece = dict[str, str]  # of a line: kind and text, or MathML, or the chapter that a link leads to
Line = list[Piece]
Coloured = list[tuple[str, str]]  # code: the colour of each piece, and its text


class Passage(Answer):
    """A paragraph, a list or lines of code."""

    kind: Literal["paragraph", "items", "code"]
    lines: list[Line]


class LearnRequest(Request):
    """Something of the course, in a language."""

    lang: Code = "en"


class CourseRequest(LearnRequest):
    """The map of the course."""


class PartRequest(LearnRequest):
    """A chapter, an experiment or an exercise, by its name."""

    name: Name


class ChapterEntry(Answer):
    """A chapter on the map."""

    number: int
    name: str
    title: str
    read: str | None  # the day
    state: Literal["done", "started", "open"]
    exercises: list[str]
    experiments: list[str]
    passed: int  # of the exercises
    questions: int
    answered: int
    due: int


class ExerciseEntry(Answer):
    """An exercise in the list."""

    number: int
    name: str
    title: str
    kind: str  # in words
    minutes: int
    difficulty: int  # 1 to 5
    is_passed: bool


class ExperimentEntry(Answer):
    """An experiment in the list."""

    name: str
    title: str
    claim: str
    seconds: dict[str, int]  # that each size takes on an ordinary machine


class Step(Answer):
    """What to do next."""

    kind: Literal["chapter", "exercise", "questions"]
    name: str | None
    title: str


class CourseAnswer(Answer):
    """The map: chapters in order, all exercises and experiments, and what is next."""

    chapters: list[ChapterEntry]
    exercises: list[ExerciseEntry]
    experiments: list[ExperimentEntry]
    next: Step | None
    folder: str  # where the learner's exercises are
    notices: list[str]  # what happened to files of progress


class PlaceEntry(Answer):
    """A place in another room that shows what a chapter is about."""

    says: str
    room: str
    model: str
    sentence: str
    to: str | None
    site: str | None
    head: int | None


class ChapterAnswer(Answer):
    """A chapter, block by block."""

    number: int
    name: str
    title: Line
    blocks: list[dict[str, Any]]  # as school/learn/plain_blocks describes them
    places: list[PlaceEntry]
    previous: str | None
    next: str | None


class ReadAnswer(Answer):
    """The day on which a chapter was first read."""

    read: str


class ExperimentAnswer(Answer):
    """An experiment before it runs."""

    name: str
    title: str
    claim: str
    prediction: str
    seconds: dict[str, int]
    models: list[str]  # that it can be run on, instead of one that it trains itself


class ExperimentRunRequest(Request):
    """An experiment is run."""

    name: Name
    size: Literal["quick", "full"] = "quick"
    seed: Annotated[int, Field(ge=0, le=(1 << 31) - 1)] = 0
    model: Literal["writer"] | None = None


class CheckSaid(Answer):
    """One thing that had to hold."""

    holds: bool
    sentence: str


class ExperimentSaid(Answer):
    """A result in one language."""

    outcome: str
    checks: list[CheckSaid]
    chart: dict[str, Any]
    explanation: str
    took: str


class ExperimentPartial(Answer):
    """What has been measured so far: the charts of the result, null where there is no number yet.

    It travels in lines {"partial": …} before the result.
    """

    charts: dict[Code, dict[str, Any]]


class ExperimentRunAnswer(Answer):
    """The result, in every language: changing the language must not measure again."""

    outcome: Literal["holds", "partly", "fails"]
    size: str
    seed: int
    said: dict[Code, ExperimentSaid]
    look_at: list[list[str]]


class ExerciseAnswer(Answer):
    """An exercise as the learner has left it."""

    number: int
    name: str
    title: str
    kind: str
    minutes: int
    difficulty: int
    text: list[Passage]
    file: str
    source: str
    is_saved: bool  # whether the source is from the learner's folder
    is_passed: bool
    hints: list[list[Passage]]  # that were read
    n_hints: int
    solution: Coloured | None  # after a try
    missing: list[str]  # packages that it needs


class ExerciseSaveRequest(PartRequest):
    """The learner's text is kept; `was` is what the page believes is in the file."""

    source: Text
    was: Text | None = None


class ExerciseSaveAnswer(Answer):
    """Where a version went that was changed elsewhere in the meantime."""

    kept: str | None


class CheckedCase(Answer):
    """A case, and whether it held; null if it was not reached."""

    label: str
    held: bool | None


class ReportSaid(Answer):
    """A report in one language."""

    sentences: list[list[Passage]]
    where: str
    seen: str
    cases: list[CheckedCase]
    then: list[Passage]  # what to remember, once it is passed


class NumberTable(Answer):
    """Expected and computed numbers, as they are written."""

    rows: list[str]
    columns: list[str]
    expected: list[list[str]]
    yours: list[list[str]]
    is_wrong: list[list[bool]]


class ExerciseCheckAnswer(Answer):
    """What the grader says."""

    is_passed: bool
    kind: str
    line: int | None
    said: dict[Code, ReportSaid]
    table: NumberTable | None
    measured: dict[str, str]
    printed: str
    seconds: float
    isolation: list[str]
    kept: str | None  # as in ExerciseSaveAnswer
    notice: str  # what could not be kept
    solution: Coloured | None


class HintAnswer(Answer):
    """The hints that were read by now."""

    hints: list[list[Passage]]
    n_hints: int


class ResetAnswer(Answer):
    """The text an exercise starts from, and where the learner's version went."""

    source: str
    kept: str | None


class QuestionsRequest(LearnRequest):
    """A round of questions: those that are due, then new ones."""

    topic: Name | None = None  # a chapter; null: all of them
    most: Annotated[int, Field(ge=1, le=100)] = 10


class QuestionEntry(Answer):
    """A question to be answered."""

    name: str
    topic: str
    ask: Line
    typed: Literal["number", "shape"] | None  # null: one grades oneself
    is_new: bool


class QuestionsAnswer(Answer):
    """A round."""

    questions: list[QuestionEntry]
    due: int
    new: int
    next_day: str | None  # on which something is due again


class QuestionAnswerRequest(PartRequest):
    """The answer to a question is asked for; what was typed is graded."""

    typed: Annotated[str, Field(max_length=200)] | None = None


class Proof(Answer):
    """Where an answer is shown to be right."""

    kind: Literal["lab", "practice", "chapter", "code"]
    name: str


class QuestionAnswerAnswer(Answer):
    """The explanation; or, where what was typed cannot be read, nothing but that."""

    is_right: bool | None  # null: nothing was typed, or it cannot be read
    is_read: bool
    short: Line
    full: Line
    code: Coloured
    proofs: list[Proof]


class QuestionGradeRequest(Request):
    """How well an answer was known."""

    name: Name
    grade: Literal["again", "hard", "good", "easy"]


class QuestionGradeAnswer(Answer):
    """When the question is due again, and whether this answer counted."""

    due: str
    counts: bool  # the first answer on a day that it is due; later ones are practice
