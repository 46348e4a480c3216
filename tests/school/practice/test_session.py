"""A sitting without a terminal: keys, saves and reports go in, screens come out."""

import os
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.school.practice import GradingReport, find_exercise
from glassformer.school.practice.report import CheckResult, Finding
from glassformer.school.practice.session import (
    Graded,
    Key,
    PracticeSession,
    Saved,
    count_hints_read,
)
from glassformer.school.practice.terminal import draw_screen
from glassformer.school.practice.workspace import Workspace
from glassformer.school.progress import load_progress

EXERCISES = [find_exercise(name) for name in ("dot_product_scores", "scaling", "predict_width")]
NAMES = [exercise.name for exercise in EXERCISES]


@pytest.fixture(params=["en", "zh"])
def language(request):
    return Language(request.param)


@pytest.fixture
def session(tmp_path, language):
    return begin(tmp_path, language)


def begin(folder, language):
    workspace = Workspace(folder, language)
    workspace.create(EXERCISES)
    progress = load_progress(folder / "progress.json")
    return PracticeSession(
        exercises=EXERCISES, workspace=workspace, progress=progress, language=language
    )


def passed(name):
    return Graded(GradingReport(exercise=name, passed=True, checked=(CheckResult("values", True),)))


def failed(name, kind="nothing"):
    finding = Finding("practice.found.nothing", {"name": "scores"})
    return Graded(GradingReport(exercise=name, passed=False, kind=kind, finding=finding, line=3))


def press(session, keys):
    for key in keys:
        session.handle(Key(key))


def shown(session, width=80, height=40):
    console = Console(width=width, height=height, color_system=None)
    with console.capture() as captured:
        console.print(draw_screen(session.screen(), session.language, width=width, height=height))
    return captured.get()


def test_it_begins_with_the_first_and_asks_for_its_grading(session, tmp_path):
    assert session.current.name == NAMES[0]
    assert session.wanted is EXERCISES[0]
    assert session.screen().running
    assert sorted(p.name for p in tmp_path.glob("*.py")) == [e.file_name for e in EXERCISES]


def test_fail_hint_fix_pass_next(session, tmp_path):
    session.handle(failed(NAMES[0]))
    assert session.wanted is None and not session.screen().report.passed
    press(session, "hh")
    assert len(session.screen().hints) == 2
    session.handle(Saved(frozenset({tmp_path / EXERCISES[0].file_name})))
    assert session.wanted is EXERCISES[0]
    session.handle(passed(NAMES[0]))
    solution = tmp_path / "solutions" / EXERCISES[0].file_name
    assert solution.read_text("utf-8") == EXERCISES[0].solution
    assert session.screen().solution == solution
    press(session, "n")
    assert (session.current.name, session.wanted) == (NAMES[1], EXERCISES[1])
    assert session.screen().hints == ()


@pytest.mark.parametrize(("stored", "read"), [(999, -1), (10**400, -1), (-3, 0), (0, 0)])
def test_a_stored_number_of_hints_is_no_more_than_there_are(session, stored, read):
    session.progress.hints[NAMES[0]] = stored
    brief = EXERCISES[0].brief("en")
    n_read = len(brief.hints) if read < 0 else read
    assert len(session.screen().hints) == n_read
    assert count_hints_read(session.progress, EXERCISES[0], brief) == n_read
    press(session, "h")
    assert len(session.screen().hints) == min(n_read + 1, len(brief.hints))


def test_hints_make_way_for_the_good_news_but_can_be_had(session, tmp_path):
    session.handle(failed(NAMES[0]))
    press(session, "hh")
    session.handle(passed(NAMES[0]))
    assert session.screen().hints == ()
    assert shown(session, height=24).splitlines()[3].startswith("✓")
    press(session, "h")
    assert len(session.screen().hints) == 3
    session.handle(failed(NAMES[0]))
    assert len(session.screen().hints) == 3


@pytest.mark.parametrize(
    ("environ", "code", "said"),
    [
        ({"LANG": "C"}, "en", ""),
        ({"LANG": "C"}, "zh", " --lang zh"),
        ({"LANG": "zh_CN.UTF-8"}, "zh", ""),
        ({"LANG": "zh_CN.UTF-8"}, "en", " --lang en"),
        ({"GLASSFORMER_LANG": "xx"}, "en", " --lang en"),
    ],
)
def test_what_to_type_brings_one_back_in_the_same_language(monkeypatch, environ, code, said):
    monkeypatch.setattr("os.environ", environ)
    workspace = Workspace(Path("glassformer-practice"), Language(code))
    assert workspace.command == f"glassformer practice{said}"
    workspace = Workspace(Path("my own"), Language(code))
    assert workspace.command == f"glassformer practice --dir 'my own'{said}"


