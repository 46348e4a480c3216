"""The capstone's last step: the learner's own GPT runs the weights of SmolLM2."""

from pathlib import Path

import pytest

import glassformer as gf
from glassformer.languages import Language
from glassformer.school.practice import find_exercise
from glassformer.school.practice.capstone.assembly import run_capstone
from glassformer.school.practice.capstone.parts import TRACKS
from glassformer.school.practice.workspace import Workspace
from real_packages import find_smollm

pytestmark = [pytest.mark.real, pytest.mark.plain]


def test_the_solutions_run_smollm2(grader, tmp_path: Path) -> None:
    gf.save(gf.load(find_smollm()), tmp_path / "smollm", layout="huggingface")
    workspace = Workspace(tmp_path / "mine", Language("en"))
    workspace.folder.mkdir()
    for name in TRACKS["decoder"].parts:
        exercise = find_exercise(name)
        workspace.file(exercise).write_text(exercise.solution, encoding="utf-8")
    model = gf.load(tmp_path / "smollm")
    report = run_capstone(model, "decoder", "The capital of France is", workspace, grader, to=None)
    assert report.is_complete and report.is_equal
    assert "Paris" in report.joined.text
