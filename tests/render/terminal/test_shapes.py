import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from glassformer.languages import CODES, Language
from glassformer.models import Config, Norms, Output, Positions
from glassformer.models.shapes import shapes
from glassformer.render.terminal.shapes import draw_shapes
from render.paper import lines

EN, ZH = Language("en"), Language("zh")
TRANSLATOR = Config(
    family="encoder_decoder",
    vocab_size=97,
    dim=22,
    n_layers=3,
    n_decoder_layers=2,
    n_heads=6,
    n_kv_heads=3,
    head_dim=10,
    hidden_dim=37,
    max_len=29,
    gated=True,
    positions=Positions(kind="rotary"),
    norms=Norms(kind="rms"),
)
READER = TRANSLATOR.replace(
    family="encoder",
    n_layers=1,
    n_decoder_layers=None,
    gated=False,
    positions=Positions(kind="learned"),
    norms=Norms(place="post", embedding=True, final=False),
    n_token_types=2,
    scaled_embedding=True,
    output=Output(classes=("yes", "no")),
)
WRITER = TRANSLATOR.replace(
    family="decoder",
    n_decoder_layers=None,
    positions=Positions(kind="relative"),
    softcap=5.0,
    window=3,
    norms=Norms(heads=True),
    output=Output(tied=False, scale=0.25),
)


def drawing(config, language=EN, width=80, **sizes):
    return lines(draw_shapes(shapes(config, **sizes), language=language), width)


def below(title, drawn):
    """The lines from a title to the next empty one."""
    start = next(i for i, line in enumerate(drawn) if line.startswith(title))
    return drawn[start + 1 : drawn.index("", start)]


def titles(drawn):
    return [line.rstrip("─ ") for line in drawn if line.endswith("──")]


def test_every_step_of_cross_attention():
    assert below("cross-attention · decoder.0.cross", drawing(TRANSLATOR)) == [
        "  x                              [B,L,C]         [2,10,22]",
        "  → RMSNorm                      [B,L,C]         [2,10,22]    [C]",
        "  → linear q                     [B,L,H·D]       [2,10,60]    [H·D,C] +b",
        "  → split into heads   q         [B,H,L,D]       [2,6,10,10]",
        "  context                        [B,S,C]         [2,14,22]",
        "  → linear kv                    [B,S,2K·D]      [2,14,60]    [2K·D,C] +b",
        "  → split into heads   k         [B,K,S,D]       [2,3,14,10]",
        "                       v         [B,K,S,D]       [2,3,14,10]",
        "  → q · kᵀ, scaled     scores*   [B,H,L,S]       [2,6,10,14]",
        "  → softmax            weights*  [B,H,L,S]       [2,6,10,14]",
        "  → weights · v        out       [B,H,L,D]       [2,6,10,10]",
        "  → merge heads                  [B,L,H·D]       [2,10,60]",
        "  → linear out                   [B,L,C]         [2,10,22]    [C,H·D] +b",
        "  → + residual                   [B,L,C]         [2,10,22]",
    ]


def test_every_step_of_a_gated_network():
    assert below("feed-forward · decoder.0.feed_forward", drawing(TRANSLATOR)) == [
        "  x                              [B,L,C]         [2,10,22]",
        "  → RMSNorm                      [B,L,C]         [2,10,22]    [C]",
        "  → linear up                    [B,L,2F]        [2,10,74]    [2F,C] +b",
        "  → split gate and up  gate      [B,L,F]         [2,10,37]",
        "                       up        [B,L,F]         [2,10,37]",
        "  → gelu                         [B,L,F]         [2,10,37]",
        "  → × up                         [B,L,F]         [2,10,37]",
        "  → linear down                  [B,L,C]         [2,10,22]    [C,F] +b",
        "  → + residual                   [B,L,C]         [2,10,22]",
    ]


def test_alike_blocks_are_drawn_once():
    assert titles(drawing(TRANSLATOR)) == [
        "encoder · embedding",
        "encoder · blocks 0 … 2 (3 ×)",
        "encoder · final norm",
        "decoder · embedding",
        "decoder · blocks 0, 1 (2 ×)",
        "decoder · final norm",
        "output · logits over the vocabulary",
    ]
    assert titles(drawing(TRANSLATOR, ZH))[1::3] == [
        "编码器 · 第 0 … 2 块（3 块相同）",
        "解码器 · 第 0, 1 块（2 块相同）",
    ]


def test_a_block_unlike_the_others_is_drawn_too():
    trace = shapes(TRANSLATOR)
    changed = [
        replace(s, note="Window(left=2)") if s.site == "encoder.1.self" and s.note else s
        for s in trace.steps
    ]
    trace = replace(trace, steps=tuple(changed))
    shown = titles(lines(draw_shapes(trace, language=EN)))
    assert shown[1:3] == ["encoder · blocks 0, 2 (2 ×)", "encoder · block 1"]


