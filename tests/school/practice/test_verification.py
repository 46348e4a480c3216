"""What `verify` proves about an exercise, and its texts; every_exercise applies it to all."""

import re
import shutil
from pathlib import Path

import pytest

from glassformer.school.practice import all_exercises, find_exercise
from glassformer.school.practice.exercise import UnknownExercise, read_brief, read_exercise
from glassformer.school.practice.grading import GradingError
from glassformer.school.practice.random_inputs import Draw
from glassformer.school.practice.verification import draw_seeds, verify, verify_one
from school.practice.every_exercise import SEEDS, numbered

HAN = re.compile(r"[\u4e00-\u9fff]")


def test_every_exercise_is_in_one_share():
    shares = [numbered(file) for file in Path(__file__).parent.glob("test_exercises_*_to_*.py")]
    found = sorted(exercise.number for share in shares for exercise in share)
    assert found == [exercise.number for exercise in all_exercises()]


def test_exercises_are_verified_side_by_side():
    exercises, seen = all_exercises()[:3], []
    verdicts = verify(exercises, seeds=SEEDS, n_graders=2, progress=seen.append)
    assert [verdict.exercise for verdict in verdicts] == [each.name for each in exercises]
    assert [verdict.n_faults for verdict in verdicts] == [len(each.faults()) for each in exercises]
    assert not any(verdict.problems for verdict in verdicts)
    assert sorted(seen, key=verdicts.index) == verdicts


@pytest.mark.parametrize("exercise", all_exercises(), ids=lambda exercise: exercise.name)
def test_each_text_is_in_its_language(exercise):
    for code in ("en", "zh"):
        brief = exercise.brief(code)
        texts = [brief.title, brief.text, brief.then, *brief.hints]
        texts += [fault.sentence(code) for fault in exercise.faults()]
        texts += [label[code] for label in exercise.cases.values()]
        if code == "zh":
            # A hint or a label may be a formula; a task or a fault is told in words.
            faults = [fault.sentence(code) for fault in exercise.faults()]
            assert all(HAN.search(text) for text in (brief.text, brief.then, *faults))
            prose = [re.sub(r"`[^`]*`|\([^)]*\)|\[[^]]*\]", "x", text) for text in texts]
            assert not re.search(r"[\u4e00-\u9fff] ?[,.;:!?](?!\w)", " ".join(prose))
        else:
            # Words that are the example itself may stand in an English text.
            assert not [text for text in texts if len(HAN.findall(text)) > 3]


@pytest.fixture
def copied(tmp_path):
    source = find_exercise("scaling").folder
    return shutil.copytree(source, tmp_path / source.name)


def problems(folder, grader):
    verdict = verify_one(read_exercise(folder), grader, seeds=SEEDS)
    return {problem.key for problem in verdict.problems}


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_a_stub_that_passes_is_told(copied, grader):
    shutil.copy(copied / "solution.py", copied / "stub.py")
    assert problems(copied, grader) == {"practice.verify.stub"}


def test_a_solution_that_fails_is_told(copied, grader):
    edit(copied / "solution.py", "def scaled_scores", "def other")
    assert "practice.verify.solution" in problems(copied, grader)


def test_a_fault_that_is_none_is_told(copied, grader):
    edit(copied / "faults.toml", 'replace = "D"', 'replace = "math.sqrt(1 * D)"')
    assert problems(copied, grader) == {"practice.verify.caught"}


def test_two_faults_that_do_the_same_are_told(copied, grader):
    edit(copied / "faults.toml", 'replace = "D"', 'replace = "1"')
    assert problems(copied, grader) == {"practice.verify.named"}


def test_a_planted_fault_that_is_not_there_is_told(copied, grader):
    edit(copied / "exercise.toml", 'kind = "code"', 'kind = "fault"\nplanted = "no_scaling"')
    assert problems(copied, grader) == {"practice.verify.planted"}


def test_texts_that_do_not_match_are_told(copied, grader):
    edit(copied / "zh.md", "## Then", "## Hint\n再来一条。\n\n## Then")
    assert problems(copied, grader) == {"practice.verify.texts"}


def test_few_faults_and_cases_without_a_sentence_are_told(copied, grader):
    (copied / "faults.toml").write_text("", "utf-8")
    edit(
        copied / "checks.py",
        "yield from battery",
        'yield Case("odd", lambda m: 1)\n    yield from battery',
    )
    assert problems(copied, grader) == {"practice.verify.few", "practice.verify.case"}


def test_checks_that_break_are_told(copied, grader):
    edit(copied / "checks.py", "draw.sizes(4)", "draw.nothing(4)")
    with pytest.raises(GradingError, match=r"(?s)scaling cannot be graded: .*nothing"):
        grader.grade_source(read_exercise(copied), "x = 1")
    assert problems(copied, grader) == {"practice.verify.solution"}


