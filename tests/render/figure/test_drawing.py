"""Figures: four kinds, two formats, both languages; any token, and what they refuse."""

import math
import re
import warnings

import pytest
import torch

import glassformer as gf
from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.tracing import Run, Trace, TracedText, record
from render.page_traces import decoder, translator

pytest.importorskip("matplotlib")
from glassformer.render.figure import drawing, fonts
from glassformer.render.figure.drawing import KINDS, draw_figure
from glassformer.render.head_cells import Drawing
from glassformer.render.sampled_queries import select_evenly

ENGLISH = Language("en")
OF_ATTENTION = [kind for kind in KINDS if kind != "flow"]


def drawn(trace: Trace, kind: str, language: Language = ENGLISH, **options):
    """The figure itself, before it is written."""
    site, head = options.pop("site", None), options.pop("head", None)
    with drawing.figure_style(TraceError):
        found = drawing._Drawn(trace, options.pop("sequence", 0), Drawing(**options), language)
        return found.figure(kind, site, head)


def cells(axes) -> torch.Tensor:
    """The numbers of a heat map, NaN where it has none."""
    found = axes.images[0].get_array()
    return torch.tensor(found.filled(math.nan))


def texts(found) -> str:
    from matplotlib.text import Text

    return "\n".join(each.get_text() for each in found.findobj(Text))


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
@pytest.mark.parametrize("kind", OF_ATTENTION)
def test_every_kind_is_written(kind: str, suffix: str, tmp_path) -> None:
    draw_figure(translator(), tmp_path / f"a.{suffix}", kind=kind, language=ENGLISH)
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert (tmp_path / f"a.{suffix}").read_bytes().startswith(begins)
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{suffix}"]


def test_a_head_shows_its_weights() -> None:
    trace = decoder(6)
    (axes, _) = drawn(trace, "head", site="decoder.1.self", head=2).axes
    site = trace["decoder.1.self"]
    hidden = site.weights(head=2).masked_fill(~site.allowed(head=2), math.nan)
    assert torch.equal(cells(axes).nan_to_num(-1), hidden.nan_to_num(-1))
    me = "我" if fonts.has_chinese() else "U+6211"
    assert [t.get_text() for t in axes.get_xticklabels()][:2] == ["<s>", me]
    assert [t.get_text() for t in axes.get_yticklabels()][:2] == [f"<s> → {me}", f"{me} → ␣cat"]
    assert axes.get_ylabel() == "token read → next token (query)"
    assert (
        drawn(trace, "head", site="decoder.1.self", head=2)
        .get_suptitle()
        .endswith("\ndecoder.1.self · head 2")
    )


def test_all_heads_share_one_scale() -> None:
    trace = decoder(6)
    axes = drawn(trace, "heads", site="decoder.0.self").axes
    shown = [each for each in axes if each.images]
    assert [each.get_title() for each in shown] == ["head 0", "head 1", "head 2"]
    largest = {float(each.images[0].norm.vmax) for each in shown}
    assert largest == {float(trace["decoder.0.self"].weights(rows=range(1, 6)).max())}


def test_an_alignment_is_the_mean_of_its_heads_with_the_strongest_marked() -> None:
    trace = translator()
    (axes, _) = drawn(trace, "alignment").axes
    weights = trace["decoder.0.cross"].weights()
    assert torch.allclose(cells(axes), weights.mean(0), atol=1e-6)
    marks = axes.collections[0].get_offsets().tolist()
    assert [key for key, _ in marks] == weights.mean(0).argmax(-1).tolist()
    (axes, _) = drawn(trace, "alignment", head=1).axes
    assert torch.equal(cells(axes), weights[1])


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


@pytest.mark.parametrize("kind", OF_ATTENTION)
def test_both_languages(kind: str) -> None:
    if not fonts.has_chinese():
        pytest.skip("needs a font with Chinese characters")
    words = {
        "head": "权重",
        "heads": "权重",
        "alignment": "被关注的源词元（键）",
        "entropy": "熵（奈特）",
    }
    assert words[kind] in texts(drawn(translator(), kind, Language("zh")))


