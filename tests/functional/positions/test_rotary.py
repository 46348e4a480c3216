import dataclasses
import doctest
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.errors import ConfigError, ShapeError
from glassformer.functional.positions import rotary as module
from glassformer.functional.positions.rotary import (
    Rotary,
    half_to_interleaved,
    interleaved_to_half,
    rotate,
)
from glassformer.functional.positions.rotary_scalings import (
    BandedScaling,
    LinearScaling,
    NTKScaling,
    YaRNScaling,
)

# torch's own compiler imports what torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script_method.:DeprecationWarning")

SCALINGS = {
    "none": None,
    "linear": LinearScaling(3),
    "ntk": NTKScaling(5.0),
    "dynamic": NTKScaling(5.0, original_len=97),
    "yarn": YaRNScaling(7, original_len=211),
    "banded": BandedScaling(8.0, low_freq_factor=1, high_freq_factor=4, original_len=509),
}
LAYOUTS = ["half", "interleaved"]
untimed = settings(deadline=None, max_examples=30)


def close(actual, expected, atol):
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


def normal(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def turned(rotary, x, places):
    return rotate(x, *rotary.tables(places, dtype=torch.float64), layout=rotary.layout)


def test_doctests():
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


# ── the rotation ──


def test_frequencies_and_tables_are_the_formula():
    rotary = Rotary(10, base=500)
    expected = [500 ** (-2 * i / 10) for i in range(5)]
    close(rotary.frequencies(), torch.tensor(expected, dtype=torch.float64), 1e-15)
    cos, sin = rotary.tables(torch.tensor([[3.5, -7], [0, 11]]), dtype=torch.float64)
    angles = (
        torch.tensor([[3.5, -7], [0, 11]], dtype=torch.float64)[..., None] * rotary.frequencies()
    )
    assert cos.shape == sin.shape == (2, 2, 5)
    close(cos, angles.cos(), 1e-15)
    close(sin, angles.sin(), 1e-15)


def test_one_pair_turns_like_a_hand_on_a_clock():
    rotary, x = Rotary(2), torch.tensor([[[[1.0, 0.0]] * 3]])
    expected = torch.tensor([[[[math.cos(t), math.sin(t)] for t in range(3)]]])
    close(rotary(x, x, 3)[0], expected, 1e-7)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scaling", ["none", "linear", "ntk", "yarn", "banded"])
@untimed
@given(
    st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 2**31)
)
def test_scores_depend_on_distance_alone(layout, scaling, place, other, shift, seed):
    rotary = Rotary(14, layout=layout, scaling=SCALINGS[scaling], rotary_dim=10)
    q, k = normal(2, 3, 1, 14, seed=seed), normal(2, 3, 1, 14, seed=seed + 1)

    def score(q_place, k_place):
        q_turned = turned(rotary, q, torch.tensor([q_place]))
        return q_turned @ turned(rotary, k, torch.tensor([k_place])).mT

    close(score(place + shift, other + shift), score(place, other), 1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
@untimed
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=7))
def test_norms_are_kept(layout, places):
    x = normal(2, 3, len(places), 10)
    y = turned(Rotary(10, layout=layout), x, torch.tensor(places))
    close(y.norm(dim=-1), x.norm(dim=-1), 1e-12)


