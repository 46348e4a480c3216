"""A small cut of benchmarks/transforms.py, and proof that it can fail."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import glassformer as gf

pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def transforms() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "transforms.py"
    spec = importlib.util.spec_from_file_location("transforms", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["transforms"] = module
    spec.loader.exec_module(module)
    return module


def test_a_cut_of_the_table_is_nowhere_worse(
    transforms: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    code = transforms.main(["--quick"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "| softcap | ✓ – | ✓ – |" in shown
    assert "21 cells, 0 where ours is wrong" in shown


ONE_CELL = ["--kind", "window", "--transform", "grad"]


def test_a_wrong_value_is_worse(
    transforms: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = gf.attention
    monkeypatch.setattr(gf, "attention", lambda *args, **options: right(*args, **options) * 1.01)
    assert transforms.main(ONE_CELL) == 1
    shown = capsys.readouterr().out
    assert "| window | ! ✓ |" in shown
    assert "WORSE ours, grad: off by" in shown


def test_an_error_is_worse_only_where_theirs_is_right(
    transforms: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_args, **_options):
        raise ValueError("no such thing")

    monkeypatch.setattr(gf, "attention", failing)
    assert transforms.main(ONE_CELL) == 1
    assert "WORSE ours, grad: ValueError: no such thing" in capsys.readouterr().out
    assert transforms.main(["--kind", "window", "--transform", "jvp"]) == 0
    assert "| window | ✗ ✗ |" in capsys.readouterr().out
