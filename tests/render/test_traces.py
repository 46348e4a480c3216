"""Drawings from a trace alone: aligned with wide characters, honest about what is not there."""

import pytest
import torch
from rich.console import Console

import glassformer as gf
from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.observe import Run, Trace, Words, record
from glassformer.render.attended import draw_attended
from glassformer.render.heat import draw_heat, widest_heat
from glassformer.render.overview import draw_heads, draw_overview

LABELS = ["<s>", "我", "␣cat", "…", "\u202ex"]


def trace(n: int = 5, heads: int = 3) -> Trace:
    torch.manual_seed(0)
    q, k, v = (2 * torch.randn(3, 1, heads, n, 4)).unbind(0)
    sites = {}
    for name in ("decoder.0.self", "decoder.1.self"):
        sites[name] = record(q, k, v, mask=gf.Causal(), name=name)
    labels = [(LABELS * n)[:n]]
    return Trace([Run(sites, {"tokens": Words(torch.arange(n)[None], labels)})])


def printed(drawing, width: int = 80) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(drawing)
    return captured.get()


def test_a_heat_map_is_aligned() -> None:
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0.2, 0.2, 0.6]])
    tokens = ["我", "cat", "坐下了"]
    lines = [line.rstrip() for line in printed(draw_heat(weights, tokens, tokens)).splitlines()]
    assert lines == [
        "           c  坐",
        "           a  下",
        "        我 t  了",
        "我      ██ ·  ·",
        "cat     ▒▒ ▓▓ ·",
        "坐下了  ░░ ░░ ▓▓",
    ]


def test_how_many_keys_fit() -> None:
    assert widest_heat(80, ["abcd"]) == 25
    assert widest_heat(3, ["abcd"]) == 0


def test_the_overview_has_every_layer_and_head() -> None:
    out = printed(draw_overview(trace(), language=Language("en")))
    assert "decoder · self" in out
    rows = [line for line in out.splitlines() if line.strip().startswith(("0 ", "1 "))]
    assert len(rows) == 2
    assert all(sum(row.count(c) for c in "░▒▓█") == 6 for row in rows)


@pytest.mark.parametrize("code", ["en", "zh"])
def test_heads_in_numbers(code: str) -> None:
    seen = trace()
    site = seen["decoder.1.self"]
    out = printed(draw_heads(seen, site, language=Language(code)))
    assert len(out.splitlines()) == 4
    assert f"{float(site.peak().mean(-1)[2]):.2f}" in out


def test_what_is_attended_most() -> None:
    seen = trace()
    site = seen["decoder.0.self"]
    out = printed(draw_attended(site, 1, seen.labels(), seen.labels(), k=2)).splitlines()
    assert len(out) == 5
    assert out[0].split() == ["0", "<s>", "1.00", "<s>", "0"]
    best = site.weights(head=1)[4].max()
    assert out[4].split()[2] == f"{float(best):.2f}"


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_figures_are_written(suffix: str, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    from glassformer.render.figure import draw_entropy, draw_figure

    draw_figure(trace(), tmp_path / f"one.{suffix}", site="decoder.0.self", head=1)
    draw_figure(trace(), tmp_path / f"all.{suffix}", site="decoder.0.self")
    draw_figure(trace(300), tmp_path / f"long.{suffix}", site="decoder.0.self", head=0)
    draw_entropy(trace(), tmp_path / f"entropy.{suffix}")
    assert sorted(p.stem for p in tmp_path.iterdir()) == ["all", "entropy", "long", "one"]
    assert all(p.stat().st_size > 5000 for p in tmp_path.iterdir())


def test_characters_that_no_font_has_are_numbers() -> None:
    pytest.importorskip("matplotlib")
    from glassformer.render.figure import _drawable, _style

    with _style():
        shown = _drawable(["cat", "\U000f0000", "$x$"])
    assert shown == ["cat", "U+F0000", r"\$x\$"]


@pytest.mark.plain
def test_refusals(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    from glassformer.render.figure import draw_figure

    with pytest.raises(TraceError, match=r"must be named .png or .svg; got 'a.jpg'"):
        draw_figure(trace(), tmp_path / "a.jpg", site="decoder.0.self", head=0)
    with pytest.raises(TraceError, match=r"has heads 0 … 2; got head=5"):
        draw_figure(trace(), tmp_path / "a.png", site="decoder.0.self", head=5)
    assert not list(tmp_path.iterdir())
