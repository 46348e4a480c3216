"""A class from the first command to the certificate: create, new, practise, hand in, show."""

import json
from contextlib import nullcontext
from datetime import date

import pytest
from rich.cells import cell_len

from glassformer.languages import Language
from glassformer.school.certificate import proof
from glassformer.school.classroom import class_folder, class_overview, new_exercise
from glassformer.school.practice import find_exercise, verification
from glassformer.school.practice.grading import Grader
from glassformer.school.progress import FILE, load_progress


@pytest.fixture(scope="module")
def grader():
    with Grader() as grader:
        yield grader


@pytest.fixture(autouse=True)
def one_process_for_all(grader, monkeypatch):
    """Commands in this process share one that grades: each would wait for torch otherwise."""
    assert verification and class_overview and proof  # keep the real one, by which types go
    monkeypatch.setattr("glassformer.school.practice.grading.Grader", lambda: nullcontext(grader))


@pytest.fixture
def autumn(tmp_path, monkeypatch):
    """A class with two exercises open, one of them its own, and one to come."""
    monkeypatch.chdir(tmp_path)
    options = {"title": "Autumn 2026", "plan": "weekend", "start": date.today()}
    made = class_folder.create_class(tmp_path / "autumn", **options, language=Language("en"))
    new_exercise.create_exercise(made, "centred")
    text = (
        'format = "glassformer class"\nversion = 1\ntitle = "Autumn 2026"\n'
        '[[part]]\ntitle = "Now"\nexercises = ["centred", "attention"]\n'
        '[[part]]\ntitle = "Later"\nopens = 9999-01-01\nexercises = ["rotary"]\n'
    )
    (tmp_path / "autumn" / "class.toml").write_text(text, "utf-8")
    return tmp_path / "autumn"


def test_a_class_opens_week_by_week(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("practice", "class", "create", "c", "--start", "2026-09-07")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines() if line.startswith("2026")] == [
        "2026-09-07",
        "2026-09-14",
        "2026-09-21",
        "2026-09-28",
    ]
    assert "glassformer practice --class c" in out
    out = run("practice", "class", "show", "c", "--lang", "zh")[1]
    assert "还没有人交作业" in out
    code, out, err = run("practice", "new", "centred", "--class", "c")
    assert (code, err) == (0, "") and "centred: 3 faults" in out and 'lists "centred"' in out


def test_from_an_exercise_to_the_overview_and_the_certificate(run, autumn, tmp_path):
    options = ("--class", "autumn", "--dir", "ada")
    out = run("practice", *options)[1]
    assert "glassformer practice run centred --dir ada --class autumn" in out
    assert {file.name for file in (tmp_path / "ada").glob("*.py")} == {
        "501_centred.py",
        "05_attention.py",
    }
    listed = json.loads(run("practice", "list", *options, "--json")[1])
    assert [row["name"] for row in listed] == ["centred", "attention"]
    source = (autumn / "exercises" / "501_centred" / "solution.py").read_text("utf-8")
    (tmp_path / "ada" / "501_centred.py").write_text(source, "utf-8")
    wrong = find_exercise("attention").faults()[0]
    (tmp_path / "ada" / "05_attention.py").write_text(wrong.source, "utf-8")
    assert run("practice", "run", "centred", *options)[0] == 0

    code, out, err = run(
        "practice", "hand-in", "autumn/hand-ins/ada.json", "--name", "Ada", *options
    )
    assert (code, err) == (0, "") and "(1 of 2 tried exercises pass)" in out
    stored = load_progress(tmp_path / "ada" / FILE)
    assert stored.mistakes == {"attention": [wrong.name]} and set(stored.days) == {"centred"}

    code, out, err = run("practice", "class", "show", "autumn", "--regrade")
    assert (code, err) == (0, "") and "graded again just now" in out
    assert "Ada  1 / 3  ✓✗ ·" in out and "attention  1: Ada" in out and "1 × attention" in out
    assert max(map(cell_len, out.splitlines())) <= 80
    plain = json.loads(run("practice", "class", "show", "autumn", "--json")[1])
    assert plain["learners"][0]["exercises"]["rotary"] == "untried" and not plain["is_regraded"]

    run("lab", "linear", "--size", "quick")
    code, out, err = run("practice", "certificate", "c.html", "--name", "Ada", *options, "--json")
    assert (code, err) == (0, "")
    proved = json.loads(out)
    assert [each["exercise"] for each in proved["graded_now"]] == ["centred"]
    assert proved["failed_now"] == 1 and proved["graded_now"][0]["first_passed"] is not None
    assert [each["day"] for each in proved["recorded"]["experiments"]] == [str(date.today())]
    page = (tmp_path / "c.html").read_text("utf-8")
    assert proved["graded_now"][0]["file_sha256"] in page and "It does not show who wrote" in page


