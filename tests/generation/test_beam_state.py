"""Searches and restricted choices by graphs: the texts of the modules, on a GPU or interpreted."""

import pytest
import torch

from generation.interpreted_graphs import by_modules, replace_graphs
from generation.step_models import CHANGES, PROMPTS, SOURCES, V, make
from glassformer.errors import ConfigError
from glassformer.generation import (
    Sampling,
    beam,
    beam_search,
    captured,
    captured_search,
    generate_tokens,
)
from glassformer.generation.captured import Engine, EngineKey
from glassformer.models import DecoderWeights
from triton_interpreter import DEVICE, INTERPRETED, check_in_interpreter, needs_kernels

NEW = 4 if INTERPRETED else 40  # the interpreter takes seconds for each step
SOME = [("rotary", 3, False), ("translator", 1, True), ("translator", 3, True)]
# Each case compiles some ten kernels: all models in one way, two of them in others, too.
CASES = SOME if INTERPRETED else sorted({*SOME, *((name, 3, False) for name in CHANGES)})
DRAWN = Sampling(temperature=0.8, top_k=9)


@pytest.fixture(autouse=True)
def without_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_graphs(monkeypatch, few=0)


def forbid(seed: int = 3) -> torch.Tensor:
    """A mask that forbids each prompt other tokens, and none the stop token."""
    found = torch.rand(len(PROMPTS), V, generator=torch.Generator().manual_seed(seed)) < 0.4
    found[:, 11] = False
    return found


@pytest.mark.plain
def test_the_interpreter_finds_the_texts_of_the_modules() -> None:
    check_in_interpreter(__file__)


