"""A cut of benchmarks/kills.py: killed and damaged runs end in the same model, or say why not."""

import random
import shutil
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def kills(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))  # the processes that it starts find it there, too
    import kills

    return kills


@pytest.mark.plain
def test_killed_and_damaged_runs(kills, tmp_path):
    lines, breaches = kills.hurt(tmp_path, kills=5, damages=6, seed=5)
    assert not breaches, "\n".join(lines)
    assert "DIFFERENTLY" not in lines[0] and "identically" in lines[0]


@pytest.mark.plain
def test_the_judge_can_fail(kills, tmp_path):
    """Another model, a traceback, silence about damage, two sentences, no end: all are breaches."""
    bench = kills.Bench(tmp_path)
    out = tmp_path / "run"
    code, _ = bench.finish(out, str(bench.recipe), "--set", "until.steps=5")
    assert code == 0
    expected = kills.result(out)
    harmless = kills.Damage("nothing", (), must_notice=False)
    serious = kills.Damage("something", (Path("essence.json"),))

    def judged(code, log, damage=harmless):
        return kills.judge(out, damage, code, log, expected, is_named=False)

    assert judged(0, "") == "identical"
    assert judged(0, "metrics.jsonl is damaged: …", serious) == "said so, and identical"
    assert judged(2, "glassformer: a sentence\n") == "refused"
    assert judged(0, "", serious) == "BREACH"
    assert judged(None, "") == judged(0, "Traceback …") == judged(1, "glassformer: x") == "BREACH"
    assert judged(2, "") == judged(2, "glassformer: a\nglassformer: b\n") == "BREACH"
    metrics = out / "metrics.jsonl"
    cut = kills.Damage("cut off", (Path("metrics.jsonl"),))
    lines = metrics.read_text("utf-8").splitlines(keepends=True)
    measured = next(i for i, line in enumerate(lines) if "valid_loss" in line)
    metrics.write_text("".join(lines[:measured] + lines[measured + 1 :]), "utf-8")
    assert judged(0, "metrics.jsonl is damaged: …", cut) == "said so, and identical"
    assert judged(0, "", cut) == judged(0, "metrics.jsonl is damaged: …", serious) == "BREACH"
    metrics.write_text("".join(lines).replace('"valid_loss": ', '"valid_loss": 1'), "utf-8")
    assert judged(0, "metrics.jsonl is damaged: …", cut) == "BREACH"
    metrics.write_text("".join(lines), "utf-8")
    shutil.copyfile(out / "best" / "config.json", out / "model" / "model.safetensors")
    assert judged(0, "") == "BREACH"


@pytest.mark.plain
def test_damage_can_be_undone(kills, tmp_path):
    import run_damage

    bench = kills.Bench(tmp_path)
    stopped = tmp_path / "stopped"
    bench.finish(stopped, str(bench.recipe), "--set", f"until.steps={kills.STOPPED}")

    def content(folder):
        return {p.relative_to(folder): p.is_file() and p.read_bytes() for p in folder.rglob("*")}

    for name, kind in run_damage.KINDS.items():
        out = Path(shutil.copytree(stopped, tmp_path / name))
        damage = kind(out, random.Random(3))
        run_damage.undo(out, stopped, damage)
        assert content(out) == content(stopped), name
