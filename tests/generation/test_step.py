"""A step from the weights alone gives the logits of the modules, and is taken when nobody looks."""

import pytest
import torch
from torch import nn

import glassformer as gf
from closeness import assert_close
from generation.step_models import CHANGES, PROMPTS, SOURCES, V, make
from glassformer.generation import beam_search, generate_tokens
from glassformer.generation.direct import DirectSession
from glassformer.generation.sessions import DecodingSession, start_session
from glassformer.models import Config, Positions, build
from glassformer.models.decoder_weights import refusal

names = pytest.mark.parametrize("name", CHANGES)


def sources(model: nn.Module, n: int = 3) -> list[list[int]] | None:
    return SOURCES[:n] if model.config.family == "encoder_decoder" else None


@names
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("prompts", [PROMPTS, [[3], [1], [4]], [[2, 7, 1, 8, 2, 8, 1, 8, 2]]])
def test_the_logits_of_the_modules(name: str, dtype: torch.dtype, prompts: list) -> None:
    model = make(name, dtype)
    exact = make(name, torch.float64)
    exact.load_state_dict({k: v.double() for k, v in model.state_dict().items()})
    options = {"source": sources(model, len(prompts)), "max_new_tokens": 21}
    with torch.no_grad():
        direct = DirectSession(model, prompts, **options)
        plain = DecodingSession(model, prompts, **options)
        truth = DecodingSession(exact, prompts, **options)
        for _ in range(20):  # more keys than a vector register, and than the window
            expected = truth.next_logits()
            theirs = (plain.next_logits().double() - expected).abs().max()
            ours = (direct.next_logits().double() - expected).abs().max()
            unit = torch.finfo(dtype).eps * expected.abs().max()
            assert ours <= 3 * theirs + 32 * unit
            for session in (direct, plain, truth):
                session.append(expected.argmax(-1))


@names
def test_int8_weights_give_the_logits_of_the_modules(name: str) -> None:
    model = gf.quantize(make(name, torch.float32), "int8")
    options = {"source": sources(model), "max_new_tokens": 9}
    with torch.no_grad():
        direct = start_session(model, PROMPTS, **options)
        assert isinstance(direct, DirectSession)
        plain = DecodingSession(model, PROMPTS, **options)
        for _ in range(8):
            expected = plain.next_logits()
            # Activations are rounded to 255 steps: a rounding before may move one by a step.
            unit = expected.abs().max() / 127
            assert_close(direct.next_logits(), expected, float(2 * unit))
            for session in (direct, plain):
                session.append(expected.argmax(-1))


@names
def test_beams_move_with_their_keys(name: str) -> None:
    model = make(name, torch.float64)
    hook = model.decoder.blocks[0].register_forward_hook(lambda *_: None)
    options = {"source": sources(model), "max_new_tokens": 12, "beams": 3, "n_best": 2}
    plain = beam_search(model, PROMPTS, **options)
    hook.remove()
    assert refusal(model) is None
    for ours, theirs in zip(beam_search(model, PROMPTS, **options), plain, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert a.tokens == b.tokens
            assert a.score == pytest.approx(b.score, rel=1e-9)


@names
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_texts_that_have_ended_are_left_out(name: str, dtype: torch.dtype, monkeypatch) -> None:
    """In beam search and greedily; in float32 by the C code, where there is one."""
    model = make(name, dtype)
    prompts = [*PROMPTS, [8, 8], [2, 7, 1, 8]]
    source = None if sources(model) is None else [*SOURCES, [4], [3, 1, 3]]
    options = {"source": source, "max_new_tokens": 14, "stop": [*range(0, V, 5)]}
    kept: list[list[int]] = []
    keep = DirectSession.keep
    monkeypatch.setattr(
        DirectSession, "keep", lambda self, which: (kept.append(which.tolist()), keep(self, which))
    )
    hook = model.decoder.blocks[0].register_forward_hook(lambda *_: None)
    plain = beam_search(model, prompts, beams=3, **options)
    greedy = generate_tokens(model, prompts, **options)
    assert not kept, "whoever watches sees every row to the end"
    hook.remove()
    assert [text[0].tokens for text in beam_search(model, prompts, beams=3, **options)] == [
        text[0].tokens for text in plain
    ]
    n_beams = len(kept)
    assert generate_tokens(model, prompts, **options) == greedy
    assert n_beams and len(kept) > n_beams, "some texts end before others"


def test_copies_share_one_encoding() -> None:
    model = make("translator", torch.float64)
    lengths = []
    hook = model.encoder.register_forward_hook(lambda _m, _i, out: lengths.append(len(out)))
    beam_search(model, [[3]] * 3, source=SOURCES, max_new_tokens=4, beams=4)
    hook.remove()
    assert lengths == [3]


def changed_class(model: nn.Module) -> None:
    class Own(type(model.decoder.blocks[0])):
        pass

    model.decoder.blocks[0].__class__ = Own


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("hooks on decoder", lambda m: m.decoder.blocks[1].register_forward_hook(lambda *_: None)),
        ("hooks on head", lambda m: m.head.register_forward_pre_hook(lambda *_: None)),
        ("training mode", lambda m: m.train()),
        ("no module of ours", changed_class),
        ("no module of ours", lambda m: setattr(m.head, "forward", m.head.forward)),
        ("differ in dtype", lambda m: m.head.double()),
    ],
)
def test_whoever_looks_or_changes_gets_the_modules(reason: str, change) -> None:
    model = make("rotary", torch.float32)
    assert isinstance(start_session(model, [[1]], source=None, max_new_tokens=2), DirectSession)
    change(model)
    assert reason in str(refusal(model))
    session = start_session(model, [[1]], source=None, max_new_tokens=2)
    assert isinstance(session, DecodingSession)


