"""Layers in C give what modules give, on one thread or several, and give way where they must."""

import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_same
from generation.step_models import CHANGES, SOURCES, make
from glassformer.errors import ShapeError
from glassformer.generation import (
    generate_tokens,
    native_matrices,
    native_stack,
    native_step,
)
from glassformer.generation.direct import DirectSession
from glassformer.generation.native_step import NativeStep, encode, find_native
from glassformer.generation.prompts import encode_source
from glassformer.generation.sessions import DecodingSession
from glassformer.models import Config, Positions, build

_library = native_stack.find_stack_library()
pytestmark = pytest.mark.skipif(
    _library is None or not _library.is_tuned(),
    reason="needs a C compiler, and NEON or AVX2",
)


@pytest.fixture(params=["rows", "panels"])
def layout(request, monkeypatch) -> str:
    """Matrices as they are, or laid out for many rows from the first call on."""
    if request.param == "panels":
        monkeypatch.setattr(native_stack, "_MANY", 1)
    return request.param


def logits_of(model, prompts, *, source=None, copies=1, steps=3) -> list[torch.Tensor]:
    options = {"source": source, "max_new_tokens": 9, "copies": copies}
    session = DirectSession(model, prompts, **options)
    assert isinstance(session.step, NativeStep)
    found = []
    for _ in range(steps):
        found.append(session.next_logits())
        session.append(found[-1].argmax(-1))
    return found


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("is_int8", [False, True])
@pytest.mark.usefixtures("layout", "two_threads")
def test_threads_change_nothing(name: str, is_int8: bool, monkeypatch) -> None:
    model = make(name, torch.float32)
    model = gf.quantize(model, "int8") if is_int8 else model
    source = SOURCES if model.config.family == "encoder_decoder" else None
    prompts = [[3, 1, 4, 1, 5], [9, 2], [6], *([n] for n in range(8))]
    source = source and [*source, *([n, 3] for n in range(8))]
    alone = logits_of(model, prompts, source=source)
    monkeypatch.setattr(native_stack, "_ONE_THREAD", 0)
    for ours, expected in zip(logits_of(model, prompts, source=source), alone, strict=True):
        assert_same(ours, expected)


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.usefixtures("layout")
def test_a_row_does_not_depend_on_the_others(name: str) -> None:
    model = make(name, torch.float32)
    is_translator = model.config.family == "encoder_decoder"
    prompts = [[3, 1, 4, 1, 5], [2, 7, 1, 8, 2], [1, 4, 1, 4, 2], [5, 5, 5, 5, 5], [0, 1, 2, 3, 4]]
    source = [[2, 7, 1]] * 5 if is_translator else None
    together = logits_of(model, prompts, source=source)
    for i, prompt in enumerate(prompts):
        alone = logits_of(model, [prompt], source=source and source[:1])
        for ours, expected in zip(together, alone, strict=True):
            assert_close(ours[i : i + 1], expected, 2e-5 * float(expected.abs().max()))


@pytest.mark.parametrize("name", CHANGES)
def test_many_rows_give_the_logits_of_the_modules(name: str, layout: str) -> None:
    """Eleven rows are a panel and a rest; three copies each share their source."""
    model = make(name, torch.float32)
    prompts = [[n % 5 + 1, n, 7] for n in range(11)]
    is_translator = model.config.family == "encoder_decoder"
    source = [[n + 2, *([3] * (n % 3))] for n in range(11)] if is_translator else None
    session = DirectSession(model, prompts, source=source, max_new_tokens=9, copies=3)
    plain = DecodingSession(
        model,
        [each for each in prompts for _ in range(3)],
        source=source and [each for each in source for _ in range(3)],
        max_new_tokens=9,
    )
    assert isinstance(session.step, NativeStep)
    for _ in range(3):
        ours = session.next_logits()
        with torch.no_grad():
            expected = plain.next_logits()
        assert_close(ours, expected, 2e-5 * float(expected.abs().max()))
        session.append(expected.argmax(-1))
        plain.append(expected.argmax(-1))
    assert bool(session.step.reading.native.matrices.panels) == (layout == "panels")


def test_matrices_are_laid_out_for_many_rows_once_it_pays(monkeypatch) -> None:
    model = make("translator", torch.float32)
    native = find_native(model)
    assert native is not None
    native.decoder.least_rows = 8
    monkeypatch.setattr(native_stack, "_MANY", 27)
    source = [[4, 2]] * 3
    logits_of(model, [[1, 2, 3]] * 2, source=source[:2])  # six rows, then two
    assert not native.decoder.n_rows
    logits_of(model, [[1, 2, 3]] * 3, source=source)  # nine, then three
    logits_of(model, [[1, 2, 3]] * 3, source=source)
    assert native.decoder.n_rows == 18 and not native.decoder.matrices.panels
    logits_of(model, [[1, 2, 3]] * 3, source=source)
    assert len(native.decoder.matrices.panels) == len(native.decoder.weights.linears) + 1