def test_yarn_multiplies_norms_by_its_attention_factor():
    x = normal(2, 3, 5, 10)
    y = turned(Rotary(10, scaling=YaRNScaling(7, original_len=211)), x, 5)
    close(y.norm(dim=-1), x.norm(dim=-1) * (0.1 * math.log(7) + 1), 1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_place_zero_is_the_identity(layout, dtype):
    q, k = normal(2, 6, 5, 10).to(dtype), normal(2, 3, 5, 10).to(dtype)
    places = torch.tensor([[0, 4, 0, 2, 0], [1, 0, 0, 3, 3]])
    q_turned, k_turned = Rotary(10, layout=layout)(q, k, places)
    for x, y in ((q, q_turned), (k, k_turned)):
        still, moved = y.transpose(1, 2)[places == 0], y.transpose(1, 2)[places > 0]
        assert torch.equal(still, x.transpose(1, 2)[places == 0])
        assert not torch.isclose(moved, x.transpose(1, 2)[places > 0]).all(-1).any()


def test_interleaved_is_complex_multiplication():
    rotary, x = Rotary(14, layout="interleaved"), normal(2, 3, 5, 14)
    angles = torch.arange(5, dtype=torch.float64)[:, None] * rotary.frequencies()
    numbers = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    expected = torch.view_as_real(numbers * torch.polar(torch.ones_like(angles), angles))
    close(turned(rotary, x, 5), expected.flatten(-2), 1e-14)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotary_dim_leaves_the_rest_alone(layout):
    x = normal(2, 3, 5, 14)
    y = turned(Rotary(14, rotary_dim=6, layout=layout), x, 5)
    assert torch.equal(y[..., 6:], x[..., 6:])
    close(y[..., :6], turned(Rotary(6, layout=layout), x[..., :6], 5), 0)


# ── layouts ──


@pytest.mark.parametrize("rotary_dim", [None, 6])
def test_half_is_interleaved_with_coordinates_renamed(rotary_dim):
    half = Rotary(14, rotary_dim=rotary_dim)
    interleaved = dataclasses.replace(half, layout="interleaved")
    order, back = interleaved_to_half(14, rotary_dim), half_to_interleaved(14, rotary_dim)
    assert torch.equal(order[back], torch.arange(14))
    assert torch.equal(back[order], torch.arange(14))

    x = normal(2, 3, 5, 14)
    assert torch.equal(turned(half, x[..., order], 5), turned(interleaved, x, 5)[..., order])
    assert torch.equal(turned(interleaved, x[..., back], 5), turned(half, x, 5)[..., back])


def test_permuted_projections_give_the_same_scores():
    x, order = normal(2, 5, 22), interleaved_to_half(14)
    w_q, w_k = normal(3, 14, 22, seed=1), normal(3, 14, 22, seed=2)

    def scores(w_q, w_k, layout):
        q = torch.einsum("blc,hdc->bhld", x, w_q)
        k = torch.einsum("blc,hdc->bhld", x, w_k)
        q, k = Rotary(14, layout=layout)(q, k, 5)
        return q @ k.mT

    close(scores(w_q[:, order], w_k[:, order], "half"), scores(w_q, w_k, "interleaved"), 1e-12)


# ── positions ──


def test_a_length_places_and_tables_are_the_same():
    rotary, q, k = Rotary(10), normal(2, 6, 5, 10), normal(2, 3, 5, 10)
    expected = rotary(q, k, 5)
    ways = (
        torch.arange(5),
        torch.arange(5, dtype=torch.int32).expand(2, 5),
        torch.arange(5.0)[None],
        rotary.tables(5, dtype=torch.float64),
    )
    for positions in ways:
        for actual, wanted in zip(rotary(q, k, positions), expected, strict=True):
            assert torch.equal(actual, wanted)


def test_every_row_of_a_batch_has_its_own_places():
    rotary, q, k = Rotary(10), normal(3, 2, 5, 10), normal(3, 1, 5, 10)
    places = torch.tensor([[0, 1, 2, 3, 4], [7, 8, 9, 10, 11], [0, 0, 0, 1, 2]])
    together = rotary(q, k, places)
    for row in range(3):
        alone = rotary(q[row : row + 1], k[row : row + 1], places[row])
        assert torch.equal(together[0][row], alone[0][0])
        assert torch.equal(together[1][row], alone[1][0])


def test_no_places_no_rows():
    for scaling in SCALINGS.values():
        cos, sin = Rotary(10, scaling=scaling).tables(torch.zeros(2, 0))
        assert cos.shape == sin.shape == (2, 0, 5)


def test_a_million_tokens_away_float32_is_exact_to_its_last_bit():
    places = [999_983, 1_000_000, 1_000_003]
    cos, sin = Rotary(14).tables(torch.tensor(places))
    angles = [[p * 10000 ** (-i / 7) for i in range(7)] for p in places]
    for table, wave in ((cos, math.cos), (sin, math.sin)):
        exact = torch.tensor([[wave(a) for a in row] for row in angles], dtype=torch.float64)
        close(table.double(), exact, 2**-24)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_turns_in_float32(layout, dtype):
    rotary = Rotary(14, layout=layout, rotary_dim=10)
    q, k = normal(2, 6, 5, 14).to(dtype), normal(2, 3, 5, 14).to(dtype)
    places = torch.arange(99_991, 99_996)
    low, high = rotary(q, k, places), rotary(q.float(), k.float(), places)
    for actual, wanted in zip(low, high, strict=True):
        assert actual.dtype == dtype
        assert torch.equal(actual, wanted.to(dtype))


def test_device_is_that_of_the_positions_unless_named():
    rotary = Rotary(6, scaling=NTKScaling(2, original_len=3))
    assert rotary.frequencies(device="meta").device.type == "meta"
    for tables in (
        rotary.tables(torch.zeros(3, device="meta")),
        rotary.tables(3, device="meta"),
        rotary.tables(torch.zeros(3), device="meta"),
    ):
        assert [t.device.type for t in tables] == ["meta", "meta"]


def test_gradients():
    rotary = Rotary(6, rotary_dim=4)
    x = normal(2, 3, 5, 6).requires_grad_()
    places = torch.linspace(0, 2, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, p: turned(rotary, x, p), (x, places))


def test_dynamic_frequencies_follow_the_length():
    rotary = Rotary(10, scaling=NTKScaling(5, original_len=97))
    plain = Rotary(10).frequencies()
    assert torch.equal(rotary.frequencies(), plain)
    assert torch.equal(rotary.frequencies(97), plain)
    grown = Rotary(10, scaling=NTKScaling(5 * 211 / 97 - 4)).frequencies()
    close(rotary.frequencies(211), grown, 1e-15)
    close(rotary.frequencies(torch.tensor(211)), grown, 1e-15)
    for positions in (211, torch.tensor([[3, 210], [5, 8]])):
        assert torch.equal(rotary.tables(positions)[0], rotary.tables(positions, length=211)[0])
    assert not torch.equal(rotary.tables(211)[0], rotary.tables(211, length=97)[0])


# ── agreement with transformers ──

PARITY = {
    "default": (None, {}),
    "linear": (LinearScaling(3.0), {"factor": 3.0}),
    "dynamic": (NTKScaling(5.0, original_len=97), {"factor": 5.0}),
    "yarn": (
        YaRNScaling(7.0, original_len=211),
        {"factor": 7.0, "original_max_position_embeddings": 211},
    ),
    "yarn, a ramp between pairs": (
        YaRNScaling(7.0, original_len=4099, truncate=False, beta_fast=37, beta_slow=2),
        {
            "factor": 7.0,
            "original_max_position_embeddings": 4099,
            "truncate": False,
            "beta_fast": 37.0,
            "beta_slow": 2.0,
        },
    ),
    "yarn, a ramp past the last pair": (
        YaRNScaling(7.0, original_len=99_991),
        {"factor": 7.0, "original_max_position_embeddings": 99_991},
    ),
    "yarn, a ramp of no width": (
        YaRNScaling(7.0, original_len=5),
        {"factor": 7.0, "original_max_position_embeddings": 5},
    ),
    "yarn, mscale": (
        YaRNScaling(40.0, original_len=4099, mscale=0.707, mscale_all_dim=1.3),
        {
            "factor": 40.0,
            "original_max_position_embeddings": 4099,
            "mscale": 0.707,
            "mscale_all_dim": 1.3,
        },
    ),
    "yarn, attention factor": (
        YaRNScaling(1.0, original_len=211, attention_factor=1.25),
        {"factor": 1.0, "original_max_position_embeddings": 211, "attention_factor": 1.25},
    ),
    "llama3": (
        BandedScaling(8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_len=509),
        {
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 509,
        },
    ),
}


def foreign(name, **more):
    pytest.importorskip("transformers")
    from transformers import LlamaConfig

    parameters = {"rope_type": name.split(",")[0], "rope_theta": 5000.0, **PARITY[name][1], **more}
    original = parameters.get("original_max_position_embeddings")
    return LlamaConfig(
        hidden_size=66,
        num_attention_heads=3,
        head_dim=22,
        max_position_embeddings=int(parameters["factor"] * original) if original else 97,
        rope_parameters=parameters,
    )


@pytest.mark.parametrize("name", [name for name in PARITY if name != "default"])
@pytest.mark.parametrize("rotary_dim", [22, 10])
@pytest.mark.parametrize("length", [None, 53, 1009])
def test_frequencies_are_those_of_transformers(name, rotary_dim, length):
    config = foreign(name, partial_rotary_factor=rotary_dim / 22)
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    init = ROPE_INIT_FUNCTIONS[config.rope_parameters["rope_type"]]
    frequencies, magnitude = init(config, seq_len=length)
    scaling = PARITY[name][0]
    rotary = Rotary(22, base=5000.0, scaling=scaling, rotary_dim=rotary_dim)
    torch.testing.assert_close(
        rotary.frequencies(length).float(), frequencies, atol=1e-7, rtol=2e-6
    )
    assert scaling.magnitude == pytest.approx(magnitude, abs=1e-15)


@pytest.mark.parametrize("name", PARITY)
def test_rotation_is_that_of_transformers(name):
    config = foreign(name)
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    rotary = Rotary(22, base=5000.0, scaling=PARITY[name][0])
    q = normal(2, 3, 7, 22, dtype=torch.float32)
    k = normal(2, 1, 7, 22, dtype=torch.float32)
    expected = apply_rotary_pos_emb(q, k, *LlamaRotaryEmbedding(config)(q, torch.arange(7)[None]))
    for actual, wanted in zip(rotary(q, k, 7), expected, strict=True):
        close(actual, wanted, 1e-6)


@pytest.mark.parametrize("name", PARITY)
def test_tables_are_those_of_transformers_as_far_as_their_float32_angles_go(name):
    config = foreign(name)
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    places = torch.arange(1009)
    theirs = LlamaRotaryEmbedding(config)(torch.zeros(1), places[None])
    ours = Rotary(22, base=5000.0, scaling=PARITY[name][0]).tables(places)
    # A frequency and an angle rounded to 24 bits each: 2 · 2⁻²⁴ of the angle, and cos once more.
    bound = 2e-7 + places[:, None] * 4 * 2**-24
    for actual, wanted in zip(ours, theirs, strict=True):
        assert ((actual - wanted[0, :, :11]).abs() <= bound).all()


# ── what is refused ──


@pytest.mark.parametrize(
    ("head_dim", "rotary_dim"), [(7, None), (0, None), (-2, None), (10, 5), (10, 12), (10, 0)]
)
def test_widths_are_checked(head_dim, rotary_dim):
    sentence = rf"at most head_dim; got head_dim={head_dim}, rotary_dim={rotary_dim}\."
    with pytest.raises(ConfigError, match=sentence):
        Rotary(head_dim, rotary_dim=rotary_dim)
    for permutation in (interleaved_to_half, half_to_interleaved):
        with pytest.raises(ConfigError, match=sentence):
            permutation(head_dim, rotary_dim)


@pytest.mark.parametrize("base", [1, 0.5, -3])
def test_base_must_exceed_one(base):
    with pytest.raises(ConfigError, match=rf"greater than 1; got base={base}\."):
        Rotary(10, base=base)


def test_a_length_must_not_be_negative():
    with pytest.raises(ConfigError, match=r"at least 0; got positions=-5\."):
        Rotary(10).tables(-5)


@pytest.mark.plain
def test_layout_is_checked():
    sentence = r"'half' or 'interleaved'; got layout='quarter'\."
    with pytest.raises(ConfigError, match=sentence):
        Rotary(10, layout="quarter")
    with pytest.raises(ConfigError, match=sentence):
        rotate(normal(2, 3, 5, 10), *Rotary(10).tables(5), layout="quarter")


@pytest.mark.parametrize(
    "make",
    [
        LinearScaling,
        NTKScaling,
        lambda factor: YaRNScaling(factor, original_len=211),
        lambda factor: BandedScaling(
            factor, low_freq_factor=1, high_freq_factor=4, original_len=211
        ),
    ],
)
def test_factor_must_be_at_least_one(make):
    with pytest.raises(ConfigError, match=r"at least 1 to extend the context; got factor=0\.75\."):
        make(0.75)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: NTKScaling(2, original_len=n),
        lambda n: YaRNScaling(2, original_len=n),
        lambda n: BandedScaling(2, low_freq_factor=1, high_freq_factor=4, original_len=n),
    ],
)
def test_original_len_must_be_at_least_one(make):
    with pytest.raises(ConfigError, match=r"at least 1; got original_len=0\."):
        make(0)


