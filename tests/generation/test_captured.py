"""Decoding by CUDA graphs: the tokens of the plain loop, whatever is asked for."""

import pytest
import torch

from generation.step_models import CHANGES, PROMPTS, SOURCES, make
from glassformer.errors import ConfigError
from glassformer.generation import Sampling, beam_search, generate_tokens, sessions, stream_tokens
from glassformer.generation.captured import CapturedSession, _engines, round_up

pytestmark = pytest.mark.gpu
GREEDY = Sampling(temperature=0)
DRAWN = Sampling(temperature=0.8, top_k=9, top_p=0.9, repetition_penalty=1.3)


def by_modules(model, monkeypatch: pytest.MonkeyPatch, decode):
    with monkeypatch.context() as patch:
        patch.setattr(sessions, "refusal", lambda _: "asked for the modules")
        return decode(model)


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("sampling", [GREEDY, DRAWN])
@pytest.mark.parametrize("repeat", [1, 3])
def test_tokens_of_the_plain_loop(
    name: str, sampling: Sampling, repeat: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(name, torch.float32, "cuda")
    source = SOURCES * repeat if model.config.family == "encoder_decoder" else None

    def decode(model):
        return generate_tokens(
            model,
            PROMPTS * repeat,
            source=source,
            max_new_tokens=70,
            sampling=sampling,
            stop=[11],
            never=[7, 8],
            seed=5,
        )

    assert decode(model) == by_modules(model, monkeypatch, decode)
    assert decode(model) == by_modules(model, monkeypatch, decode)  # by the engine that waited


@pytest.mark.parametrize("name", CHANGES)
def test_beams_of_the_plain_search(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(name, torch.float32, "cuda")
    source = SOURCES if model.config.family == "encoder_decoder" else None

    def decode(model):
        return beam_search(model, PROMPTS, source=source, max_new_tokens=20, beams=3)

    for (ours,), (theirs,) in zip(
        decode(model), by_modules(model, monkeypatch, decode), strict=True
    ):
        assert ours.tokens == theirs.tokens
        assert ours.score == pytest.approx(theirs.score, rel=1e-4)


def test_steps_carry_their_own_logits() -> None:
    model = make("rotary", torch.float32, "cuda")
    steps = list(stream_tokens(model, PROMPTS, max_new_tokens=9))
    for step in steps:
        assert step.tokens.tolist() == step.logits.argmax(-1).tolist()
    assert len({tuple(step.logits[0].tolist()) for step in steps}) == 9


def test_engines_are_used_again_until_the_weights_change() -> None:
    model = make("rotary", torch.float32, "cuda")
    first = generate_tokens(model, PROMPTS, max_new_tokens=20)
    (engine,) = _engines[model]
    assert generate_tokens(model, PROMPTS, max_new_tokens=30)[0][:20] == first[0]
    assert _engines[model] == [engine]
    with torch.no_grad():
        model.head.weight.neg_()
    assert generate_tokens(model, PROMPTS, max_new_tokens=20) != first
    assert engine not in _engines[model]


def test_two_streams_at_once() -> None:
    model = make("rotary", torch.float32, "cuda")
    alone = generate_tokens(model, PROMPTS, max_new_tokens=20)
    pairs = zip(
        stream_tokens(model, PROMPTS, max_new_tokens=20),
        stream_tokens(model, PROMPTS, max_new_tokens=20),
        strict=True,
    )
    rows = [step.tokens.tolist() for step, _ in pairs]
    assert [list(column) for column in zip(*rows, strict=True)] == alone


def test_nan_is_reported() -> None:
    model = make("rotary", torch.float32, "cuda")
    with torch.no_grad():
        model.decoder.final_norm.weight.fill_(torch.nan)
    for sampling in (GREEDY, DRAWN):
        with pytest.raises(ConfigError, match="got NaN in row 0"):
            generate_tokens(model, PROMPTS, max_new_tokens=20, sampling=sampling)


def test_short_texts_are_not_captured() -> None:
    model = make("rotary", torch.float32, "cuda")
    few = sessions.start_session(model, [[1]], source=None, max_new_tokens=3)
    assert isinstance(few, sessions.DecodingSession)
    many = sessions.start_session(model, [[1]], source=None, max_new_tokens=30)
    assert isinstance(many, CapturedSession)
    assert round_up(129) == 256