@needs_kernels
@pytest.mark.parametrize(("name", "beams", "restricted"), CASES)
def test_texts_of_the_plain_search(
    name: str, beams: int, restricted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(name, torch.float32, DEVICE)

    def decode() -> list:
        return beam_search(
            model,
            PROMPTS,
            source=SOURCES if name == "translator" else None,
            max_new_tokens=NEW,
            beams=beams,
            n_best=beams,
            stop=[11, 20],
            never=[7, 8],
            forbidden=forbid() if restricted else None,
        )

    for _ in range(1 if INTERPRETED else 2):  # the second time by the engine that waited
        for ours, theirs in zip(decode(), by_modules(monkeypatch, decode), strict=True):
            assert [text.tokens for text in ours] == [text.tokens for text in theirs]
            assert [text.score for text in ours] == pytest.approx(
                [text.score for text in theirs], rel=1e-4
            )


@needs_kernels
def test_searches_end_at_different_times_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make("translator", torch.float32, DEVICE)
    with torch.no_grad():
        model.head.weight[11] += 0.2  # texts that end soon

    def decode(stop: list[int]) -> list:
        options = {"source": SOURCES, "max_new_tokens": NEW, "beams": 2, "n_best": 2}
        return beam_search(model, [[3]] * 3, **options, stop=stop)

    for stop in ([11, 5, 3], [])[: 1 if INTERPRETED else 2]:
        ours = decode(stop)
        theirs = by_modules(monkeypatch, lambda stop=stop: decode(stop))
        lengths = {len(text.tokens) for texts in ours for text in texts}
        assert lengths == {NEW} if not stop else len(lengths) > 1
        assert [[text.tokens for text in texts] for texts in ours] == [
            [text.tokens for text in texts] for texts in theirs
        ]


@needs_kernels
@pytest.mark.parametrize("name", ["translator", "rotary"])
def test_prompts_whose_search_has_ended_leave(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four searches become two, of which one ends a step later, and then one."""
    for setting, value in (("_SHRINK", 1.3), ("_FEW", 0), ("_AHEAD", 1)):
        monkeypatch.setattr(captured_search, setting, value)
    model = make(name, torch.float32, DEVICE)
    prompts = [*PROMPTS, [4, 19, 2, 2]]
    hidden = torch.ones(4, V, dtype=torch.bool)
    hidden[:, [11, 20]] = False  # all that two of them may write, so that they end at once
    hidden[2, 20], hidden[2, 5] = True, False  # one that ends with its second token
    hidden[1] = ~hidden[1]  # one that never ends
    batches = []
    narrow = captured_search._narrow

    def count(session, state, rows, columns):
        batches.append((len(state.scores), len(rows)))
        return narrow(session, state, rows, columns)

    monkeypatch.setattr(captured_search, "_narrow", count)

    def decode() -> list:
        return beam_search(
            model,
            prompts,
            source=[*SOURCES, [5, 6, 7, 8, 9]] if name == "translator" else None,
            max_new_tokens=NEW,
            beams=2,
            n_best=2,
            stop=[11, 20],
            forbidden=hidden,
        )

    ours = decode()
    assert batches == [(4, 2), (2, 1)]
    theirs = by_modules(monkeypatch, decode)
    assert [[text.tokens for text in texts] for texts in ours] == [
        [text.tokens for text in texts] for texts in theirs
    ]
    scores = [text.score for texts in theirs for text in texts]
    assert [text.score for texts in ours for text in texts] == pytest.approx(scores, rel=1e-4)


@needs_kernels
@pytest.mark.parametrize("sampling", [Sampling(temperature=0), DRAWN])
@pytest.mark.parametrize("repeat", [1, 2])
def test_restricted_tokens_of_the_plain_loop(
    sampling: Sampling, repeat: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make("translator", torch.float32, DEVICE)

    def decode() -> list:
        return generate_tokens(
            model,
            PROMPTS * repeat,
            source=SOURCES * repeat,
            max_new_tokens=NEW,
            sampling=sampling,
            stop=[11],
            never=[7],
            forbidden=forbid().repeat(repeat, 1),
            seed=5,
        )

    written = decode()
    hidden = forbid().repeat(repeat, 1)
    assert not any(hidden[i, token] for i, row in enumerate(written) for token in row)
    if sampling.temperature == 0 or not INTERPRETED:
        assert written == by_modules(monkeypatch, decode)


@needs_kernels
@pytest.mark.parametrize("repeat", [1, 2])
@pytest.mark.parametrize("sampling", [Sampling(temperature=0), DRAWN])
def test_a_row_must_leave_a_token(sampling: Sampling, repeat: int) -> None:
    model = make("rotary", torch.float32, DEVICE)
    hidden = torch.zeros(3 * repeat, V, dtype=torch.bool)
    hidden[1] = True
    options = {"max_new_tokens": NEW, "sampling": sampling, "forbidden": hidden}
    with pytest.raises(ConfigError, match="nothing but -inf in row 1"):
        generate_tokens(model, PROMPTS * repeat, **options)


def test_engines_that_wait_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make("rotary", torch.float32)
    key = EngineKey(1, 128, 0, torch.device("cpu"))
    captured.return_engine(model, Engine(DecoderWeights.of(model), key))
    failures = [torch.OutOfMemoryError("no memory left")]

    def make_engine(weights: DecoderWeights, key: EngineKey) -> Engine:
        if failures:
            raise failures.pop()
        return Engine(weights, key)

    monkeypatch.setattr(captured, "Engine", make_engine)
    assert captured.borrow_engine(model, key._replace(batch=2)).key.batch == 2
    assert captured._engines[model] == []


def test_engines_that_wait_have_a_share_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make("translator", torch.float32)
    weights = DecoderWeights.of(model)
    engines = [Engine(weights, EngineKey(n, 128, 64, torch.device("cpu"))) for n in (3, 1, 2)]
    sizes = [each.n_bytes for each in engines]
    per_row = 4 * 3 * 2 * (128 + 64) * 20  # float32: layers, keys and values, tokens, their width
    assert sizes == [3 * per_row, per_row, 2 * per_row]
    for room, left in ((6, [3, 1, 2]), (5, [1, 2]), (2, [2]), (0, [2])):
        captured._engines.pop(model, None)
        monkeypatch.setattr(captured, "_room_on", lambda _, room=room: room * per_row)
        for engine in engines:
            captured.return_engine(model, engine)
        assert [each.key.batch for each in captured._engines[model]] == left


@needs_kernels
def test_nan_ends_a_search() -> None:
    model = make("rotary", torch.float32, DEVICE)
    with torch.no_grad():
        model.decoder.final_norm.weight.fill_(torch.nan)
    with pytest.raises(ConfigError, match="got NaN"):
        beam_search(model, PROMPTS, max_new_tokens=NEW, beams=2)


@needs_kernels
def test_what_the_host_selects(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make("rotary", torch.float32, DEVICE)
    monkeypatch.setattr(beam, "search_captured", None)  # it is not called
    options = {"max_new_tokens": 2 if INTERPRETED else NEW, "stop": [11]}
    beam_search(model, [[6]], beams=2, early=False, **options)
    beam_search(model, [[6]], beams=17, **options)
    seen: list = []
    beam_search(model, [[6]], beams=2, observe=seen.extend, **options)
    assert seen
