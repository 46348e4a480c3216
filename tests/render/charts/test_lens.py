"""The lens grid as values."""

import pytest
import torch

import glassformer as gf
from glassformer.analysis import Lens
from glassformer.languages import Language
from glassformer.render.charts.lens import chart_of_lens

BOTH = [Language("en"), Language("zh")]


@pytest.fixture(scope="module")
def lens() -> Lens:
    model = gf.load("writer")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(torch.tensor([model.tokenizer.encode("And God said unto")]))
    return gf.logit_lens(trace, top=3)


@pytest.mark.parametrize("language", BOTH, ids=lambda each: each.code)
def test_every_cell_is_what_the_lens_says(lens, language) -> None:
    chart = chart_of_lens(lens, language, parts=True)
    (panel,) = chart.panels
    assert panel.row_names == tuple(reversed(lens.borders))
    assert panel.column_names == tuple(lens.positions)
    N, L = lens.entropy.shape
    for i in range(N):
        for j in range(L):
            at = N - 1 - i
            assert panel.texts[i][j] == lens.labels[at][j][0]
            assert panel.values[i][j] == pytest.approx(
                float(lens.probabilities[at, j, 0]), rel=1e-3
            )
            assert panel.measures[0][i][j] == pytest.approx(float(lens.entropy[at, j]), rel=1e-3)
            assert [name for name, _ in panel.lists[i][j]] == lens.labels[at][j]
    assert panel.measures[2][0] == (0,) * L  # at the end, the final token is the first
    assert "writer" in chart.title and "And God said unto" in chart.title


def test_blocks_and_positions_are_selected(lens) -> None:
    (panel,) = chart_of_lens(lens, BOTH[0], positions=[-1]).panels
    assert panel.row_names == (*(f"decoder.{i}.mlp" for i in (4, 3, 2, 1, 0)), "decoder.start")
    assert panel.column_names == (lens.positions[-1],) and len(panel.values[0]) == 1


def test_a_mapped_lens_says_so(lens) -> None:
    from dataclasses import replace

    plain, tuned = (chart_of_lens(each, BOTH[0]) for each in (lens, replace(lens, kind="tuned")))
    assert "logit lens" in plain.panels[0].title and "tuned lens" in tuned.panels[0].title
    assert "tuned lens" in tuned.caption and "tuned lens" not in plain.caption
    assert (
        "under ablate(x)"
        in chart_of_lens(replace(lens, model={"changes": "ablate(x)"}), BOTH[0]).title
    )
