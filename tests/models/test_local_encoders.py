"""Encoders with windows: what each layer sees, in every backend, and what watching shows of it."""

import pytest
import torch
from torch import nn

import glassformer as gf
from closeness import assert_close, assert_same, assert_zero
from glassformer.analysis.block_rows import read_block_row
from glassformer.errors import ConfigError
from glassformer.functional import rotate
from glassformer.functional.backends import flex
from glassformer.functional.positions.rotary import Rotary
from glassformer.generation import generate_tokens
from glassformer.models import Config, Norms, Output, Positions, build
from glassformer.models.decoder_weights import refusal
from glassformer.models.shapes import shapes

V, L = 13, 17
LENGTHS = torch.tensor([17, 9, 1])


def config(**changes) -> Config:
    plain = {
        "family": "encoder",
        "vocab_size": V,
        "dim": 12,
        "n_layers": 3,
        "n_heads": 2,
        "n_kv_heads": 1,
        "max_len": 32,
        "window": 5,
        "positions": Positions(kind="rotary"),
    }
    return Config(**(plain | changes))


def model(dtype: torch.dtype = torch.float64, **changes) -> nn.Module:
    built = build(config(**changes)).to(dtype).eval()
    generator = torch.Generator().manual_seed(2)
    for parameter in built.parameters():  # large enough for every part to matter
        parameter.data.normal_(std=0.4, generator=generator)
    return built


def tokens(B: int = 3, n: int = L) -> torch.Tensor:
    return torch.randint(0, V, (B, n), generator=torch.Generator().manual_seed(3))


def allowed(reach: int, lengths: torch.Tensor = LENGTHS) -> torch.Tensor:
    """What a local layer may see, cell by cell."""
    i = torch.arange(L)
    near = (i[:, None] - i).abs() <= reach
    return near & (i < lengths[:, None])[:, None, None, :]  # (B, 1, L, L)


