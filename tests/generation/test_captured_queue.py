"""Prompts that take turns in a captured batch: their texts, on a GPU or interpreted."""

import pytest
import torch

import glassformer as gf
from generation.interpreted_graphs import by_modules, replace_graphs
from generation.step_models import CHANGES, V, make
from glassformer.errors import ConfigError
from glassformer.generation import Sampling, captured_queue, generate_tokens, queueing
from glassformer.generation.captured_queue import QueuedCapturedSession
from triton_interpreter import DEVICE, INTERPRETED, check_in_interpreter, needs_kernels

DECODERS = [name for name in CHANGES if name != "translator"]
NEW = 5 if INTERPRETED else 40
SLOTS = 3


@pytest.fixture(autouse=True)
def few_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_graphs(monkeypatch, few=0)
    monkeypatch.setattr(queueing, "_MOST_SLOTS", SLOTS)
    monkeypatch.setattr(queueing, "_MOST_SLOTS_ON_GPU", SLOTS)
    if INTERPRETED:
        monkeypatch.setattr(captured_queue, "_CHUNK", 2)


@pytest.fixture
def admitted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many prompts entered a running batch at a time."""
    found, admit = [], QueuedCapturedSession.admit

    def note(self, rows, prompts) -> None:
        found.append(len(prompts))
        admit(self, rows, prompts)

    monkeypatch.setattr(QueuedCapturedSession, "admit", note)
    return found


def draw_prompts(n: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(5)
    lengths = torch.randint(1, 10, (n,), generator=generator).tolist()
    return [torch.randint(V, (k,), generator=generator).tolist() for k in lengths]


@pytest.mark.plain
def test_the_interpreter_writes_the_texts_of_the_modules() -> None:
    check_in_interpreter(__file__)


@needs_kernels
@pytest.mark.parametrize("name", ["rotary", "learned"] if INTERPRETED else DECODERS)
def test_texts_are_as_if_each_were_alone(name: str, admitted, monkeypatch) -> None:
    model = make(name, torch.float32, DEVICE)
    prompts = draw_prompts(7 if INTERPRETED else 40)
    options = {"max_new_tokens": NEW, "never": [7]}

    def decode(**more) -> list[list[int]]:
        return [generate_tokens(model, [each], **options, **more)[0] for each in prompts]

    whole = by_modules(monkeypatch, decode)
    options["stop"] = [whole[0][NEW // 2], whole[1][NEW // 4]]  # at least these are shorter
    alone = by_modules(monkeypatch, decode)
    assert generate_tokens(model, prompts, **options) == alone
    assert sum(admitted) == len(prompts) - SLOTS
    assert len({len(each) for each in alone}) > 1


@needs_kernels
def test_samples_are_reproducible_and_of_the_asked_length() -> None:
    model = make("rotary", torch.float32, DEVICE)
    prompts = draw_prompts(4)
    options = {"max_new_tokens": NEW, "sampling": Sampling(temperature=0.9, top_k=20)}
    first = generate_tokens(model, prompts, seed=1, **options)
    assert [len(each) for each in first] == [NEW] * len(prompts)
    assert generate_tokens(model, prompts, seed=1, **options) == first
    assert generate_tokens(model, prompts, seed=2, **options) != first


@needs_kernels
def test_nan_is_reported() -> None:
    model = make("rotary", torch.float32, DEVICE)
    with torch.no_grad():
        model.decoder.final_norm.weight.fill_(torch.nan)
    with pytest.raises(ConfigError, match="got NaN"):
        generate_tokens(model, draw_prompts(4), max_new_tokens=9)


@pytest.mark.gpu
def test_a_text_ends_at_a_stop_string_too() -> None:
    writer = gf.load("writer").to(DEVICE)
    prompts = ["And God said", "It was", "The king", "In the", "He"]
    options = {"max_new_tokens": 60, "stop": "e"}
    alone = [gf.generate(writer, each, draft=None, **options) for each in prompts]
    assert gf.generate(writer, prompts, **options) == alone