def test_the_solution_comes_only_after_passing(session, language):
    session.handle(failed(NAMES[0]))
    press(session, "s")
    assert session.screen().notice == language.say("practice.notice.solution")
    assert "s" not in [key for key, _ in session.screen().keys]
    session.handle(passed(NAMES[0]))
    press(session, "s")
    assert session.screen().shows_solution and "k.transpose(-2, -1)" in shown(session)


def test_an_unsolved_one_is_left_only_by_two_presses(session, language):
    session.handle(failed(NAMES[0]))
    press(session, "n")
    assert session.current.name == NAMES[0]
    assert session.screen().notice == language.say("practice.notice.unsolved")
    press(session, "n")
    assert session.current.name == NAMES[1]
    session.handle(failed(NAMES[1]))
    press(session, "nhn")  # something else in between: it asks again
    assert session.current.name == NAMES[1]


def test_a_save_of_another_file_grades_nothing(session, tmp_path):
    session.handle(failed(NAMES[0]))
    session.handle(Saved(frozenset({tmp_path / "notes.py", tmp_path / EXERCISES[1].file_name})))
    assert session.wanted is None


def test_a_save_during_a_grading_grades_again(session, tmp_path):
    session.handle(Saved(frozenset({tmp_path / EXERCISES[0].file_name})))
    session.handle(failed(NAMES[0]))
    assert session.wanted is EXERCISES[0]
    session.handle(passed(NAMES[0]))
    assert session.wanted is None and session.screen().report.passed


def test_the_list(session, language):
    session.handle(failed(NAMES[0]))
    press(session, ["l", "down", "j", "down", "k"])
    screen = session.screen()
    assert (screen.state, screen.cursor) == ("list", 1)
    assert language.say("practice.kind.predict") in shown(session)
    press(session, ["enter"])
    assert (session.state, session.current.name) == ("work", NAMES[1])
    press(session, ["l", "escape"])
    assert (session.state, session.current.name) == ("work", NAMES[1])


def test_check_all(session, language):
    session.handle(failed(NAMES[0]))
    press(session, "c")
    assert session.screen().notice == language.say("practice.notice.checking", n=1, total=3)
    for name in NAMES[:2]:
        assert session.wanted.name == name
        session.handle(passed(name))
    session.handle(failed(NAMES[2]))
    assert session.wanted is None
    assert session.screen().notice == language.say("practice.notice.checked", n=2, total=3)


def test_reset_asks_and_keeps_what_was_there(session, tmp_path):
    path = tmp_path / EXERCISES[0].file_name
    path.write_text("mine", "utf-8")
    session.handle(passed(NAMES[0]))
    press(session, "rn")
    assert path.read_text("utf-8") == "mine" and session.state == "work"
    press(session, "ry")
    assert path.read_text("utf-8").endswith(EXERCISES[0].stub)
    assert (tmp_path / "old" / path.name).read_text("utf-8") == "mine"
    assert NAMES[0] not in session.progress.passed
    path.write_text("mine too", "utf-8")
    press(session, "ry")
    assert (tmp_path / "old" / f"{path.stem}-2.py").read_text("utf-8") == "mine too"


def test_a_changed_solution_and_what_is_no_file_are_kept(session, tmp_path):
    workspace, exercise = session.workspace, EXERCISES[0]
    path = workspace.reveal(exercise)
    path.write_text("my notes", "utf-8")
    assert workspace.reveal(exercise).read_text("utf-8") == exercise.solution
    assert (tmp_path / "old" / path.name).read_text("utf-8") == "my notes"
    file = workspace.file(exercise)
    file.unlink()
    os.mkfifo(file)
    press(session, "ry")
    assert "it is a named pipe" in session.screen().notice and file.is_fifo()


def test_a_deleted_file_can_be_written_anew(session, tmp_path):
    path = tmp_path / EXERCISES[0].file_name
    path.unlink()
    session.handle(Saved(frozenset({path})))
    session.handle(failed(NAMES[0], "absent"))
    press(session, "ry")
    assert path.exists() and session.wanted is EXERCISES[0]


def test_the_end(session, language):
    for name in NAMES:
        session.handle(passed(name))
        press(session, "n")
    assert session.screen().notice == language.say("practice.notice.last")
    session.handle(failed(NAMES[0]))
    press(session, "n")
    assert session.screen().notice == language.say("practice.notice.rest")
    press(session, "q")
    assert session.ended


