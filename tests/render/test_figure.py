"""Figures: four kinds, two formats, both languages; any token, and what they refuse."""

import warnings

import pytest
import torch

import glassformer as gf
from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.observe import Run, Trace, Words, record
from render.page_traces import decoder, translator

pytest.importorskip("matplotlib")
from glassformer.render import figure, fonts
from glassformer.render.figure import KINDS, draw_figure
from glassformer.render.sampled import evenly

ENGLISH = Language("en")


def drawn(trace: Trace, kind: str, language: Language = ENGLISH, **options):
    """The figure itself, before it is written."""
    chosen = {"site": None, "head": None, "sequence": 0, **options}
    with figure._style():
        return figure._drawn(trace, kind, language=language, **chosen)


def texts(found) -> str:
    from matplotlib.text import Text

    return "\n".join(each.get_text() for each in found.findobj(Text))


@pytest.mark.parametrize("suffix", ["png", "svg"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_written(kind: str, suffix: str, tmp_path) -> None:
    draw_figure(translator(), tmp_path / f"a.{suffix}", kind=kind, language=ENGLISH)
    begins = {"png": b"\x89PNG", "svg": b"<?xml"}[suffix]
    assert (tmp_path / f"a.{suffix}").read_bytes().startswith(begins)
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{suffix}"]


def test_a_head_shows_its_weights() -> None:
    trace = decoder(6)
    (axes, _) = drawn(trace, "head", site="decoder.1.self", head=2).axes
    weights = trace["decoder.1.self"].weights(head=2)
    assert torch.equal(torch.tensor(axes.images[0].get_array().data), weights)
    assert [t.get_text() for t in axes.get_xticklabels()][:2] == ["<s>", "我"]
    assert axes.get_title() == "decoder.1.self · head 2"


def test_all_heads_share_one_scale() -> None:
    trace = decoder(6)
    axes = drawn(trace, "heads", site="decoder.0.self").axes
    shown = [each for each in axes if each.images]
    assert [each.get_title() for each in shown] == ["head 0", "head 1", "head 2"]
    largest = {float(each.images[0].norm.vmax) for each in shown}
    assert largest == {float(trace["decoder.0.self"].weights().max())}


def test_an_alignment_is_the_mean_of_its_heads_with_the_strongest_marked() -> None:
    trace = translator()
    (axes, _) = drawn(trace, "alignment").axes
    weights = trace["decoder.0.cross"].weights()
    mean = torch.tensor(axes.images[0].get_array().data)
    assert torch.allclose(mean, weights.mean(0), atol=1e-6)
    marks = axes.collections[0].get_offsets().tolist()
    assert [key for key, _ in marks] == weights.mean(0).argmax(-1).tolist()
    (axes, _) = drawn(trace, "alignment", head=1).axes
    assert torch.equal(torch.tensor(axes.images[0].get_array().data), weights[1])


def test_entropy_has_a_dot_for_each_head_of_each_layer() -> None:
    trace = decoder(6, layers=4)
    (axes,) = drawn(trace, "entropy").axes
    dots = torch.tensor(axes.collections[0].get_offsets().tolist())
    expected = [
        [layer, float(site.entropy(head).mean())]
        for layer, site in enumerate(trace)
        for head in range(3)
    ]
    assert torch.allclose(dots, torch.tensor(expected), atol=1e-5)


def test_long_texts_are_pooled_and_counted_in_tokens() -> None:
    (axes, _) = drawn(decoder(300, layers=1, heads=1), "head").axes
    assert axes.images[0].get_array().shape == (256, 256)
    assert axes.images[0].get_extent() == [0, 300, 300, 0]


def test_the_difference_stands_below() -> None:
    trace = decoder(6)
    assert "was not recorded" in texts(drawn(trace, "head")).replace("\n", " ")
    for site in trace:
        site.out = gf.attention(site.q, site.k, site.v, mask=site.mask)
    value = max(site.difference_from_output() for site in trace)
    assert f"{value:.1e}" in texts(drawn(trace, "entropy"))


@pytest.mark.parametrize("kind", KINDS)
def test_both_languages(kind: str) -> None:
    if not fonts.has_chinese():
        pytest.skip("needs a font with Chinese characters")
    words = {"head": "权重", "heads": "权重", "alignment": "读入的文本", "entropy": "熵（奈特）"}
    assert words[kind] in texts(drawn(translator(), kind, Language("zh")))


def test_without_a_chinese_font_english_is_spoken(monkeypatch, tmp_path) -> None:
    spoken = []
    monkeypatch.setattr(figure, "has_chinese", lambda: False)
    original = figure._drawn
    monkeypatch.setattr(figure, "_drawn", lambda *a: spoken.append(a[-1].code) or original(*a))
    draw_figure(decoder(3), tmp_path / "a.png", language=Language("zh"))
    assert spoken == ["en"]


def test_any_token_is_drawn_without_a_warning(tmp_path) -> None:
    tokens = [
        *("我", "עברית", "العربية", "e\u0301", "\u0301", "👨\u200d👩\u200d👧", "$x$", "$"),
        *("\x1b[31m", "\ud800", "\U000f0000", "<b>", "\\", "x" * 10_000_000),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a glyph that lacks is a warning of matplotlib's
        trace = decoder(len(tokens), words=tokens)
        draw_figure(trace, tmp_path / "a.png", language=ENGLISH)
        draw_figure(trace, tmp_path / "a.svg", kind="heads", language=ENGLISH)


def test_characters_that_no_font_has_are_numbers() -> None:
    shown = fonts.drawable(["cat", "\U00012000", "$x$", "e\u0301"])
    assert shown == ["cat", "U+12000", r"\$x\$", "é"]
    assert len(fonts.drawable(["x" * 99])[0]) == 20


def test_recorded_heads_keep_their_numbers() -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 4).unbind(0)
    site = record(q, k, v, name="decoder.0.self")
    site.heads = (3, 7)
    trace = Trace([Run({site.name: site}, {"tokens": Words(torch.arange(5)[None], [])})])
    titles = [each.get_title() for each in drawn(trace, "heads").axes if each.images]
    assert titles == ["head 3", "head 7"]


def test_recorded_rows_stand_beside_their_names() -> None:
    site = evenly(decoder(40)["decoder.0.self"], 16)
    words = Words(torch.arange(16)[None], [[f"row{row}" for row in site.rows]])
    site.queries = "tokens, chosen rows"
    trace = Trace([Run({site.name: site}, {site.queries: words})])
    (axes, _) = drawn(trace, "head").axes
    assert axes.images[0].get_extent() == [-0.5, 39.5, 15.5, -0.5]
    assert [t.get_text() for t in axes.get_yticklabels()] == words.labels[0]
    assert "stand here for all" not in texts(drawn(trace, "head"))


@pytest.mark.plain
def test_refusals(tmp_path) -> None:
    trace = decoder(5)
    for options, sentence in (
        ({"path": "a.jpg"}, r"must be named .png or .svg; got 'a.jpg'"),
        ({"kind": "heat"}, r"one of head, heads, alignment, entropy; got 'heat'"),
        ({"site": "decoder.0.self", "head": 5}, r"has heads 0 … 2; got head=5"),
        ({"site": "decoder.9.self"}, r"A site must be one of decoder.0.self.*'decoder.9.self'"),
        ({"sequence": 4}, r"has sequences 0 … 0; got sequence=4"),
        ({"kind": "alignment"}, r"such as decoder.0.cross; got a trace without it"),
        ({"kind": "alignment", "site": "decoder.0.self"}, r"another.*got decoder.0.self"),
        ({"path": "file/a.png"}, r"could not be written"),
    ):
        (tmp_path / "file").touch()
        path = tmp_path / options.pop("path", "a.png")
        with pytest.raises(TraceError, match=sentence):
            draw_figure(trace, path, language=ENGLISH, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
