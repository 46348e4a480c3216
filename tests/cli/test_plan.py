"""`glassformer learn --plan`: what is done, what is next, in both languages and as JSON."""

import json
from datetime import date

import pytest
from rich.cells import cell_len

from glassformer.school.progress import FILE, load_progress


def test_a_plan_shows_what_is_done_and_what_is_next(run, tmp_path):
    run("learn", "why")
    run("lab", "scale", "--size", "quick")
    practice = load_progress(tmp_path / FILE)
    practice.mark_passed("attention", date(2026, 5, 1))
    practice.save()
    code, out, err = run("learn", "--plan", "weekend", "--dir", tmp_path)
    assert (code, err) == (0, "")
    done = [line.split()[2] for line in out.splitlines() if line.startswith("✓")]
    assert done == ["why", "attention", "scale"]
    steps = sum(line.startswith(("✓", "·")) for line in out.splitlines())
    assert f"3 of {steps} steps done" in out and "Next: glassformer lab complexity" in out
    assert "estimates, not measurements" in out
    assert max(map(cell_len, out.splitlines())) <= 80


def test_a_plan_in_chinese_and_as_json(run, tmp_path):
    out = run("learn", "--plan", "interview", "--lang", "zh")[1]
    assert "第一天：手写注意力" in out and "下一步：glassformer learn weights --lang zh" in out
    plain = json.loads(run("learn", "--plan", "weeks", "--json")[1])
    assert len(plain["parts"]) == 4 and plain["next"]["command"] == "glassformer learn why"
    assert plain["minutes"] == sum(part["minutes"] for part in plain["parts"])


@pytest.mark.plain
def test_refusals(run):
    code, _, err = run("learn", "--plan", "month")
    assert (code, err.count("\n")) == (2, 1) and "weekend, weeks, interview; got 'month'" in err
    code, _, err = run("learn", "why", "--plan", "weeks")
    assert (code, err.count("\n")) == (2, 1) and "leave out the chapter" in err