def test_verify_names_the_seeds_with_which_a_fault_passes(run, autumn):
    words = ("practice", "verify", "centred", "--class", "autumn")
    code, out, err = run(*words, "--seeds", "1")
    assert (code, err) == (0, "") and "--seed" not in out
    faults = autumn / "exercises" / "501_centred" / "faults.toml"
    text = faults.read_text("utf-8")
    faults.write_text(text.replace('"x + x.mean"', '"x - 1 * x.mean"'), "utf-8")
    code, out, err = run(*words, "--seed", "7", "--seed", "8")
    assert (code, err) == (1, "")
    assert "✗ the fault mean_added passes with seed 7, 8; the checks must catch it\n" in out
    assert "  To repeat this, add --seed 7 --seed 8.\n" in out
    (row,) = json.loads(run(*words, "--seeds", "2", "--json")[1])
    assert len(row["failed_seeds"]) == 2 and len(row["problems"]) == 1


def test_a_broken_file_is_named_and_gives_another_exit_code(run, autumn):
    (autumn / "hand-ins" / "half.json").write_text("{")
    code, out, err = run("practice", "class", "show", "autumn", "--lang", "zh")
    assert (code, err) == (1, "") and "half.json 不是 JSON" in out


@pytest.mark.plain
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("practice", "run", "rotary", "--class", "autumn"), "rotary opens on 9999-01-01"),
        (("practice", "run", "beam", "--class", "autumn"), "beam is not an exercise of Autumn"),
        (("practice", "run", "dragon", "--class", "autumn"), "There is no exercise dragon"),
        (("practice", "list", "--class", "."), "A class is a folder with a class.toml"),
        (("practice", "class", "create", "x", "--start", "soon"), "2026-09-07; got 'soon'"),
        (("practice", "class", "create", "x", "--plan", "year"), "interview; got 'year'"),
        (("practice", "verify", "attention", "--class", "autumn"), "no exercise attention"),
        (("practice", "hand-in", "a.txt", "--name", "A"), "JSON file, such as ada.json"),
        (("practice", "hand-in", "a.json", "--name", "A"), "no exercises in glassformer-practice"),
        (("practice", "hand-in", "a.json", "--name", "A", "--dir", "."), "has been tried yet"),
        (("practice", "certificate", "a.pdf", "--name", "A"), "HTML file, such as certificate"),
        (("practice", "certificate", "a.html", "--name", "A"), "no exercises in glassformer"),
    ],
)
def test_refusals_are_one_sentence(run, autumn, words, sentence):
    code, out, err = run(*words)
    assert (code, out, err.count("\n")) == (2, "", 1) and sentence in err


@pytest.mark.plain
def test_a_class_that_has_not_begun(run, autumn):
    file = autumn / "class.toml"
    file.write_text(file.read_text().replace('"centred", "attention"', ""))
    err = run("practice", "list", "--class", "autumn")[2]
    assert "No exercise of Autumn 2026 is open yet; the first opens on 9999-01-01" in err
    file.write_text(file.read_text().replace('"rotary"', ""))
    assert "Autumn 2026 has no exercises yet" in run("practice", "list", "--class", "autumn")[2]


@pytest.mark.plain
def test_other_peoples_code_is_not_run_without_a_sandbox(run, autumn, monkeypatch):
    where = "glassformer.school.practice.isolation.available_layers"
    monkeypatch.setattr(where, lambda: ("seccomp",))
    code, out, err = run("practice", "class", "show", "autumn", "--regrade")
    assert (code, out) == (2, "") and "needs landlock, seccomp, which this system lacks" in err
    words = ("practice", "class", "show", "autumn", "--regrade", "--without-isolation")
    assert run(*words)[0] == 0
