"""`glassformer practice`: its commands, and whole sittings in a real terminal."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import nullcontext, suppress

import pytest

from glassformer.installation import install_command
from glassformer.languages import Language
from glassformer.school.practice import all_exercises, terminal_session, verification
from glassformer.school.practice.grading import Grader

FIRST, SECOND = all_exercises()[:2]
HAN = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def grader():
    with Grader() as grader:
        yield grader


@pytest.fixture(autouse=True)
def one_process_for_all(grader, monkeypatch):
    """Commands in this process share one that grades: each would wait for torch otherwise."""
    assert verification and terminal_session  # imported before the patch: they keep the real one
    monkeypatch.setattr("glassformer.school.practice.grading.Grader", lambda: nullcontext(grader))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "glassformer-practice"


def test_without_a_terminal_it_creates_grades_once_and_says_how_to_go_on(run, folder):
    code, out, err = run("practice")
    assert (code, err) == (0, "")
    assert f"{FIRST.entry[0]} returns None" in out
    assert "Not a terminal" in out
    assert f"glassformer practice run {FIRST.name}\n" in out
    names = {path.name for path in folder.glob("*.py")}
    assert names == {exercise.file_name for exercise in all_exercises()}
    assert (folder / "README.md").exists()


def test_another_folder_is_named_in_what_to_type(run, tmp_path):
    out = run("practice", "--dir", tmp_path / "mine", "--lang", "zh")[1]
    assert f"glassformer practice run {FIRST.name} --dir {tmp_path / 'mine'}" in out
    assert HAN.search((tmp_path / "mine" / FIRST.file_name).read_text("utf-8"))


def test_an_exercise_can_be_begun_with(run, folder):
    code, out, err = run("practice", SECOND.name)
    assert (code, err) == (0, "")
    assert f"{SECOND.entry[0]} returns None" in out
    assert f"glassformer practice run {SECOND.name}\n" in out


def test_run_tells_passes_and_keeps_progress(run, folder):
    run("practice")
    file = folder / FIRST.file_name
    file.write_text(FIRST.faults()[0].source, "utf-8")
    code, out, _ = run("practice", "run", FIRST.name)
    said = FIRST.faults()[0].sentence("en").split(". ")[0]
    assert code == 1 and said in " ".join(out.split())
    assert not (folder / "solutions").exists()
    file.write_text(FIRST.solution, "utf-8")
    code, out, _ = run("practice", "run", FIRST.file_name)
    assert code == 0 and "✓ Passed" in out
    assert (folder / "solutions" / FIRST.file_name).read_text("utf-8") == FIRST.solution
    code, out, _ = run("practice", "list")
    assert code == 0 and f"✓  {FIRST.number:02d} {FIRST.name}" in out
    rows = json.loads(run("practice", "list", "--json")[1])
    assert [row["passed"] for row in rows[:2]] == [True, False]
    assert len(rows) == len(all_exercises())


def test_run_json_is_for_programs(run, folder):
    run("practice")
    code, out, _ = run("practice", "run", FIRST.name, "--json", "--lang", "zh")
    data = json.loads(out)
    assert code == 1
    assert (data["kind"], data["passed"], data["file"]) == ("nothing", False, FIRST.file_name)
    assert HAN.search(data["sentences"][0]) and data["line"] > 1
    assert set(data["isolation"]) <= {"landlock", "seccomp"}


def test_hints_come_one_after_the_other(run, folder):
    hints = FIRST.brief("en").hints
    assert hints[0][:20] in run("practice", "hint", FIRST.name)[1]  # also before there is a folder
    run("practice")
    for hint in hints:
        assert hint[:20] in run("practice", "hint", FIRST.name)[1]
    code, out, err = run("practice", "hint", FIRST.name)
    assert code == 0 and hints[-1][:20] in out and "no more hints" in err
    data = json.loads(run("practice", "hint", SECOND.name, "--json", "--lang", "zh")[1])
    assert data == {
        "hint": SECOND.brief("zh").hints[0],
        "n": 1,
        "total": len(SECOND.brief("zh").hints),
    }


def test_a_progress_file_with_too_many_hints_is_no_obstacle(run, folder):
    run("practice")
    path = folder / "progress.json"
    data = json.loads(path.read_text("utf-8"))
    data["exercises"]["hints"] = {FIRST.name: 999}
    path.write_text(json.dumps(data), "utf-8")
    hints = FIRST.brief("en").hints
    code, out, err = run("practice", "hint", FIRST.name)
    assert code == 0 and hints[-1][:20] in out and "no more hints" in err
    rows = json.loads(run("practice", "list", "--json")[1])
    assert rows[0]["hints"] == {"read": len(hints), "total": len(hints)}


def test_reset_does_not_act_unasked(run, folder):
    run("practice")
    file = folder / FIRST.file_name
    file.write_text("mine", "utf-8")
    code, _, err = run("practice", "reset", FIRST.name)
    assert code == 2 and "Pass --yes" in err and file.read_text("utf-8") == "mine"
    code, _, err = run("practice", "reset", FIRST.name, "--yes")
    assert code == 0 and "Your version is in old/" in err
    assert file.read_text("utf-8").endswith(FIRST.stub)
    assert (folder / "old" / FIRST.file_name).read_text("utf-8") == "mine"


def test_verify_says_what_it_proved(run):
    code, out, _ = run("practice", "verify", FIRST.name)
    n = len(FIRST.faults())
    assert code == 0 and f"1 exercises, {n} faults: every stub fails" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "atention"], "There is no exercise atention; did you mean attention?"),
        (["hint", "zzz"], "There is no exercise zzz. List them"),
        (["atention"], "There is no exercise atention; did you mean attention?"),
        (["run", "attention"], "There are no exercises in glassformer-practice yet."),
        (["reset", "attention", "--yes"], "There are no exercises in glassformer-practice yet."),
        (["verify"], "Name the exercise to verify, or pass --all."),
    ],
)
def test_mistakes_are_one_line(run, folder, words, said):
    code, out, err = run("practice", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"glassformer: {said}") and err.count("\n") == 1
    code, _, err = run("practice", *words, "--lang", "zh")
    assert code == 2 and HAN.search(err)


def test_a_folder_that_cannot_be_is_one_line(run, tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    code, out, err = run("practice", "--dir", file / "below")
    assert (code, out) == (2, "") and "need a writable folder" in err
    code, out, err = run("practice", "--dir", file)
    assert (code, out) == (2, "") and "need a writable folder" in err


def test_a_damaged_progress_file_is_told_and_kept(run, folder):
    run("practice")
    (folder / "progress.json").write_text("{", "utf-8")
    code, _, err = run("practice", "list")
    assert code == 0 and "It was kept as progress.json.damaged-1" in err
    assert (folder / "progress.json.damaged-1").read_text("utf-8") == "{"


def test_a_deleted_file_is_told(run, folder):
    run("practice")
    (folder / FIRST.file_name).unlink()
    code, out, _ = run("practice", "run", FIRST.name)
    assert code == 1 and f"{FIRST.file_name} is missing from the folder" in out


def test_a_solution_that_could_not_be_written_is_not_announced(run, folder):
    run("practice")
    (folder / FIRST.file_name).write_text(FIRST.solution, "utf-8")
    (folder / "solutions").write_text("in the way", "utf-8")
    code, out, err = run("practice", "run", FIRST.name)
    assert code == 0 and "✓ Passed" in out and "The solution is in" not in out
    assert "could not be written: File exists" in err


def test_watching_needs_watchfiles(run, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    code, _, err = run("practice")
    assert code == 2 and install_command("practice") in err


class Terminal:
    """A window of tmux, looked at until it shows what it should."""

    def __init__(self, place):
        self.place, self.n_started = place, 0

    def tmux(self, *words):
        # A socket of its own: no other window of whoever runs the tests is touched.
        socket = str(self.place / f"tmux-{self.n_started}")
        command = ["tmux", "-S", socket, "-f", os.devnull, *words]
        return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout

    def start(self, folder, language):
        self.n_started += 1
        shell = f"{sys.executable} -m glassformer practice --dir {folder} --lang {language}; cat"
        self.tmux("new-session", "-d", "-x", "90", "-y", "45", f"LC_ALL=C.UTF-8 {shell}")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def wait(self, *texts, gone=()):
        """Look until all texts are there and none of the others."""
        end = time.monotonic() + 180
        while True:
            # Full lines are broken where the window ends; texts are looked for across that.
            seen = " ".join(self.screen().split())
            bare = seen.replace(" ", "")
            there = all(text.replace(" ", "") in bare for text in texts)
            if there and not any(text.replace(" ", "") in bare for text in gone):
                return seen
            assert time.monotonic() < end, f"{texts} not in:\n{self.screen()}"
            time.sleep(0.05)

    def stop(self):
        with suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")


@pytest.fixture
def window(tmp_path):
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux, in which a terminal can be looked at")
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.stop()


@pytest.mark.parametrize("code", ["en", "zh"])
def test_a_sitting_in_a_real_terminal(window, tmp_path, code):
    say, brief = Language(code).say, FIRST.brief(code)
    folder = tmp_path / "mine"
    file = folder / FIRST.file_name
    fault = FIRST.faults()[0]

    window.start(folder, code)
    window.wait(brief.title, say("practice.found.nothing", name=FIRST.entry[0]))
    assert file.read_text("utf-8").startswith(f"# {brief.title}")

    file.write_text(fault.source, "utf-8")
    window.wait(fault.sentence(code), say("practice.failed"))
    window.press("h")
    window.wait(say("practice.hint", n=1, total=len(brief.hints)), brief.hints[0][:30].rstrip("`"))
    window.press("s")
    window.wait(say("practice.notice.solution"))

    file.write_text(FIRST.solution, "utf-8")
    window.wait(
        say("practice.passed"),
        brief.then[:30],
        say("practice.progress", n=1, total=len(all_exercises())),
    )
    assert (folder / "solutions" / FIRST.file_name).exists()

    window.press("n")
    window.wait(SECOND.brief(code).title, say("practice.found.nothing", name=SECOND.entry[0]))
    window.press("l")
    open_key = f"Enter {say('practice.key.go')}"  # the word alone may be part of the path
    window.wait(f"✓ {FIRST.number:02d} {FIRST.name}", open_key)
    window.press("l")
    window.wait(SECOND.brief(code).title, gone=[open_key])
    window.press("q")
    said = say(
        "practice.bye",
        n=1,
        total=len(all_exercises()),
        command=f"glassformer practice --dir {folder}" + " --lang zh" * (code == "zh"),
    )
    window.wait(said)
    window.stop()

    window.start(folder, code)
    window.wait(SECOND.brief(code).title, say("practice.progress", n=1, total=len(all_exercises())))
    window.press("r")
    window.wait(say("practice.question.reset", file=SECOND.file_name))
    window.press("n")
    window.wait(
        SECOND.brief(code).title, gone=[say("practice.question.reset", file=SECOND.file_name)]
    )
    window.press("q")
    window.wait(said)


def test_the_watcher_outlives_what_learners_write(window, tmp_path):
    folder = tmp_path / "mine"
    file = folder / FIRST.file_name
    window.start(folder, "en")
    window.wait("returns None")
    file.write_text("import os\nos._exit(3)\n", "utf-8")
    window.wait("exits the program")
    file.write_text("def scores(q, k):\n    while True: pass\n", "utf-8")
    file.unlink()
    window.wait("is missing from the folder")
    window.press("r")
    window.wait("Restore")
    window.press("y")
    window.wait("returns None")
    file.write_text("def scores(q, k):\n    raise ValueError('\\x1b[2Jgone')\n", "utf-8")
    window.wait("raises ValueError: ·[2Jgone")
    window.tmux("resize-window", "-x", "40", "-y", "10")
    window.wait("The window is 40 × 10 characters")
    window.tmux("resize-window", "-x", "90", "-y", "40")
    window.wait("Not yet")
    window.press("c-c")
    window.wait("Progress saved")


def test_the_watcher_outlives_its_folder(window, tmp_path):
    folder = tmp_path / "mine"
    window.start(folder, "en")
    window.wait("returns None")
    folder.rename(tmp_path / "elsewhere")
    window.wait("is missing from the folder")
    (tmp_path / "elsewhere").rename(folder)
    window.wait("returns None")
    shutil.rmtree(folder)
    window.wait("is missing from the folder")
    window.press("r")
    window.wait("Restore")
    window.press("y")
    window.wait("returns None")
    (folder / FIRST.file_name).write_text("import os\nos.kill(os.getppid(), 9)\n", "utf-8")
    window.wait("starts or ends threads")
    shutil.rmtree(folder)
    window.wait("is missing from the folder")
    window.press("h")
    window.wait("Progress could not be saved")
    window.press("q")
    window.wait("Progress could not be saved: No such file or directory", gone=["Progress saved"])


def test_quitting_does_not_wait_for_a_loop(window, tmp_path):
    folder = tmp_path / "mine"
    window.start(folder, "en")
    window.wait("returns None")
    loop = (
        "import time\n"
        "def scores(q, k):\n"
        "    while True:\n"
        "        try: time.sleep(1)\n"
        "        except BaseException: pass\n"
    )
    (folder / FIRST.file_name).write_text(loop, "utf-8")
    window.press("q")
    window.wait("Progress saved")


def test_nothing_heavy_comes_with_the_command():
    code = (
        "import sys, glassformer.cli\n"
        "places = ('glassformer.school.practice', 'watchfiles')\n"
        "loaded = [m for m in sys.modules if m.startswith(places)]\n"
        "sys.exit(', '.join(loaded) or 0)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