@pytest.mark.parametrize(("fast", "slow"), [(1, 1), (2, 3.5), (5, 0)])
def test_beta_fast_must_exceed_beta_slow(fast, slow):
    with pytest.raises(ConfigError, match=rf"beta_fast must be greater.*got {fast} and {slow}\."):
        YaRNScaling(2, original_len=211, beta_fast=fast, beta_slow=slow)


@pytest.mark.parametrize(("high", "low"), [(1, 1), (2, 3.5), (5, 0)])
def test_high_freq_factor_must_exceed_low_freq_factor(high, low):
    with pytest.raises(ConfigError, match=rf"high_freq_factor must be.*got {high} and {low}\."):
        BandedScaling(2, original_len=211, high_freq_factor=high, low_freq_factor=low)


@pytest.mark.plain
def test_q_and_k_must_be_as_wide_as_the_head():
    sentence = r"head_dim=10 wide; got widths 10 and 14\."
    with pytest.raises(ShapeError, match=sentence):
        Rotary(10)(normal(2, 3, 5, 10), normal(2, 3, 5, 14), 5)
    with pytest.raises(ShapeError, match=r"head_dim=10 wide; got widths 14 and 14\."):
        Rotary(10)(normal(2, 3, 5, 14), normal(2, 3, 5, 14), 5)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("positions", "tables"),
    [
        (7, r"\(7, 5\)"),
        (torch.arange(4), r"\(4, 5\)"),
        (torch.zeros(3, 5), r"\(3, 5, 5\)"),
        (torch.tensor(3), r"\(5,\)"),
        (torch.zeros(2, 1, 5), r"\(2, 1, 5, 5\)"),
    ],
)
def test_positions_must_match_x(positions, tables):
    x = normal(2, 3, 5, 10)
    with pytest.raises(
        ShapeError, match=rf"got cos {tables} and sin {tables} for x \(2, 3, 5, 10\)"
    ):
        Rotary(10)(x, x, positions)