def test_without_a_chinese_font_english_is_spoken(monkeypatch, tmp_path) -> None:
    spoken = []
    monkeypatch.setattr(drawing, "has_chinese", lambda: False)
    original = drawing._Drawn
    monkeypatch.setattr(drawing, "_Drawn", lambda *a: spoken.append(a[-1].code) or original(*a))
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
    shown = fonts.make_drawable(["cat", "\U00012000", "$x$", "e\u0301"])
    assert shown == ["cat", "U+12000", r"\$x\$", "é"]
    assert len(fonts.make_drawable(["x" * 99])[0]) == 20


def test_recorded_heads_keep_their_numbers() -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 4).unbind(0)
    site = record(q, k, v, name="decoder.0.self")
    site.heads = (3, 7)
    trace = Trace([Run({site.name: site}, {"tokens": TracedText(torch.arange(5)[None], [])})])
    titles = [each.get_title() for each in drawn(trace, "heads").axes if each.images]
    assert titles == ["head 3", "head 7"]


def test_recorded_rows_stand_beside_their_names() -> None:
    site = select_evenly(decoder(40)["decoder.0.self"], 16)
    words = TracedText(torch.arange(16)[None], [[f"row{row}" for row in site.rows]])
    site.queries = "tokens, chosen rows"
    trace = Trace([Run({site.name: site}, {site.queries: words})])
    (axes, _) = drawn(trace, "head").axes
    assert axes.images[0].get_extent() == [-0.5, 39.5, 15.5, -0.5]
    assert [t.get_text() for t in axes.get_yticklabels()] == words.labels[0]  # its text is unknown
    assert "computed on" not in texts(drawn(trace, "head"))


def test_the_model_and_the_text_are_named() -> None:
    trace = translator()
    trace.model = {"name": "en-xx", "config": {}}
    assert drawn(trace, "alignment").get_suptitle().startswith("en-xx: “tuvwxyz” → “abcde”\n")
    assert drawn(trace, "entropy").get_suptitle() == "en-xx: “tuvwxyz” → “abcde”"
    if fonts.has_chinese():
        found = drawn(trace, "heads", Language("zh")).get_suptitle()
        assert found.startswith("en-xx：“tuvwxyz” → “abcde”\n")


def test_long_texts_are_shortened_in_the_title() -> None:
    trace = decoder(300, layers=1, heads=1, words=["␣one", "␣two", "␣three"])
    title = drawn(trace, "head").get_suptitle().split("\n")[0]
    assert title == "decoder: “one two three one two three … one two three one two three”"


def test_the_first_row_does_not_take_the_scale() -> None:
    """Even attention: weights 1, 1/2, 1/3 …; the row without a choice lies beyond the end."""
    q = torch.zeros(1, 1, 8, 4)
    site = record(q, q, q, mask=gf.Causal(), name="decoder.0.self")
    found = drawn(Trace([Run({site.name: site})]), "head")
    norm = found.axes[0].images[0].norm
    assert float(norm.vmax) == 0.5
    assert found.axes[1].get_ylim()[1] == 0.5 and found.axes[0].images[0].colorbar.extend == "max"


def test_hidden_is_no_colour_of_the_scale() -> None:
    found = drawn(decoder(6), "head")
    image = found.axes[0].images[0]
    hidden = image.cmap(image.norm(image.get_array()))[0, 5]  # the first query, the last key
    shades = [image.cmap(step / 255) for step in range(256)]
    assert all(abs(a - b) > 0.02 for shade in shades for a, b in [(hidden[2], shade[2])][:1])
    assert "Grey: hidden by the mask." in texts(found).replace("\n", " ")
    assert "Grey" not in texts(drawn(translator(), "head", sequence=0, site="decoder.0.cross"))