def test_a_large_model_is_not_kept_twice(monkeypatch) -> None:
    monkeypatch.setattr(native_stack, "_MANY", 1)
    monkeypatch.setattr(native_matrices, "_MOST_PANELS", 1)
    model = make("translator", torch.float32)
    logits_of(model, [[1, 2, 3]] * 8, source=[[4, 2]] * 8)
    native = find_native(model)
    assert native is not None and native.decoder.n_rows and not native.decoder.matrices.panels


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "rotary"])
@pytest.mark.usefixtures("layout")
def test_encoding(kind: str) -> None:
    torch.manual_seed(0)
    sizes = {"vocab_size": 37, "dim": 24, "n_layers": 3, "n_heads": 4, "max_len": 32}
    positions = Positions(kind=kind)
    model = build(Config(family="encoder_decoder", **sizes, positions=positions)).eval()
    for source in (SOURCES, SOURCES[:1], [[5] * 31] * 8):
        with torch.no_grad():
            expected, mask = encode_source(model, source)
        ours = encode(model, find_native(model), source)
        assert ours is not None
        assert (ours[1] is None) == (mask is None)
        for row, wanted, text in zip(ours[0], expected, source, strict=True):
            assert_close(row[: len(text)], wanted[: len(text)], 1e-5)
    with pytest.raises(ShapeError, match="max_len=32" if kind == "learned" else "99"):
        encode(model, find_native(model), [[1] * 33] if kind == "learned" else [[99]])


def test_copies_read_the_context_of_their_prompt() -> None:
    model = make("translator", torch.float32)
    single = logits_of(model, [[3], [1], [4]], source=SOURCES)
    triple = logits_of(model, [[3], [1], [4]], source=SOURCES, copies=3)
    for ours, expected in zip(triple, single, strict=True):
        assert_close(ours, expected.repeat_interleave(3, dim=0), 1e-4)


def test_somebody_listens_to_the_encoder() -> None:
    model = make("translator", torch.float32)
    assert encode(model, find_native(model), SOURCES) is not None
    hook = model.encoder.blocks[0].register_forward_hook(lambda *_: None)
    assert encode(model, find_native(model), SOURCES) is None
    hook.remove()
    assert encode(model, find_native(model), SOURCES) is not None


def test_a_nan_stays_visible() -> None:
    model = make("rotary", torch.float32)
    with torch.no_grad():
        model.decoder.blocks[0].attention.qkv.weight[0, 0] = float("nan")
    assert logits_of(model, [[1, 2, 3]])[0].isnan().all()


def test_changed_weights_and_norms_are_seen() -> None:
    model = make("learned", torch.float32)
    first = find_native(model)
    assert find_native(model) is first
    model.decoder.blocks[0].attention_norm.eps *= 100
    second = find_native(model)
    assert second is not first
    with torch.no_grad():
        model.decoder.blocks[0].attention.out.weight.zero_()
    assert find_native(model) is not second


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("not contiguous", lambda m: _transpose(m.decoder.blocks[0].attention.out)),
        ("not float32", lambda m: m.double()),
        ("no C compiler", None),
    ],
)
def test_what_is_not_read_in_c(reason: str, change, monkeypatch) -> None:
    model = make("no positions, scale", torch.float32)
    if change is None:
        monkeypatch.setattr(native_stack, "find_stack_library", lambda: None)
    else:
        change(model)
    weights = gf.models.DecoderWeights.of(model)
    assert reason in str(native_stack.refusal(weights))
    assert find_native(model) is None
    assert len(generate_tokens(model, [[1, 2]], max_new_tokens=3)[0]) == 3


def _transpose(linear: torch.nn.Linear) -> None:
    linear.weight = torch.nn.Parameter(linear.weight.detach().t().contiguous().t())


def test_large_batches_and_long_prompts_go_to_pytorch(monkeypatch) -> None:
    monkeypatch.setattr(native_step, "MOST_ROWS", 4)
    monkeypatch.setattr("glassformer.generation.direct.MOST_ROWS", 4)
    model = make("translator", torch.float32)
    assert encode(model, find_native(model), SOURCES) is None
    session = DirectSession(model, [[1]] * 5, source=[[1, 2]] * 5, max_new_tokens=3)
    assert not isinstance(session.step, NativeStep)
