"""All three families with every kind of position: causality, caches, padding, compilation."""

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.errors import ConfigError, ShapeError
from glassformer.generation import generate_tokens
from glassformer.models import (
    Config,
    Decoder,
    Dropout,
    Encoder,
    EncoderDecoder,
    Norms,
    Output,
    Positions,
    build,
)
from glassformer.models.decoder_weights import refusal

V, C, L, S = 13, 12, 7, 5
KINDS = ("none", "sinusoidal", "learned", "rotary", "alibi", "relative")
kinds = pytest.mark.parametrize("kind", KINDS)


def config(family: str, kind: str, **changes) -> Config:
    plain = {
        "family": family,
        "vocab_size": V,
        "dim": C,
        "n_layers": 2,
        "n_heads": 2,
        "n_kv_heads": 1,
        "max_len": 16,
        "positions": Positions(kind=kind),
    }
    return Config(**(plain | changes))


def model(family: str, kind: str, **changes) -> torch.nn.Module:
    built = build(config(family, kind, **changes)).double().eval()
    for parameter in built.parameters():  # large enough for every part to matter
        torch.nn.init.normal_(parameter, std=0.4)
    return built


def tokens(B: int = 2, n: int = L) -> torch.Tensor:
    return torch.randint(0, V, (B, n))


@kinds
def test_the_future_cannot_change_the_past(kind: str) -> None:
    decoder = model("decoder", kind)
    x = tokens()
    before = decoder(x)
    x[:, 4] = (x[:, 4] + 1) % V
    after = decoder(x)
    assert_close(after[:, :4], before[:, :4], 1e-12)
    assert (after[:, 4:] - before[:, 4:]).abs().amax((0, 2)).min() > 1e-6


@kinds
def test_order_matters_unless_there_are_no_positions(kind: str) -> None:
    encoder = model("encoder", kind)
    x = tokens()
    order = torch.randperm(L)
    same = torch.allclose(encoder(x[:, order]), encoder(x)[:, order], atol=1e-9)
    assert same == (kind == "none")


@kinds
@pytest.mark.parametrize("static", [False, True])
def test_steps_with_a_cache_are_the_whole(kind: str, static: bool) -> None:
    decoder = model("decoder", kind)
    x = tokens()
    cache = decoder.new_cache(2, max_len=11 if static else None)
    with torch.no_grad():
        whole = decoder(x)
        pieces = [decoder(x[:, a:b], cache=cache) for a, b in ((0, 3), (3, 4), (4, 5), (5, 7))]
    assert_close(torch.cat(pieces, 1), whole, 1e-10)


@pytest.mark.parametrize("static", [False, True])
def test_a_window_reaches_as_far_as_it_says(static: bool) -> None:
    decoder = model("decoder", "rotary", window=3, n_layers=1)
    x = tokens()
    cache = decoder.new_cache(2, max_len=11 if static else None)
    with torch.no_grad():
        before = decoder(x)
        pieces = [decoder(x[:, a:b], cache=cache) for a, b in ((0, 3), (3, 4), (4, 5), (5, 7))]
        x[:, 2] = (x[:, 2] + 1) % V
        changed = (decoder(x) - before).abs().amax((0, 2)) > 1e-9
    assert_close(torch.cat(pieces, 1), before, 1e-10)
    assert changed.tolist() == [False, False, True, True, True, False, False]


@kinds
@pytest.mark.parametrize("static", [False, True])
def test_translation_steps_are_the_whole(kind: str, static: bool) -> None:
    both = model("encoder_decoder", kind, n_decoder_layers=3)
    source, x, lengths = tokens(2, S), tokens(), torch.tensor([S, 3])
    padding = gf.Padding(lengths)
    cache = both.new_cache(2, max_len=11 if static else None)
    with torch.no_grad():
        whole = both(source, x, source_mask=padding)
        context = both.encode(source, mask=padding)
        pieces = [
            both.decode(x[:, a:b], context, context_mask=padding, cache=cache)
            for a, b in ((0, 2), (2, 3), (3, 7))
        ]
    assert_close(torch.cat(pieces, 1), whole, 1e-10)