def test_it_resumes_where_one_left(session, tmp_path, language):
    session.handle(passed(NAMES[0]))
    press(session, "nh")
    again = begin(tmp_path, language)
    assert again.current.name == NAMES[1]
    assert len(again.screen().hints) == 1
    assert again.screen().passed == {NAMES[0]}


def test_nothing_of_the_learners_is_overwritten(session, tmp_path, language):
    path = tmp_path / EXERCISES[1].file_name
    path.write_text("mine", "utf-8")
    (tmp_path / "README.md").write_text("mine", "utf-8")
    begin(tmp_path, language)
    assert path.read_text("utf-8") == (tmp_path / "README.md").read_text("utf-8") == "mine"


def test_the_task_stands_at_the_top_of_the_file(session, tmp_path, language):
    text = (tmp_path / EXERCISES[0].file_name).read_text("utf-8")
    brief = EXERCISES[0].brief(language.code)
    comment = re.sub(r"\n# ?", "", text.split("\n\n", 1)[0])
    assert text.startswith(f"# {brief.title}\n#\n")
    assert brief.text[:12] in comment and text.endswith(EXERCISES[0].stub)
    compile(text, "file", "exec")


def test_readme_is_in_the_language(session, tmp_path, language):
    text = (tmp_path / "README.md").read_text("utf-8")
    assert f"glassformer practice --dir {tmp_path}" in text
    assert ("练习" in text) == (language.code == "zh")


def test_a_folder_that_cannot_be_written_is_told_and_lived_with(session, monkeypatch, language):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    session.handle(failed(NAMES[0]))
    press(session, "h")
    said = language.say("practice.notice.progress", reason="Permission denied")
    assert session.screen().notice == said
    press(session, "ry")
    assert "Permission denied" in session.screen().notice
    session.handle(passed(NAMES[0]))
    assert session.screen().report.passed
    assert session.unsaved == "Permission denied"
    monkeypatch.undo()
    press(session, "h")
    assert session.unsaved == ""


def test_a_deleted_folder_can_be_written_anew(session, tmp_path, language):
    shutil.rmtree(tmp_path)
    session.handle(failed(NAMES[0], "absent"))
    assert session.unsaved == "No such file or directory"
    press(session, "ry")
    assert (tmp_path / EXERCISES[0].file_name).exists() and not session.unsaved


def test_files_are_written_whole(tmp_path, language, monkeypatch):
    def half(path, text, *_):
        with path.open("w") as file:
            file.write(text[:9])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", half)
    with pytest.raises(ConfigError, match="No space left on device"):
        begin(tmp_path / "mine", language)
    assert not list((tmp_path / "mine").glob("[!.]*"))
    monkeypatch.undo()
    begin(tmp_path / "mine", language)
    assert (tmp_path / "mine" / EXERCISES[0].file_name).read_text("utf-8").endswith("...\n")


def test_what_was_printed_leaves_room_for_the_sentence(session, language):
    finding = Finding("practice.found.output")
    report = GradingReport(
        exercise=NAMES[0], passed=False, kind="output", finding=finding, printed="x" * 4000
    )
    session.handle(Graded(report))
    lines = shown(session, 60).splitlines()
    assert sum("xxx" in line for line in lines) == 12
    assert language.say("practice.found.output")[:9] in "".join(lines[:6])


def test_a_window_too_small_says_so(session, language):
    text = " ".join(shown(session, 40, 10).split())
    assert "40 × 10" in text and "48 × 14" in text
    assert language.say("practice.key.hint") in shown(session, 48, 14)


@pytest.mark.parametrize("width", [48, 80, 120])
def test_no_line_is_wider_than_the_window(session, width):
    from rich.cells import cell_len

    session.handle(failed(NAMES[0]))
    press(session, "h")
    for keys in ("", "l"):
        press(session, keys)
        assert max(cell_len(line.rstrip()) for line in shown(session, width).splitlines()) <= width


def test_a_part_of_the_capstone_says_where_it_runs(tmp_path, language):
    workspace, rms = Workspace(tmp_path, language), find_exercise("rms_norm")
    workspace.create([rms])
    progress = load_progress(tmp_path / "progress.json")
    session = PracticeSession(
        exercises=[rms], workspace=workspace, progress=progress, language=language
    )
    session.handle(passed("rms_norm"))
    assert f"glassformer practice capstone --path decoder --dir {tmp_path}" in session.notice
