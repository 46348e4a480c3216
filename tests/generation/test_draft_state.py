"""Speculative decoding by graphs: bits and texts as without, on a GPU or interpreted."""

import warnings
from itertools import product
from random import Random

import pytest
import torch

from generation.interpreted_graphs import replace_graphs
from generation.step_models import CHANGES, make
from glassformer.errors import ConfigError
from glassformer.generation import Draft, LookupDraft, Sampling, cuda_step, generate_tokens
from glassformer.generation.captured_drafts import stream_drafted_on_gpu
from glassformer.generation.cuda_step import CudaStep
from glassformer.generation.draft_state import WIDE, DraftState
from glassformer.generation.sessions import start_session
from glassformer.models import Config, Decoder, DecoderWeights, Positions
from triton_interpreter import DEVICE, INTERPRETED, check_in_interpreter, needs_kernels

DTYPES = (torch.float32,) if INTERPRETED else (torch.float32, torch.bfloat16, torch.float16)
NEW = 6 if INTERPRETED else 90
PROMPT = [3, 1, 4, 1, 5]
MODELS = [name for name in CHANGES if name not in ("translator", "post-norm")]
# The interpreter takes seconds for each step.
SOME = ["rotary", "interleaved, head norms, window"] if INTERPRETED else MODELS
V = 11


@pytest.fixture(autouse=True)
def without_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_graphs(monkeypatch, few=4)


@pytest.mark.plain
def test_the_interpreter_agrees() -> None:
    check_in_interpreter(__file__)