@pytest.mark.parametrize("kind", ["rotary", "learned", "alibi", "relative", "sinusoidal", "none"])
@pytest.mark.parametrize("window", [1, 3, 5, 99])
def test_a_window_is_the_dense_mask_of_it(kind: str, window: int) -> None:
    local = model(window=window, positions=Positions(kind=kind))
    plain = build(config(window=None, positions=Positions(kind=kind))).double().eval()
    plain.load_state_dict(local.state_dict())
    real = torch.arange(L) < LENGTHS[:, None]
    with torch.no_grad():
        got = local(tokens(), mask=gf.Padding(LENGTHS))
        expected = plain(tokens(), mask=gf.Explicit(allowed(window // 2)))
        alone = local(tokens())
        wide = plain(tokens())
    assert_close(got[real], expected[real], 1e-12)
    assert torch.allclose(alone, wide, atol=1e-9) == (window == 99)


def test_as_far_to_the_right_as_to_the_left() -> None:
    """Three layers with a window of 5 carry a change 6 tokens each way; a global one, anywhere."""
    x, middle = tokens(1), 8
    changed = x.clone()
    changed[:, middle] = (x[:, middle] + 1) % V
    for layers, reach in (((), 6), ((1,), L)):
        built = model(global_layers=layers)
        with torch.no_grad():
            moved = (built(changed) - built(x)).abs().amax((0, 2)) > 1e-9
        assert moved.tolist() == [abs(i - middle) <= reach for i in range(L)]


@pytest.mark.plain  # FlexAttention compiles
@pytest.mark.parametrize("backend", ["reference", "sdpa", "streaming", "flex"])
def test_every_backend_computes_the_window(backend: str) -> None:
    if backend == "flex" and not flex.has_avx2():
        pytest.skip("FlexAttention has no kernels for this processor")
    generator = torch.Generator().manual_seed(4)
    q, k, v = (torch.randn(3, n, L, 4, generator=generator) for n in (2, 1, 1))
    for reach in (0, 2, 5, 40):
        mask = gf.Window(left=reach, right=reach) & gf.Padding(LENGTHS)
        got = gf.attention(q, k, v, mask=mask, backend=backend)
        scores = (q @ k.mT / 2).double().masked_fill(~allowed(reach), -torch.inf)
        expected = scores.softmax(-1).nan_to_num(0.0) @ v.double()  # padding may see nothing
        assert_close(got.double(), expected, 1e-5)


def test_watching_shows_the_window() -> None:
    built = model(global_layers=(1,))
    mask = gf.Padding(LENGTHS)
    with torch.no_grad(), gf.watch(built) as trace:
        seen = built(tokens(), mask=mask)
    with torch.no_grad():
        assert_same(seen, built(tokens(), mask=mask))
    near = gf.Window(left=2, right=2) & mask
    assert [repr(site.mask) for site in trace] == [repr(near), repr(mask), repr(near)]
    for site, reach in zip(trace, (2, L, 2), strict=True):
        for b in range(3):
            weights, cells = site.weights(sequence=b), allowed(reach)[b, 0]
            assert (weights[:, cells] > 0).all()
            assert torch.equal(weights * ~cells, torch.zeros_like(weights))
            rows = weights.sum(-1)
            assert_close(rows, cells.any(-1).double().expand_as(rows), 1e-9)


def test_statistics_count_within_the_window() -> None:
    built = model(torch.float32)
    with torch.no_grad(), gf.watch(built) as trace:
        built(tokens(1))
    site = trace["encoder.2.self"]
    weights = torch.stack([site.weights(head=h) for h in range(2)]).double()
    assert_zero(weights[:, ~allowed(2, torch.tensor([L]))[0, 0]])
    assert_close(site.received().double(), weights.sum(1), 1e-5)
    entropy = -torch.xlogy(weights, weights).sum(-1)
    assert_close(site.entropy().double(), entropy, 1e-5)
    top = site.top(head=1, k=3)
    distance = (top.indices - torch.arange(L)[:, None]).abs()
    assert int(distance[top.weights > 0].max()) <= 2


def test_two_rotary_bases() -> None:
    """Queries and keys are turned by the base of their layer, global or local."""
    positions = Positions(kind="rotary", base=500.0, local_base=7.0)
    built = model(n_layers=2, global_layers=(0,), positions=positions)
    heard = {}
    for i, block in enumerate(built.encoder.blocks):
        block.attention.qkv.register_forward_hook(
            lambda _module, _args, out, i=i: heard.update({i: out})
        )
    with torch.no_grad(), gf.watch(built) as trace:
        built(tokens(1))
    for i, base in enumerate((500.0, 7.0)):
        heads = heard[i].unflatten(-1, (-1, 6)).transpose(1, 2)  # (1, 2 + 1 + 1, L, 6)
        tables = Rotary(6, base=base).tables(torch.arange(L))
        site = trace[f"encoder.{i}.self"]
        assert_close(site.q, rotate(heads[:, :2], *tables), 1e-12)
        assert_close(site.k, rotate(heads[:, 2:3], *tables), 1e-12)


def test_without_a_norm_before_the_first_attention() -> None:
    built = model(norms=Norms(embedding=True, first=False, bias=False), global_layers=(0,))
    names = [name for name in built.state_dict() if "attention_norm" in name]
    assert names == [f"encoder.blocks.{i}.attention_norm.weight" for i in (1, 2)]
    heard = {}
    first = built.encoder
    first.embedding_norm.register_forward_hook(lambda _m, _a, out: heard.update(normed=out))
    first.blocks[0].attention.register_forward_pre_hook(lambda _m, args: heard.update(read=args[0]))
    with torch.no_grad(), gf.watch(built, residual=True, outputs=True) as trace:
        built(tokens(1))
    assert_same(heard["read"], heard["normed"])
    for i, name in enumerate(trace.names):
        row = read_block_row(built, trace, name, head=1, query=9)
        assert row.changed() == [] and (row.norm is None) == (i == 0)


@pytest.mark.parametrize("has_bias", [True, False])
def test_the_biases_of_the_head(has_bias: bool) -> None:
    built = build(config(output=Output(head_bias=has_bias)))
    assert built.head.dense.out_features == 12
    assert ("head.dense.bias" in built.state_dict()) == has_bias
    assert ("head.norm.bias" in built.state_dict()) == has_bias
    assert "head.bias" in built.state_dict()


def test_all_of_it_learns() -> None:
    positions = Positions(kind="rotary", base=500.0, local_base=7.0)
    built = model(
        global_layers=(0,),
        positions=positions,
        norms=Norms(embedding=True, first=False),
        output=Output(head_bias=False),
    ).train()
    hidden = built(tokens(), mask=gf.Padding(LENGTHS))
    built.fill(hidden)[:, 0].logsumexp(-1).sum().backward()
    for name, parameter in built.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.plain
def test_an_encoder_with_windows_compiles_into_one_graph() -> None:
    built = model(torch.float32, global_layers=(1,))
    compiled = torch.compile(built, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        mask = gf.Padding(LENGTHS)
        real = torch.arange(L) < LENGTHS[:, None]
        assert_close(compiled(tokens(), mask=mask)[real], built(tokens(), mask=mask)[real], 1e-5)


def test_shapes_name_both_masks_and_both_bases() -> None:
    positions = Positions(kind="rotary", local_base=7.0)
    sections = shapes(config(n_layers=4, global_layers=(0, 3), positions=positions)).sections()
    blocks = {s.blocks: [step.operation for step in s.steps] for s in sections if s.blocks}
    assert list(blocks) == [(0, 3), (1, 2)]
    assert "mask" not in blocks[0, 3] and "mask" in blocks[1, 2]
    assert [s.operation for s in sections[0].steps].count("angles") == 2


def test_the_encoder_of_a_translator_has_no_window_and_keeps_its_mask() -> None:
    """Also in layers whose number is that of a global layer of the decoder."""
    built = model(family="encoder_decoder", window=3, global_layers=(0, 2))
    source = tokens()
    other = source.clone()
    other[torch.arange(L) >= LENGTHS[:, None]] = 5  # padding
    assert not torch.equal(source, other)
    real = torch.arange(L) < LENGTHS[:, None]
    with torch.no_grad(), gf.watch(built) as trace:
        one, two = (built.encode(x, mask=gf.Padding(LENGTHS)) for x in (source, other))
    assert_same(one[real], two[real])
    assert {repr(site.mask) for site in trace} == {repr(gf.Padding(LENGTHS))}


def test_a_decoder_without_its_first_norm_decodes_by_its_modules() -> None:
    built = model(torch.float32, family="decoder", window=None, norms=Norms(first=False))
    assert refusal(built) == "the first block has no norm before attention"
    row = torch.tensor([[1, 2, 3]])
    written = generate_tokens(built, [[1, 2, 3]], max_new_tokens=8)
    for _ in range(8):
        row = torch.cat([row, built(row)[:, -1:].argmax(-1)], 1)
    assert written[0] == row[0, 3:].tolist()


def test_a_decoder_with_two_bases_decodes_by_its_modules() -> None:
    positions = Positions(kind="rotary", base=500.0, local_base=7.0)
    sizes = {"family": "decoder", "window": 3, "global_layers": (1,), "positions": positions}
    built = model(torch.float32, **sizes)
    assert refusal(built) == "some layers have no window"
    row = torch.tensor([[1, 2, 3]])
    written = generate_tokens(built, [[1, 2, 3]], max_new_tokens=8)
    for _ in range(8):
        row = torch.cat([row, built(row)[:, -1:].argmax(-1)], 1)
    assert written[0] == row[0, 3:].tolist()


@pytest.mark.plain
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"window": 4}, r"window must be odd: .* got window=4\. Use 3 or 5"),
        ({"window": 0}, r"window must be at least 1; got 0"),
        ({"family": "vision"}, r"window is for models of text; got window=5 for family='vision'"),
        ({"global_layers": (3,)}, r"global_layers must be layers below 3.*got \(3,\)"),
        (
            {"positions": Positions(kind="rotary", local_base=7.0)},
            r"local_base is for encoders and decoders .*window=5, global_layers=\(\)",
        ),
        (
            {
                "family": "encoder_decoder",
                "global_layers": (0,),
                "positions": Positions(kind="rotary", local_base=7.0),
            },
            r"local_base is for encoders and decoders .*family='encoder_decoder'",
        ),
    ],
)
def test_refusals(changes: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        config(**changes)


@pytest.mark.plain
def test_refusals_of_parts() -> None:
    with pytest.raises(ConfigError, match=r"can have a local_base; got kind='learned'"):
        Positions(kind="learned", local_base=7.0)
    with pytest.raises(ConfigError, match=r"positions.local_base must be .*1"):
        Positions(kind="rotary", local_base=1.0)
    with pytest.raises(ConfigError, match=r"norms.first=False with place='post'"):
        Norms(place="post", first=False)
