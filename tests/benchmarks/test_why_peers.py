"""Our side of benchmarks/why_peers.py against float64 by hand, and the page that it wrote.

The peers are not installed here; their side runs in an environment of its own.
"""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "why-and-peers.md"


@pytest.fixture(scope="module", autouse=True)
def benchmarks():
    """The modules of the benchmark import each other by their bare names."""
    before = list(sys.path)
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield
    sys.path[:] = before


@pytest.fixture(scope="module")
def llama(benchmarks, tmp_path_factory):
    from why_models import tiny_case
    from why_ours import Glassformer

    case = tiny_case("Llama", tmp_path_factory.mktemp("models"))
    tool = Glassformer(case)
    case.choose_targets(tool.run(case.tokens), tool.run(case.clean))
    return case, tool


def test_our_quantities_are_those_of_a_llama_by_hand(llama):
    from why_float64 import read_by_hand

    case, tool = llama
    ours, exact = tool.read(case), read_by_hand(case)
    assert len(exact) == 5
    for name, value in exact.items():
        torch.testing.assert_close(ours[name].double(), value, atol=2e-5, rtol=0.0, msg=name)


def test_heads_are_ablated_and_patched(llama):
    from why_quantities import MEAN, PATCHED, ZERO, compute, logit_difference, patch_cells

    case, tool = llama
    found = compute(tool, case)
    plain = tool.run(case.tokens)
    for name in (ZERO, MEAN):
        assert (found[name] - plain).abs().amax((1, 2, 3)).min() > 1e-3  # every head matters
    before = logit_difference(case, tool.run(case.corrupted))
    changed = (found[PATCHED] - before).abs() > 1e-4
    end = case.clean.shape[1] - 1
    expected = [layer == 0 or position == end for layer, position, _ in patch_cells(case, 6)]
    assert changed.tolist() == expected  # behind the last layer only the end can still matter


def test_runs_side_by_side_are_those_one_by_one(llama):
    case, tool = llama
    clean = case.clean[:, :4]
    case = replace(case, tokens=case.tokens[:1], clean=clean, corrupted=clean.clone())
    case.corrupted[0, 0] = 3 + clean[0, 0] % 30
    tool.n_heads = 6
    for how in ("zero", "mean"):
        alone = [tool.ablate(case, 1, head, how)[0, -1] for head in range(6)]
        found = tool.ablate_side_by_side(case, 1, how)
        torch.testing.assert_close(found, torch.stack(alone), atol=2e-5, rtol=0.0)
    alone, found = (tool.patch(replace(case, is_large=is_large)) for is_large in (False, True))
    torch.testing.assert_close(found, alone, atol=2e-5, rtol=0.0)


def test_a_difference_beyond_the_criterion_is_bold():
    from why_page import Record, format_difference

    assert format_difference(Record("m", "a", "b", "logits", 1e-4, 33.0)) == "1.0e-4"
    assert format_difference(Record("m", "a", "b", "logits", 2e-4, 40.0)) == "**2.0e-4** (5.0e-6)"
    assert format_difference(None) == "–"


@pytest.mark.parametrize("peer", ["TransformerLens", "nnsight"])
def test_every_quantity_agrees_on_every_model(peer):
    from why_page import MODELS, QUANTITIES
    from why_quantities import DETECTOR, LENS_BETWEEN

    columns, rows = _read_table(f"Against {peer}")
    assert tuple(columns[1:]) == MODELS
    assert tuple(rows) == QUANTITIES
    for name, cells in rows.items():
        for model, cell in zip(MODELS, cells, strict=True):
            if cell == "–":
                assert (name, model) == (LENS_BETWEEN, "GPT-NeoX") or (
                    (name, peer) == (DETECTOR, "nnsight")
                )
                continue
            bold = re.fullmatch(r"\*\*(.+)\*\* \((.+)\)", cell)
            assert float(bold[2] if bold else cell) <= 1e-4, (name, model)
            assert bold is None or model.startswith("SmolLM2"), (name, model)


def test_further_families_agree_or_say_why():
    columns, rows = _read_table("Further families, against TransformerLens")
    assert len(rows) > 30
    for name, cells in rows.items():
        assert any("**" in cell for cell in cells[:-1]) == bool(cells[-1]), name
        by_column = dict(zip(columns[1:], cells, strict=True))
        for column in ("logits", "lens", "patterns", "heads, before a norm", "zero", "patching"):
            assert "**" not in by_column[column], (name, column)


def _read_table(title: str) -> tuple[list[str], dict[str, list[str]]]:
    section = PAGE.read_text("utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [
        [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
        for line in section.splitlines()
        if line.startswith("| ")
    ]
    return lines[0], {line[0]: line[1:] for line in lines[1:]}