@needs_kernels
@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("parts", [4] if INTERPRETED else [1, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_have_the_bits_of_tokens_read_one_by_one(
    name: str, parts: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_step.shapes, "count_parts", lambda *_: parts)
    weights = DecoderWeights.of(make(name, dtype, DEVICE))
    n = 1 if INTERPRETED else 150
    tokens = torch.randint(37, (n + WIDE,), device=DEVICE)
    with torch.no_grad():
        alone = CudaStep(weights, batch=1, capacity=n + WIDE)
        shared = CudaStep(weights, batch=1, capacity=n + WIDE)
        wide = CudaStep(weights, batch=WIDE, capacity=n + WIDE, copies=WIDE, ahead_of=shared)
        expected = []
        for i, token in enumerate(tokens):
            alone.tokens.fill_(token)
            alone.lengths.fill_(i)
            expected.append(alone().clone())
        shared.memory[:, :, :n] = alone.memory[:, :, :n]
        wide.tokens.copy_(tokens[n:])
        wide.lengths.copy_(torch.arange(n, n + WIDE))
        assert torch.equal(wide(), torch.cat(expected[n:]))
    assert torch.equal(shared.memory, alone.memory)


def make_small(positions: str, seed: int = 0) -> Decoder:
    sizes = {"vocab_size": V, "dim": 8, "n_layers": 1, "n_heads": 2, "max_len": 128}
    config = Config(family="decoder", positions=Positions(kind=positions), **sizes)
    torch.manual_seed(seed)
    model = Decoder(config).to(DEVICE).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.5)
    return model


@needs_kernels
@pytest.mark.parametrize("seed", range(4))
def test_what_is_accepted_and_guessed(seed: int) -> None:
    """Against the definition: the choices up to the first that differs, the longest match."""
    rng = Random(seed)
    step = CudaStep(DecoderWeights.of(make_small("none")), batch=1, capacity=64)
    state = DraftState(step, None)
    text = [rng.randrange(3) for _ in range(6)]
    most = 40
    step.lengths.fill_(len(text) - 1)
    state.begin(torch.tensor([text], device=DEVICE), most, (), None)
    lines, n_written = [], len(text)
    while len(text) < most:
        n_rows = rng.choice([1, WIDE])
        guesses = state.wide.tokens[1:].tolist()
        chosen = [rng.randrange(3) for _ in range(WIDE)]
        for i in range(rng.randrange(WIDE)):
            chosen[i] = guesses[i]
        give_choices(state, n_rows, chosen)
        held = next((i for i in range(n_rows) if chosen[i] != [*guesses, -3][i]), n_rows)
        count = min(held + 1, n_rows, most - len(text))
        text += chosen[:count]
        lines.append([count, min(held, WIDE - 1), *chosen[:count]])
        assert state.text[: len(text)].tolist() == text
        assert step.tokens.tolist() == [text[-1]] == state.wide.tokens[:1].tolist()
        assert step.lengths.tolist() == [len(text) - 1]
        assert state.wide.lengths.tolist() == [*range(len(text) - 1, len(text) - 1 + WIDE)]
        assert state.wide.tokens[1:].tolist() == look_up(text)
    assert len(text) == most > n_written
    give_choices(state, WIDE, [0] * WIDE)  # the text is complete
    assert state.text[:most].tolist() == text
    log = state.log[: int(state.n_logged)].tolist()
    assert [line[: 2 + line[0]] for line in log] == [*lines, [0, log[-1][1]]]


def give_choices(state: DraftState, n_rows: int, chosen: list[int]) -> None:
    """A pass of a model that chooses these tokens."""
    step = state.step if n_rows == 1 else state.wide
    step.best.fill_(-1.0)
    for row, token in enumerate(chosen[:n_rows]):
        step.best[row, row % 2] = 1.0
        step.best_index[row, row % 2] = token
    state.passes[n_rows].accept(step)


def look_up(text: list[int]) -> list[int]:
    for n in (4, 3, 2):
        for end in range(len(text) - 1, n - 1, -1):
            if text[end - n : end] == text[-n:]:
                return [text[end + i % (len(text) - end)] for i in range(WIDE - 1)]
    return [0] * (WIDE - 1)


@needs_kernels
@pytest.mark.parametrize(
    ("positions", "kind"),
    [("rotary", "lookup"), ("learned", "other")]
    if INTERPRETED
    else [*product(["rotary", "learned"], ["lookup", "same", "other"])],
)
def test_texts_are_the_same(positions: str, kind: str) -> None:
    model, restricted = make_small(positions), positions == "learned"
    draft = {"lookup": "lookup", "same": model, "other": make_small("none", 1)}[kind]
    hidden = torch.rand(1, V, generator=torch.Generator().manual_seed(3)) < 0.4
    options = {"max_new_tokens": NEW, "never": [7], "forbidden": hidden if restricted else None}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = generate_tokens(model, [PROMPT], **options)
        assert generate_tokens(model, [PROMPT], draft=draft, **options) == plain
        assert len(plain[0]) == NEW
        if INTERPRETED:
            return
        options["stop"] = plain[0][NEW // 2 : NEW // 2 + 1]
        shorter = generate_tokens(model, [PROMPT], **options)
        assert generate_tokens(model, [PROMPT], draft=draft, **options) == shorter


@needs_kernels
def test_a_draft_that_guesses_well_saves_passes() -> None:
    model = make_small("rotary")
    draft = LookupDraft()
    n = 24 if INTERPRETED else 90
    session = start_session(model, [[5, 6, 5, 6, 5]], source=None, max_new_tokens=n)
    only = torch.ones(1, V, dtype=torch.bool, device=DEVICE)
    only[0, 9] = False  # the text repeats itself
    options = {"max_new_tokens": n, "never": (), "forbidden": only}
    with torch.no_grad():
        written = [*stream_drafted_on_gpu(session, draft, **options)]
    assert written == [9] * n
    assert draft.n_passes < n * 2 // 3
    assert draft.n_held == n - draft.n_passes


@needs_kernels
def test_what_is_refused_is_said() -> None:
    class Own(Draft):
        def guess(self, text, most):
            return [1] * most

    model = make_small("rotary")
    plain = generate_tokens(model, [PROMPT], max_new_tokens=3 if INTERPRETED else 20)
    options = {"max_new_tokens": 3 if INTERPRETED else 20}
    with pytest.warns(UserWarning, match="not used: only a model, or a lookup"):
        assert generate_tokens(model, [PROMPT], draft=Own(), **options) == plain
    drawn = Sampling(temperature=0.8)
    with pytest.warns(UserWarning, match="not used: on a GPU it guesses only for greedy"):
        generate_tokens(model, [PROMPT], draft=model, sampling=drawn, seed=1, **options)
    with torch.no_grad():
        model.decoder.final_norm.weight.fill_(torch.nan)
    with pytest.raises(ConfigError, match="got NaN"):
        generate_tokens(model, [PROMPT], draft="lookup", **options)