def test_a_watched_model_is_called_by_its_modules() -> None:
    model = make("rotary", torch.float64)
    alone = generate_tokens(model, PROMPTS, max_new_tokens=9)
    with gf.watch(model) as trace:
        assert "listens" in str(refusal(model))
        assert generate_tokens(model, PROMPTS, max_new_tokens=9) == alone
    assert trace["decoder.1.self"].arithmetic(head=0, query=1, key=0) is not None
    assert refusal(model) is None


def test_hooks_on_all_modules_count() -> None:
    model = make("rotary", torch.float32)
    hook = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert "hooks on all modules" in str(refusal(model))
    finally:
        hook.remove()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert "autocast" in str(refusal(model))


@pytest.mark.parametrize(
    ("reason", "options"),
    [
        ("are a bias", {"positions": Positions(kind="alibi")}),
        ("soft-capped", {"softcap": 5.0}),
        ("not positive", {"attention_scale": -1.0}),
    ],
)
def test_what_a_step_cannot_do(reason: str, options: dict) -> None:
    sizes = {"vocab_size": V, "dim": 8, "n_layers": 1, "n_heads": 2, "max_len": 16}
    model = build(Config(family="decoder", **sizes, **options)).eval()
    assert reason in str(refusal(model))
    assert len(generate_tokens(model, [[1, 2]], max_new_tokens=3)[0]) == 3


def test_changed_weights_are_seen() -> None:
    model = make("learned", torch.float32)
    before = generate_tokens(model, PROMPTS, max_new_tokens=9)
    with torch.no_grad():
        model.decoder.blocks[0].feed_forward.up.weight.neg_()
        model.head.weight.neg_()
    after = generate_tokens(model, PROMPTS, max_new_tokens=9)
    assert after != before
    model.decoder.blocks[0].register_forward_hook(lambda *_: None)
    assert generate_tokens(model, PROMPTS, max_new_tokens=9) == after


def test_gelu_and_products_are_the_plain_ones() -> None:
    from glassformer.generation.products import gelu, multiply, prepare_weights

    for shape in ((1, 6), (3, 5), (4, 1024)):
        x = torch.randn(shape, dtype=torch.float64)
        assert_close(gelu(x), nn.functional.gelu(x), 1e-15)
    half = torch.randn(3, 8, dtype=torch.float64).chunk(2, dim=-1)[1]  # as a gate lies in memory
    assert_close(gelu(half), nn.functional.gelu(half), 1e-15)
    model = make("learned", torch.float64)
    for batch in (1, 4):
        weights = prepare_weights(model, batch)
        linear = weights.stack.layers[1].feed_forward.down
        x = torch.randn(batch, linear.weight.shape[1], dtype=torch.float64)
        expected = nn.functional.linear(x, linear.weight, linear.bias)
        assert_close(multiply(x, linear), expected, 1e-13)


@pytest.mark.plain  # checked types hide from no_grad that a function is a generator
@pytest.mark.parametrize("is_int8", [False, True])
def test_a_model_made_in_inference_mode_is_called_by_its_modules(is_int8: bool) -> None:
    with torch.inference_mode():
        model = make("rotary", torch.float32)
        model = gf.quantize(model, "int8") if is_int8 else model
    assert "is an inference tensor" in str(refusal(model))
    expected = make("rotary", torch.float32)
    expected = gf.quantize(expected, "int8") if is_int8 else expected
    written = [generate_tokens(each, PROMPTS, max_new_tokens=6) for each in (model, expected)]
    assert written[0] == written[1]


def test_parameters_of_another_kind_are_refused_before_their_addresses_are_asked_for() -> None:
    class Odd(nn.Parameter):
        def data_ptr(self) -> int:
            raise RuntimeError("it has no address")

    model = make("rotary", torch.float32)
    model.head.weight = Odd(model.head.weight.detach())
    assert "head.weight is a Odd" in str(refusal(model))
