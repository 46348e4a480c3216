"""Logits of few tokens alone: what is written is what all logits give, by every way of decoding."""

import pytest
import torch
from torch import Tensor

import glassformer as gf
from closeness import assert_close
from generation.step_models import CHANGES, PROMPTS, SOURCES, V, make
from glassformer.errors import ConfigError
from glassformer.generation import (
    Sampling,
    beam_search,
    direct,
    generate_tokens,
    loop,
    sessions,
)
from glassformer.generation.choice_rule import Rule
from glassformer.generation.direct import DirectSession
from glassformer.generation.native_structures import find_stack_library
from glassformer.generation.output_selection import select_outputs
from glassformer.models import EncoderDecoder

WAYS = ("C", "operations", "modules")
FEW = [3, 4, 5, 6, 7, 8, 11, 13, 17, 18, 19, 23, 25, 29, 31, 32, 36]  # of 37
NEVER = [4, 9]


def allow_few(prompts: int) -> Tensor:
    """All prompts may have some of the same few tokens, each its own."""
    forbidden = torch.ones(prompts, V, dtype=torch.bool)
    forbidden[:, FEW] = False
    for row in range(prompts):
        forbidden[row, FEW[row + 1 :: 3]] = True
    return forbidden


def decode_by(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "C":
        library = find_stack_library()
        if library is None or not library.is_tuned():
            pytest.skip("needs a C compiler, and NEON or AVX2")
    elif way == "operations":
        monkeypatch.setattr(direct, "find_native", lambda _: None)
    else:
        monkeypatch.setattr(sessions, "choose_direct", lambda *_: None)


def test_which_logits_are_needed() -> None:
    forbidden = allow_few(2)
    needed = select_outputs(NEVER, forbidden)
    assert needed is not None
    assert needed.tolist() == [t for t in FEW if t != 4 and not forbidden[:, t].all()]
    assert select_outputs([], None) is None
    assert select_outputs([], torch.rand(2, V) < 0.1) is None  # most may be had
    forbidden[:, FEW[5:]] = True
    assert select_outputs([], forbidden) is None  # too few for the C code


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("is_int8", [False, True])
@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("is_native", [False, True])
def test_logits_are_those_of_the_whole_matrix(
    name: str, is_int8: bool, copies: int, is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode_by("C" if is_native else "operations", monkeypatch)
    model = make(name, torch.float32)
    model = gf.quantize(model, "int8") if is_int8 else model
    source = SOURCES if isinstance(model, EncoderDecoder) else None
    options = {"source": source, "max_new_tokens": 9, "copies": copies}
    tokens = torch.tensor(FEW)
    some = DirectSession(model, PROMPTS, **options, outputs=tokens)
    whole = DirectSession(model, PROMPTS, **options)
    others = [t for t in range(V) if t not in FEW]
    for _ in range(6):
        found, expected = some.next_logits(), whole.next_logits()
        assert_close(found[:, tokens], expected[:, tokens], 1e-5)
        if some.fresh.shape[1] == 1:  # prompts are read by the model's modules, if not in C
            assert bool((found[:, others] == -torch.inf).all())
        for session in (some, whole):
            session.append(expected[:, tokens].argmax(-1))


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("is_int8", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_greedy_and_sampled_texts(
    name: str, is_int8: bool, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with all logits; other ways may round the inputs of an int8 product to other integers."""
    decode_by(way, monkeypatch)
    model = make(name, torch.float32)
    model = gf.quantize(model, "int8") if is_int8 else model
    source = SOURCES if isinstance(model, EncoderDecoder) else None
    forbidden = allow_few(len(PROMPTS))
    options = {"source": source, "max_new_tokens": 12, "never": NEVER, "forbidden": forbidden}
    for sampling in (Sampling(temperature=0.0), Sampling(temperature=0.7, top_k=9)):
        found = generate_tokens(model, PROMPTS, **options, sampling=sampling, seed=3)
        with monkeypatch.context() as context:
            context.setattr(loop, "select_outputs", lambda *_: None)
            expected = generate_tokens(model, PROMPTS, **options, sampling=sampling, seed=3)
        assert found == expected
        assert not any(
            forbidden[row, token] or token in NEVER
            for row, text in enumerate(found)
            for token in text
        )


@pytest.mark.parametrize("is_int8", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_draft_changes_nothing(
    is_int8: bool, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode_by("C", monkeypatch)
    model = make("rotary", torch.float32)
    model = gf.quantize(model, "int8") if is_int8 else model
    forbidden = torch.ones(1, V, dtype=torch.bool)
    forbidden[:, FEW] = False
    options = {"max_new_tokens": 25, "forbidden": forbidden, "seed": 1}
    options["sampling"] = Sampling(temperature=temperature)
    expected = generate_tokens(model, PROMPTS[:1], **options)
    assert generate_tokens(model, PROMPTS[:1], **options, draft="lookup") == expected


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("beams", [1, 4])
def test_probabilities_are_among_what_is_allowed(
    name: str, way: str, beams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores of a beam search are those of a softmax over these tokens, step by step."""
    decode_by(way, monkeypatch)
    model = make(name, torch.float32)
    has_source = isinstance(model, EncoderDecoder)
    forbidden = allow_few(len(PROMPTS))
    ranked = beam_search(
        model,
        PROMPTS,
        source=SOURCES if has_source else None,
        max_new_tokens=5,
        beams=beams,
        n_best=beams,
        never=NEVER,
        forbidden=forbidden,
        renormalize=True,
    )
    assert [len({text.tokens for text in texts}) for texts in ranked] == [beams] * 3
    for row, texts in enumerate(ranked):
        for text in texts:
            read = torch.tensor([[*PROMPTS[row], *text.tokens[:-1]]])
            with torch.no_grad():
                given = (torch.tensor([SOURCES[row]]), read) if has_source else (read,)
                logits = model(*given)[0, len(PROMPTS[row]) - 1 :]
            logits = logits.masked_fill(forbidden[row], -torch.inf)
            logits[:, NEVER] = -torch.inf
            steps = logits.log_softmax(-1)[range(5), list(text.tokens)]
            assert abs(float(steps.sum()) - text.log_probability) < 1e-4


@pytest.mark.parametrize("way", WAYS)
def test_a_text_does_not_depend_on_its_neighbours(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode_by(way, monkeypatch)
    model = make("translator", torch.float32)
    forbidden = torch.ones(3, V, dtype=torch.bool)
    for row in range(3):  # they share no token
        forbidden[row, row + 3 : row + 3 + 18 : 3] = False
    options = {"max_new_tokens": 7, "beams": 3, "renormalize": True}
    together = beam_search(model, PROMPTS, source=SOURCES, forbidden=forbidden, **options)
    for row in range(3):
        (alone,) = beam_search(
            model,
            PROMPTS[row : row + 1],
            source=SOURCES[row : row + 1],
            forbidden=forbidden[row : row + 1],
            **options,
        )
        assert alone[0].tokens == together[row][0].tokens
        assert abs(alone[0].score - together[row][0].score) < 1e-5


def test_fewer_tokens_than_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    decode_by("C", monkeypatch)
    model = make("learned", torch.float32)
    forbidden = torch.ones(1, V, dtype=torch.bool)
    forbidden[0, FEW[:16]] = False
    options = {"max_new_tokens": 3, "beams": 30, "n_best": 30, "renormalize": True}
    (found,) = beam_search(model, PROMPTS[:1], forbidden=forbidden, **options)
    assert len({text.tokens for text in found}) == 30
    assert {token for text in found for token in text.tokens} <= {*FEW[:16]}


@pytest.mark.plain
def test_a_prompt_needs_a_token() -> None:
    model = make("learned", torch.float32)
    forbidden = allow_few(2)
    forbidden[1, [t for t in range(V) if t not in NEVER]] = True
    forbidden[1, NEVER] = False
    with pytest.raises(ConfigError, match=r"forbidden leave none to prompt 1. Allow at least"):
        beam_search(
            model,
            PROMPTS[:2],
            max_new_tokens=3,
            beams=2,
            never=NEVER,
            forbidden=forbidden,
            renormalize=True,
        )


def test_a_rule_counts_from_the_first_of_some_tokens() -> None:
    rule = Rule([9, 4, 30], allow_few(2), [7], renormalizes=True)
    tokens = torch.tensor([4, 7, 9, 31])
    local = rule.select(tokens)
    assert local.never == (0, 2) and local.stops == (7,) and local.renormalizes
    assert torch.equal(local.forbidden, allow_few(2)[:, tokens])
    assert rule.select(tokens) is local and rule.keep([1]).renormalizes