@kinds
def test_padding_changes_nothing(kind: str) -> None:
    """A short text in a padded batch comes out as it does alone."""
    encoder, decoder = model("encoder", kind), model("decoder", kind)
    both = model("encoder_decoder", kind)
    x, source = tokens(), tokens(2, S)
    padding = gf.Padding(torch.tensor([L, 4]))
    assert_close(encoder(x, mask=padding)[1, :4], encoder(x[1:, :4])[0], 1e-10)
    assert_close(decoder(x, mask=padding)[1, :4], decoder(x[1:, :4])[0], 1e-10)
    got = both(source, x, source_mask=gf.Padding(torch.tensor([S, 3])))
    assert_close(got[1], both(source[1:, :3], x[1:])[0], 1e-10)


def test_beams_and_cropping_through_the_model_cache() -> None:
    decoder = model("decoder", "rotary")
    x = tokens(3)
    cache = decoder.new_cache(3)
    decoder(x[:, :5], cache=cache)
    order = torch.tensor([2, 0, 0])
    cache.reorder(order)
    cache.crop(4)
    got = decoder(x[:, 4:], cache=cache)
    expected = decoder(torch.cat([x[order, :4], x[:, 4:]], 1))[:, 4:]
    assert_close(got, expected, 1e-10)
    cache.reset()
    assert cache.length == 0


def test_token_types_heads_and_embeddings() -> None:
    encoder = model(
        "encoder", "learned", n_token_types=2, norms=Norms(place="post", embedding=True)
    )
    x = tokens()
    hidden = encoder(x)
    types = torch.ones_like(x)
    assert not torch.allclose(encoder(x, token_types=types), hidden)
    assert encoder.fill(hidden).shape == (2, L, V)
    telling = model("encoder", "rotary", output=Output(classes=("no", "yes", "maybe")))
    assert telling.classify(telling(x)).shape == (2, 3)
    vectors = encoder.embed(x, lengths=torch.tensor([L, 4]))
    assert_close(vectors.norm(dim=-1), torch.ones(2).double(), 1e-12)
    assert_close(vectors[1], encoder.embed(x[1:, :4])[0], 1e-10)


@pytest.mark.parametrize("tied", [False, True])
def test_tied_outputs_share_the_embedding(tied: bool) -> None:
    for family in ("decoder", "encoder_decoder"):
        built = build(config(family, "rotary", output=Output(tied=tied)))
        assert hasattr(built.head, "weight") != tied


def test_gradients_reach_every_parameter() -> None:
    x = tokens()
    for family, kind in (
        ("encoder", "learned"),
        ("decoder", "relative"),
        ("encoder_decoder", "alibi"),
    ):
        built = model(family, kind, dropout=Dropout.everywhere(0.1), n_token_types=2).train()
        if family == "encoder":
            out = built.fill(built(x))
        else:
            out = built(x) if family == "decoder" else built(tokens(2, S), x)
        out.square().sum().backward()
        for name, parameter in built.named_parameters():
            assert parameter.grad is not None and parameter.grad.abs().sum() > 0, (family, name)


@pytest.mark.plain
def test_refusals() -> None:
    decoder = model("decoder", "learned")
    encoder = build(config("encoder", "rotary", output=Output(masked_tokens=False)))
    with pytest.raises(ConfigError, match=r"no head for masked tokens"):
        encoder.fill(torch.zeros(1, L, C))
    with pytest.raises(ConfigError, match=r"no classes to tell apart"):
        encoder.classify(torch.zeros(1, L, C))
    with pytest.raises(ShapeError, match=r"max_len=16 tokens have a place; got 17"):
        decoder(tokens(1, 17))
    cache = decoder.new_cache()
    decoder(tokens(1, 10), cache=cache)
    with pytest.raises(ShapeError, match=r"max_len=16.*got 17"):
        decoder(tokens(1, 7), cache=cache)
    with pytest.raises(ShapeError, match=r"0 … 12; got 13 to 13"):
        decoder(torch.tensor([[13]]))
    with pytest.raises(ConfigError, match=r"Presets are transformer-base.*got 'gpt-9'"):
        build("gpt-9")
    for family, kind in (("decoder", Encoder), ("encoder", Decoder), ("decoder", EncoderDecoder)):
        with pytest.raises(ConfigError, match=f"needs family='.*got '{family}'"):
            kind(config(family, "none"))