def test_two_heads_and_the_rows_of_an_embedding():
    shown = drawing(READER)
    assert titles(shown) == [
        "encoder · embedding",
        "encoder · block 0",
        "output · logits over the vocabulary",
        "output · logits over the classes",
    ]
    operations = [line[:24].strip() for line in below("encoder · embedding", shown)]
    assert operations == [
        "tokens",
        "→ look up embedding",
        "→ × √22",
        "token_types",
        "→ look up token_types",
        "→ + token types",
        "positions",
        "→ look up positions",
        "→ + positions",
        "→ LayerNorm",
    ]
    assert below("output · logits over the vocabulary", shown)[-1] == (
        "  → linear embedding     logits    [B,L,V]         [2,10,97]    [V,C] tied +b"
    )
    assert below("output · logits over the classes", shown)[1:] == [
        "  → first token                    [B,C]           [2,22]",
        "  → linear dense                   [B,C]           [2,22]       [C,C] +b",
        "  → tanh                           [B,C]           [2,22]",
        "  → linear out                     [B,2]           [2,2]        [2,C] +b",
    ]
    assert "max_len = 29  positions with a learned vector" in shown


def test_what_is_done_to_scores():
    shown = below("self-attention", drawing(WRITER))
    first = next(i for i, line in enumerate(shown) if "scores*" in line)
    assert [line.partition("  [")[0] for line in shown[first - 2 : first + 7]] == [
        "  → RMSNorm              q       ",
        "  → RMSNorm              k       ",
        "  → q · kᵀ, scaled       scores* ",
        "  → softcap              scores* ",
        "  → + bias               scores* ",
        "  → mask Causal() &      scores* ",
        "    Window(left=2)",
        "  → softmax              weights*",
        "  → weights · v          out     ",
    ]


@pytest.mark.parametrize("config", [TRANSLATOR, READER, WRITER], ids=["both", "reader", "writer"])
@pytest.mark.parametrize("language", [EN, ZH], ids=CODES)
@pytest.mark.parametrize("width", [48, 60, 80, 100])
def test_it_keeps_to_the_width_and_in_line(config, language, width):
    shown = drawing(config, language, width)
    assert max(map(cell_len, shown)) <= width
    assert "…" not in "".join(shown).replace("0 … 2", "")
    starts = {
        cell_len(line[: match.start()])
        for line in shown
        for match in re.finditer(r"\[[A-Z(]", line)
    }
    assert len(starts) == (2 if width >= 80 else 1)  # that of the shapes, and of parameters
    shown = "".join(shown)
    for shape in ("[B,L,C]", "[2,10,22]", "[B,L,(H+2K)·D]", "[2,10,120]"):
        assert shape in shown
    assert ("[(H+2K)·D,C]" in shown) == (width >= 80)
    assert ("[120,22]" in shown) == (width == 100)


def test_a_narrow_window_has_operations_between_shapes():
    assert below("decoder · embedding", drawing(TRANSLATOR, width=50)) == [
        "    tokens     [B,L]           [2,10]",
        "  → look up embedding",
        "               [B,L,C]         [2,10,22]",
        "    positions  [L]             [10]",
        "  → RoPE angles",
        "    cos        [L,D/2]         [10,5]",
        "    sin        [L,D/2]         [10,5]",
    ]


def test_large_numbers_keep_their_digits():
    shown = drawing(TRANSLATOR, width=48, batch=123, length=123_456, context=7)
    joined = re.sub(r"\s+", "", "".join(shown))
    assert "[123,6,123456,123456]" in joined and max(map(cell_len, shown)) <= 48


def test_chinese():
    shown = drawing(TRANSLATOR, ZH)
    assert shown[0] == "encoder_decoder：一步一步看形状"
    assert "K = 3   键值头的个数，每个由 2 个查询头共享（分组查询注意力，GQA）" in shown
    assert below("交叉注意力", shown)[3:9] == [
        "  → 拆成多个头           q         [B,H,L,D]       [2,6,10,10]",
        "  context                          [B,S,C]         [2,14,22]",
        "  → 线性层 kv                      [B,S,2K·D]      [2,14,60]    [2K·D,C] +b",
        "  → 拆成多个头           k         [B,K,S,D]       [2,3,14,10]",
        "                         v         [B,K,S,D]       [2,3,14,10]",
        "  → q · kᵀ 并缩放        scores*   [B,H,L,S]       [2,6,10,14]",
    ]


def test_the_legend_explains_each_mark_that_is_there():
    assert "K = 12          key-value heads, one per query head" in drawing("gpt-2")
    notes = "\n".join(drawing(TRANSLATOR)[-5:])
    assert re.findall(r"^(\S+) {2,}", notes, re.MULTILINE) == ["*", "+b", "tied"]
    plain = TRANSLATOR.replace(biases="none", output=Output(tied=False))
    assert drawing(plain)[-3:-1][0] == ""
    narrow = drawing(TRANSLATOR, width=60)
    assert not any(line.startswith("+b") for line in narrow)


def test_the_docstring_shows_the_table():
    shown = drawing("gpt-2")
    _, _, rest = draw_shapes.__doc__.partition("\n\n")
    example = [line.removeprefix("    ") for line in rest.partition("\n\n")[0].splitlines()]
    start = shown.index(example[0], shown.index("") + 12)
    assert shown[start : start + len(example)] == example