@pytest.mark.plain
def test_tables_must_fit():
    x, cos = normal(2, 3, 5, 10), torch.ones(5, 5)
    with pytest.raises(ShapeError, match=r"got cos \(5, 5\) and sin \(5, 3\) for x"):
        rotate(x, cos, cos[:, :3])
    with pytest.raises(ShapeError, match=r"cos \(5, 7\) and sin \(5, 7\) for x \(2, 3, 5, 10\)"):
        rotate(x, torch.ones(5, 7), torch.ones(5, 7))
    with pytest.raises(ShapeError, match=r"for x \(3, 5, 10\)"):
        rotate(x[0], cos, cos)


# ── compiled ──


@pytest.mark.plain
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize(("layout", "rotary_dim"), [("half", None), ("interleaved", 10)])
def test_compiles_whole(layout, rotary_dim, scaling):
    torch._dynamo.reset()
    rotary = Rotary(14, layout=layout, scaling=SCALINGS[scaling], rotary_dim=rotary_dim)
    compiled = torch.compile(rotary.__call__, fullgraph=True, backend="aot_eager")
    q, k = normal(2, 6, 5, 14, dtype=torch.float32), normal(2, 3, 5, 14, dtype=torch.float32)
    for positions in (5, torch.arange(95, 105).view(2, 5), rotary.tables(5)):
        expected = rotary(q, k, positions)
        for actual, wanted in zip(compiled(q, k, positions), expected, strict=True):
            close(actual, wanted, 1e-6)