@pytest.mark.plain
@kinds
def test_forward_compiles_into_one_graph(kind: str) -> None:
    for family in ("encoder", "decoder", "encoder_decoder"):
        built = model(family, kind)
        inputs = (tokens(2, S), tokens()) if family == "encoder_decoder" else (tokens(),)
        compiled = torch.compile(built, fullgraph=True, backend="aot_eager")
        with torch.no_grad():
            assert_close(compiled(*inputs), built(*inputs), 1e-10)


@pytest.mark.plain
@kinds
@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_decoding_a_hundred_tokens_compiles_once(family: str, kind: str) -> None:
    """One graph for every step over a cache of fixed size, and the scores of the whole."""
    built = model(family, kind, max_len=101, window=20)
    x, source = tokens(2, 100), tokens(2, S)
    torch._dynamo.reset()  # it counts the graphs of a function, whatever model they are of
    graphs = []

    def counting(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    with torch.no_grad():
        cache = built.new_cache(2, max_len=101)
        if family == "decoder":
            whole, read = built(x), built
        else:
            whole, context = built(source, x), built.encode(source)

            def read(token, *, cache):
                return built.decode(token, context, cache=cache)

        step = torch.compile(
            lambda token: read(token, cache=cache), fullgraph=True, backend=counting
        )
        # The first step keeps the context's keys; from then on they are there.
        first = read(x[:, :1], cache=cache)
        got = torch.cat([first, *(step(x[:, i : i + 1]) for i in range(1, 100))], 1)
    assert_close(got, whole, 1e-10)
    assert len(graphs) == 1


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_global_layers_reach_beyond_the_window(family: str, static: bool) -> None:
    """Two layers with a window of 2 reach 3 tokens; with a global one, all of them."""
    x, source = tokens(), tokens(2, S)
    for global_layers, reach in (((), 3), ((1,), L)):
        built = model(family, "rotary", window=2, global_layers=global_layers)
        given = (x,) if family == "decoder" else (source, x)
        cache = built.new_cache(2, max_len=11 if static else None)
        with torch.no_grad():
            before = built(*given)
            cuts = ((0, 3), (3, 4), (4, 7))
            if family == "decoder":
                pieces = [built(x[:, a:b], cache=cache) for a, b in cuts]
            else:
                context = built.encode(source)
                pieces = [built.decode(x[:, a:b], context, cache=cache) for a, b in cuts]
            changed = x.clone()
            changed[:, 0] = (x[:, 0] + 1) % V
            after = built(changed) if family == "decoder" else built(source, changed)
        assert_close(torch.cat(pieces, 1), before, 1e-10)
        moved = (after - before).abs().amax((0, 2)) > 1e-9
        assert moved.tolist() == [i < reach for i in range(L)]


def test_a_model_with_global_layers_decodes_by_its_modules() -> None:
    built = model("decoder", "rotary", window=2, global_layers=(0,)).float()
    assert refusal(built) == "some layers have no window"
    written = generate_tokens(built, [[1, 2, 3]], max_new_tokens=8)
    row = torch.tensor([[1, 2, 3]])
    for _ in range(8):
        row = torch.cat([row, built(row)[:, -1:].argmax(-1)], 1)
    assert written[0] == row[0, 3:].tolist()
    with torch.no_grad(), gf.watch(built) as trace:
        built(row)
    assert [repr(site.mask) for site in trace] == [
        "Causal()",
        repr(gf.Causal() & gf.Window(left=1)),
    ]


@pytest.mark.plain
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"global_layers": (0,)}, r"global_layers=\(0,\) without a window"),
        ({"window": 3, "global_layers": (2,)}, r"layers below 2, in order, each once; got \(2,\)"),
        ({"window": 3, "global_layers": (1, 0)}, r"global_layers must be .*; got \(1, 0\)"),
    ],
)
def test_global_layers_that_cannot_be(changes: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        config("decoder", "rotary", **changes)