def test_ticks_have_significant_digits() -> None:
    q = torch.zeros(1, 1, 300, 4)
    site = record(q, q, q, name="encoder.0.self")
    found = drawn(Trace([Run({site.name: site})]), "head")
    ticks = [t.get_text() for t in found.axes[1].get_yticklabels()]
    assert ticks[-1] == "0.00333" and len(set(ticks)) == len(ticks)


def test_heads_that_share_keys_are_bracketed() -> None:
    q, k = torch.randn(1, 16, 5, 4), torch.randn(1, 4, 5, 4)
    site = record(q, k, k, mask=gf.Causal(), name="decoder.0.self")
    found = drawn(Trace([Run({site.name: site})]), "heads")
    panels = [each for each in found.axes if each.images]
    assert len(panels) == 16
    told = [t for t in found.texts if t.get_text().startswith("key-value head")]
    assert [t.get_text() for t in told] == [f"key-value head {n}" for n in range(4)]
    for n, bracket in enumerate(found.lines):
        left, right = min(bracket.get_xdata()), max(bracket.get_xdata())
        inside = [
            p.get_title() for p in panels if _is_below(p.get_position(), bracket, left, right)
        ]
        assert inside == [f"head {h}" for h in range(4 * n, 4 * n + 4)]
    alone = record(q, q, q, mask=gf.Causal(), name="decoder.0.self")
    assert "key-value" not in texts(drawn(Trace([Run({alone.name: alone})]), "heads"))


def _is_below(box, bracket, left: float, right: float) -> bool:
    top = min(bracket.get_ydata())
    return left - 1e-6 <= box.x0 and box.x1 <= right + 1e-6 and 0 < top - box.y1 < 0.05


@pytest.mark.parametrize("heads", [1, 5, 13, 24])
def test_no_head_is_left_out(heads: int, tmp_path) -> None:
    found = drawn(decoder(4, layers=1, heads=heads), "heads")
    titles = [each.get_title() for each in found.axes if each.images]
    assert titles == [f"head {n}" for n in range(heads)]
    found.draw_without_rendering()
    boxes = [each.get_position() for each in found.axes if each.images]
    assert all(0 <= box.x0 < box.x1 <= 1 and 0 <= box.y0 < box.y1 <= 1 for box in boxes)


def test_text_in_an_svg_is_text(tmp_path) -> None:
    trace = decoder(4, words=["<s>", "我", "␣cat", "$x$"])
    draw_figure(trace, tmp_path / "a.svg", language=ENGLISH)
    svg = (tmp_path / "a.svg").read_text("utf-8")
    written = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    for word in ("我" if fonts.has_chinese() else "U+6211", "␣cat", "$x$"):
        assert word in written
    assert "&lt;s&gt; → " in svg
    fallbacks = re.findall(r"'DejaVu Sans'([^\";]*)", svg)
    assert len(fallbacks) >= len(written) and all(f.endswith(", sans-serif") for f in fallbacks)
    assert all("PingFang SC" in f and "Microsoft YaHei" in f for f in fallbacks)


def test_a_pdf_embeds_its_fonts(tmp_path) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"pdf.compression": 0}):
        trace = decoder(4, words=["<s>", "我", "␣猫", "x"])
        draw_figure(trace, tmp_path / "a.pdf", language=Language("zh"))
    content = (tmp_path / "a.pdf").read_bytes()
    embedded = content.count(b"/CharProcs") + content.count(b"/FontFile")
    assert content.count(b"/Type /Font ") <= embedded and embedded >= 1
    if fonts.has_chinese():
        # Each glyph can be searched for: its code is mapped to its character.
        for character in "我猫权重":
            assert f"<{ord(character):04x}>".encode() in content.lower()


@pytest.mark.plain
def test_refusals(tmp_path) -> None:
    trace = decoder(5)
    for options, sentence in (
        ({"path": "a.jpg"}, r"must be a .png, .svg or .pdf file; got 'a.jpg'"),
        ({"kind": "heat"}, r"one of head, heads, alignment, entropy, flow; got 'heat'"),
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