def test_a_fault_that_passes_with_some_seeds_is_told_with_them(copied, grader):
    edit(
        copied / "checks.py",
        "    yield from battery",
        """    given = {"q": draw.normal(2, 3, 1), "k": draw.normal(2, 5, 1)}
    yield Case("values", lambda m, q, k: m.scaled_scores(q, k), given, ("scores",))
    if draw.size(1, 2) == 1:
        return
    yield from battery""",
    )
    narrow = tuple(seed for seed in range(9) if stays_narrow(seed))
    assert 0 < len(narrow) < 9
    verdict = verify_one(read_exercise(copied), grader, seeds=range(9))
    assert verdict.failed_seeds == narrow
    told = {problem.values["fault"]: problem for problem in verdict.problems}
    assert told["no_scaling"].key == "practice.verify.caught"
    assert told["no_scaling"].values["seeds"] == ", ".join(map(str, narrow))


def stays_narrow(seed):
    """Whether the checks above end after vectors of width 1, whose √D is 1."""
    draw = Draw(seed)
    draw.normal(2, 3, 1), draw.normal(2, 5, 1)
    return draw.size(1, 2) == 1


def spoil(folder, code):
    """Let the first fault do something before it returns."""
    old = 'find = " / math.sqrt(D)"\nreplace = ""'
    line = "D = q.shape[-1]"
    edit(folder / "faults.toml", old, f'find = "{line}"\nreplace = "{line}; {code}"')
    edit(folder / "exercise.toml", "minutes = 5", "minutes = 5\nseconds = 1")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("exec('while True: pass')", "time"),
        ("raise SystemExit", "exit"),
        ("q.softmax(0)", "forbidden"),
        ("getattr(q, 'soft' + 'max')(0)", "forbidden"),
        ("open('x', 'w')", "blocked"),
    ],
)
def test_a_fault_that_stops_is_told_and_the_others_are_tried(copied, grader, code, kind):
    spoil(copied, code)
    edit(copied / "exercise.toml", '["attention"]', '["softmax"]')
    edit(copied / "faults.toml", 'replace = "D"', 'replace = "math.sqrt(1 * D)"')
    verdict = verify_one(read_exercise(copied), grader, seeds=SEEDS)
    told = {problem.values["fault"]: problem for problem in verdict.problems}
    assert told.keys() == {"no_scaling", "divided_by_width"}
    assert told["no_scaling"].values["got"].startswith(f"{kind}: ")
    assert told["divided_by_width"].key == "practice.verify.caught"


@pytest.mark.parametrize(
    ("code", "why"),
    [("import os; os.abort()", "SIGABRT"), ("import torch; torch.sum = print", "torch.sum")],
)
def test_a_fault_that_ends_the_verification_is_told(copied, grader, code, why):
    spoil(copied, code)
    verdict = verify_one(read_exercise(copied), grader, seeds=SEEDS)
    (problem,) = verdict.problems
    assert problem.key == "practice.verify.stopped"
    assert problem.values["name"] == "no_scaling" and why in problem.values["why"]
    assert verdict.failed_seeds == SEEDS[:1]


def test_seeds_are_others_every_time():
    assert len(draw_seeds(5)) == 5 and set(draw_seeds()).isdisjoint(draw_seeds())


@pytest.mark.plain
def test_errors_for_authors(copied):
    edit(copied / "exercise.toml", "minutes = 5", "minutes = 5\ncolour = 1")
    with pytest.raises(ValueError, match=r"may hold cases, .*; got colour\."):
        read_exercise(copied)
    edit(copied / "exercise.toml", "colour = 1", "")
    edit(copied / "exercise.toml", '"code"', '"essay"')
    with pytest.raises(ValueError, match=r"kind must be one of code, .*; got 'essay'"):
        read_exercise(copied)
    edit(copied / "exercise.toml", '"essay"', '"code"')
    edit(
        copied / "faults.toml",
        'find = " / math.sqrt(D)"\nreplace = ""',
        'find = "zz"\nreplace = ""',
    )
    with pytest.raises(ValueError, match=r"no_scaling looks for must occur once .* 'zz' occurs 0"):
        read_exercise(copied).faults()
    with pytest.raises(ValueError, match="sections Hint and Then; got 'Tip'"):
        read_brief("# A\n## Tip\nx")


@pytest.mark.plain
def test_an_unknown_name_comes_with_a_near_one():
    with pytest.raises(UnknownExercise, match="no exercise 'atention'") as caught:
        find_exercise("atention")
    assert caught.value.near == ["attention"]
    for name in ("attention", "5", "05", "05_attention", "05_attention.py", "some/05_attention.py"):
        assert find_exercise(name).name == "attention"
