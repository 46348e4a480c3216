"""A small cut of benchmarks/accuracy.py, and proof that it can fail."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import glassformer as gf
from glassformer.functional import dispatch


@pytest.fixture(scope="module")
def accuracy() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "accuracy.py"
    spec = importlib.util.spec_from_file_location("accuracy", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["accuracy"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def threads():
    n = torch.get_num_threads()
    yield
    torch.set_num_threads(n)


def test_a_cut_of_the_table_has_no_breach(
    accuracy: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    code = accuracy.main(["--quick", "--backend", "sdpa", "--backend", "streaming"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "58 passed, 0 failed, 6 refused" in shown
    assert "sdpa refuses" in shown


def test_a_wrong_backend_is_a_breach(
    accuracy: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = dispatch.BACKENDS["streaming"]

    def slightly_off(q, k, v, site, dropout):
        return right.attend(q, k, v, site._replace(scale=site.scale * 1.01), dropout)

    monkeypatch.setitem(
        dispatch.BACKENDS, "streaming", dispatch.Backend(right.refusal, slightly_off)
    )
    assert accuracy.main(["--quick", "--backend", "streaming"]) == 1
    assert "BREACH streaming, float32" in capsys.readouterr().out


def test_nan_is_a_breach(accuracy: ModuleType) -> None:
    case = accuracy.cases("cpu", ["sdpa"], quick=True)[0]
    assert accuracy.Outcome(case, ratios={"out": float("nan")}).breach
    assert not accuracy.Outcome(case, ratios={"out": 0.5}).breach
    assert isinstance(accuracy.measure(case), accuracy.Outcome)
    assert gf.explain is dispatch.explain
