"""The certificate: it says what was graded and no more, in both languages, for every reader."""

from datetime import date
from pathlib import Path

import pytest

from glassformer.errors import CheckpointError
from glassformer.languages import Language
from glassformer.school.certificate.page import certificate_markup, write_certificate
from glassformer.school.certificate.proof import (
    Certificate,
    ProvedExercise,
    collect_proof,
    describe_certificate,
)
from glassformer.school.learn.listing import ListedChapter
from glassformer.school.practice import find_exercise
from glassformer.school.practice.capstone.capstone_report import (
    LENT,
    YOURS,
    CapstoneReport,
    PartResult,
    Writing,
)
from glassformer.school.practice.capstone.parts import TRACKS
from glassformer.school.practice.grading import Grader
from glassformer.school.practice.report import CheckResult, Finding, GradingReport
from glassformer.school.practice.workspace import Workspace
from glassformer.school.progress import ExperimentRun, ProgressStore
from render.conftest import open_file  # noqa: F401  (a fixture)
from render.test_page_accessibility import complaints

NAME = "<b>Ada</b> & 李雷"


def capstone(own):
    track = TRACKS["translator"]
    parts = (PartResult(part=p, state=YOURS if p in own else LENT) for p in track.parts)
    wrote = Writing("Où est la gare ?", (1, 2))
    return CapstoneReport(
        track=track,
        text="Where is the station?",
        model="translator",
        parts=tuple(parts),
        library=wrote,
        joined=wrote,
        stop=None,
        with_wrong=None,
        isolation=(),
        seconds=1.0,
    )


def certificate(**changes):
    proved = ProvedExercise(
        exercise=find_exercise("attention"),
        checks=("random inputs", "gradients"),
        sha256="0123456789abcdef" * 4,
        version="f" * 64,
        hints=1,
        day="2026-05-01",
    )
    fields = {
        "name": NAME,
        "day": date(2026, 5, 2),
        "proved": (proved,),
        "n_failed": 2,
        "capstones": (capstone(["rotary"]), capstone(TRACKS["translator"].parts)),
        "chapters": (ListedChapter(5, "masks", "Masks", None, 7, 3),),
        "experiments": (("Why √d_k", ExperimentRun("2026-05-01", "quick", "holds")),),
        "versions": {"glassformer": "0.1.0", "torch": "2.13.0", "Python": "3.12.1"},
        "isolation": ("landlock", "seccomp"),
    }
    return Certificate(**{**fields, **changes})


def test_the_page_says_what_was_graded_and_what_was_not():
    page = certificate_markup(certificate(), Language("en"))
    assert "&lt;b&gt;Ada&lt;/b&gt; &amp; 李雷" in page and NAME not in page
    assert page.index("Graded for this page") < page.index("Recorded earlier, not checked")
    for words in (
        "0123456789abcdef",
        "1 files were graded",
        "1 of the 11 parts",
        "All 11 parts",
        "3 / 7",
        "isolated by landlock, seccomp",
        "2 more files were tried and did not pass",
        "does not show who wrote the files",
        "PyTorch 2.13.0",
    ):
        assert words in page
    assert "<script" not in page and "http" not in page


def test_nothing_is_claimed_where_nothing_was_found():
    empty = {"proved": (), "n_failed": 0, "capstones": (), "chapters": (), "experiments": ()}
    page = certificate_markup(certificate(**empty, isolation=()), Language("zh"))
    assert "没有文件通过" in page and 'lang="zh-Hans"' in page
    assert "毕业作品" not in page and "此前的记录" not in page and "没有操作系统的隔离" in page


def test_a_word_that_only_a_progress_file_knows_is_escaped():
    odd = (("x", ExperimentRun("2026-05-01", "<i>", "</td>")),)
    page = certificate_markup(certificate(experiments=odd), Language("en"))
    assert "&lt;i&gt;" in page and "&lt;/td&gt;" in page


def test_only_a_certificate_is_replaced(tmp_path):
    path = tmp_path / "page.html"
    write_certificate(path, certificate(), Language("en"))
    write_certificate(path, certificate(), Language("zh"))
    path.write_text("<html>mine</html>")
    with pytest.raises(CheckpointError, match="did not write it"):
        write_certificate(path, certificate(), Language("en"))


class _Passes(Grader):
    def __init__(self) -> None:
        self.graded: list[str] = []

    def grade_source(self, exercise, source, path=None, *, seed=None):
        self.graded.append(exercise.name)
        checked = (CheckResult("values", True), CheckResult("values", True))
        finding = Finding("practice.found.large")
        passed = "right" in source
        return GradingReport(
            exercise=exercise.name, passed=passed, checked=checked, finding=finding
        )


def test_files_are_graded_whatever_the_records_say(tmp_path):
    exercises = [find_exercise(name) for name in ("attention", "rotary", "greedy")]
    workspace = Workspace(tmp_path, Language("en"))
    workspace.create(exercises)
    (tmp_path / "05_attention.py").write_text("right")
    (tmp_path / "50_rotary.py").write_text("wrong")
    practice = ProgressStore(Path("p"), passed={"rotary", "greedy"})
    practice.capstone = {"translator": ["rotary"], "decoder": [], "unheard of": ["x"]}
    grader, run = _Passes(), []

    def run_capstone(track: str) -> CapstoneReport:
        run.append(track)
        return capstone([])

    found = collect_proof(
        "Ada",
        exercises,
        workspace,
        practice=practice,
        learning=ProgressStore(Path("l")),
        grader=grader,
        run_capstone=run_capstone,
        language=Language("en"),
    )
    assert grader.graded == ["attention", "rotary"] and run == ["translator"]
    assert [each.exercise.name for each in found.proved] == ["attention"]
    assert found.proved[0].checks == ("random inputs",)
    assert (found.n_failed, found.capstones) == (1, ())  # none of the capstone's parts is theirs
    plain = describe_certificate(found, Language("en"))
    assert plain["failed_now"] == 1 and plain["capstones_run_now"] == []


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_has_nothing_to_complain_of(open_file, tmp_path, scheme):  # noqa: F811
    for code in ("en", "zh"):
        path = tmp_path / f"{code}.html"
        write_certificate(path, certificate(), Language(code))
        for width in (1280, 360):
            tab = open_file(path, width=width, color_scheme=scheme)
            assert complaints(tab) == []
            overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert tab.evaluate(overflow) <= 0
