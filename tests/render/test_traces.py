"""Drawings from a trace alone: aligned with wide characters, honest about what is not there."""

import pytest
import torch
from rich.cells import cell_len
from rich.console import Console

import glassformer as gf
from glassformer.languages import Language
from glassformer.render.terminal.heat_map import count_fitting_keys, draw_heat
from glassformer.render.terminal.overview import draw_heads, draw_overview
from glassformer.render.terminal.top_tokens import draw_top_keys
from glassformer.tracing import Run, Trace, TracedText, record

LABELS = ["<s>", "我", "␣cat", "…", "\u202ex"]


def trace(n: int = 5, heads: int = 3) -> Trace:
    torch.manual_seed(0)
    q, k, v = (2 * torch.randn(3, 1, heads, n, 4)).unbind(0)
    sites = {}
    for name in ("decoder.0.self", "decoder.1.self"):
        sites[name] = record(q, k, v, mask=gf.Causal(), name=name)
    labels = [(LABELS * n)[:n]]
    return Trace([Run(sites, {"tokens": TracedText(torch.arange(n)[None], labels)})])


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


TOKENS = [
    "我们",
    "e\u0301te\u0301",  # accents of their own
    "\u0301",
    "👨\u200d👩\u200d👧",  # a family: three pictures, joined
    "❤\ufe0f",
    "👋🏽",
    "עברית",
    "العربية",
    "\x1b[31mred\x9b0m",
    "\u202eturned",
    "a\tb",
    "averyveryverylongtoken",
]


def test_every_row_of_a_heat_map_is_as_wide() -> None:
    n = len(TOKENS)
    lines = printed(draw_heat(torch.ones(n, n), TOKENS, TOKENS)).splitlines()
    rows = lines[-n:]
    assert {cell_len(row) for row in rows} == {14 + 2 + 3 * n - 1}
    assert {cell_len(row[: row.index("█")]) for row in rows} == {16}
    heads = lines[:-n]
    assert all(cell_len(line) <= 14 + 2 + 3 * n for line in heads)
    # Every column's sign begins where its marks do: the last one is the end of each token.
    assert [cell_len(heads[-1][: heads[-1].rindex(sign)]) for sign in ("们", "d", "⋮")] == [
        16,
        16 + 3 * 9,
        16 + 3 * 11,
    ]
    assert not any(c in "".join(lines) for c in "\x1b\x9b\u202e\t\u200d")


def test_what_is_written_from_the_right_leaves_numbers_in_place() -> None:
    (line,) = draw_heat(torch.ones(1, 1), ["עברית"], ["x"]).plain.splitlines()[-1:]
    assert line == "\u200eעברית\u200e  ██"


def test_many_heads_stand_close() -> None:
    out = printed(draw_overview(trace(heads=48), language=Language("en"))).splitlines()
    assert out[0].split() == ["decoder", "·", "self", "0", "8", "16", "24", "32", "40"]
    assert sum(out[1].count(c) for c in "░▒▓█") == 48


def test_a_site_may_be_called_anything() -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 4).unbind(0)
    names = ("attention", "model.blocks.3.\x1b[2Jattn")
    seen = Trace([Run({name: record(q, k, v, name=name) for name in names})])
    out = printed(draw_overview(seen, language=Language("en")))
    assert "attention" in out and "\x1b" not in out and "model · blocks · \\x1b[2Jattn" in out


def test_how_many_keys_fit() -> None:
    assert count_fitting_keys(80, ["abcd"]) == 25
    assert count_fitting_keys(3, ["abcd"]) == 0


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
    out = printed(draw_top_keys(site, 1, seen.labels(), seen.labels(), k=2)).splitlines()
    assert len(out) == 5
    assert out[0].split() == ["0", "<s>", "1.00", "<s>", "0"]
    best = site.weights(head=1)[4].max()
    assert out[4].split()[2] == f"{float(best):.2f}"