@pytest.mark.plain
def test_one_compiled_function_serves_several_rotaries():
    torch._dynamo.reset()
    compiled = torch.compile(lambda r, q, k, p: r(q, k, p), fullgraph=True, backend="aot_eager")
    q, k = normal(2, 6, 5, 14, dtype=torch.float32), normal(2, 3, 5, 14, dtype=torch.float32)
    for factor in (2, 3.5, 7.25):
        rotary = Rotary(14, base=1000 * factor, scaling=YaRNScaling(factor, original_len=211))
        for actual, wanted in zip(compiled(rotary, q, k, 5), rotary(q, k, 5), strict=True):
            close(actual, wanted, 1e-6)


@pytest.mark.plain
def test_decoding_compiles_once():
    torch._dynamo.reset()
    rotary, compilations = Rotary(14, scaling=SCALINGS["dynamic"]), []

    def counting(graph, inputs):
        compilations.append(graph)
        return graph

    step = torch.compile(rotary.__call__, fullgraph=True, backend=counting)
    q, k = normal(2, 6, 1, 14, dtype=torch.float32), normal(2, 3, 1, 14, dtype=torch.float32)
    for place in range(94, 101):
        positions = torch.tensor([place])
        for actual, wanted in zip(step(q, k, positions), rotary(q, k, positions), strict=True):
            close(actual, wanted, 1e-6)
    assert len(compilations) == 1


@pytest.mark.plain
@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize(("layout", "rotary_dim"), [("half", None), ("interleaved", 10)])
def test_cuda_and_inductor_agree_with_the_cpu(layout, rotary_dim, scaling):
    torch._dynamo.reset()
    rotary = Rotary(14, layout=layout, scaling=SCALINGS[scaling], rotary_dim=rotary_dim)
    q, k = normal(2, 6, 5, 14, dtype=torch.float32), normal(2, 3, 5, 14, dtype=torch.float32)
    compiled = torch.compile(rotary.__call__, fullgraph=True)
    for positions in (torch.arange(5), torch.arange(999_990, 1_000_000).view(2, 5)):
        expected = rotary(q, k, positions)
        for run in (rotary, compiled):
            ours = run(q.cuda(), k.cuda(), positions.cuda())
            for actual, wanted in zip(ours, expected, strict=True):
                close(actual.cpu(), wanted, 1e-6)
