"""Prompts that graphs read leave the keys and values of prompts that are read as they are."""

from collections.abc import Callable

import pytest
import torch

from closeness import assert_close
from generation.interpreted_graphs import replace_graphs
from generation.step_models import CHANGES, make
from glassformer.generation import captured_prompts
from glassformer.generation.captured import Engine, EngineKey
from glassformer.generation.captured_prompts import PromptGraphs
from glassformer.generation.cuda_prompts import read_prompts
from glassformer.generation.cuda_step import CudaStep
from glassformer.generation.prompts import pad_left
from glassformer.models import DecoderWeights
from triton_interpreter import DEVICE, INTERPRETED, check_in_interpreter, needs_kernels

MODELS = [name for name in CHANGES if name != "translator"]
DTYPES = (torch.float32,) if INTERPRETED else (torch.float32, torch.bfloat16)
SHORT, OTHER, LONG = [3, 1, 4, 1, 5], [9, 2, 6], [*range(20)]


@pytest.fixture(autouse=True)
def without_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_graphs(monkeypatch, few=4)


@pytest.mark.plain
def test_the_interpreter_agrees() -> None:
    check_in_interpreter(__file__)


class Counted:
    """Captures as an engine does, and counts."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.n = engine, 0

    def __call__(self, run: Callable[[], object]) -> captured_prompts.Graph:
        self.n += 1
        return self.engine.capture(run)


@needs_kernels
@pytest.mark.parametrize("name", ["rotary", "learned"] if INTERPRETED else MODELS)
@pytest.mark.parametrize("n_rows", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
@torch.no_grad()
def test_keys_and_values(name: str, n_rows: int, dtype: torch.dtype) -> None:
    """The second row is shorter and padded; widths are captured when they are seen again."""
    weights = DecoderWeights.of(make(name, dtype, DEVICE))
    engine = Engine(weights, EngineKey(n_rows, 64, 0, torch.device(DEVICE)))
    capture = Counted(engine)
    is_padded = n_rows > 1
    for i, prompt in enumerate([SHORT, LONG, OTHER, SHORT, [*reversed(LONG)], LONG]):
        tokens, missing = pad_left([prompt, prompt[:-2]][:n_rows], torch.device(DEVICE))
        engine.step.memory.fill_(torch.nan)
        engine.step.missing.copy_(missing)
        engine.prompts.read(tokens, capture, is_padded=is_padded)
        expected = CudaStep(weights, batch=n_rows, capacity=64)
        read_prompts(expected, tokens, missing if is_padded else None)
        L = tokens.shape[1]
        for found, exact, gap in zip(
            engine.step.memory.unbind(1), expected.memory.unbind(1), missing.tolist(), strict=True
        ):
            own = exact[:, gap:L]
            worst = 50 * torch.finfo(dtype).eps * float(own.abs().max())
            assert_close(found[:, gap:L], own, atol=worst)
        assert capture.n == (0, 0, 1, 1, 2, 2)[i]


@needs_kernels
@torch.no_grad()
def test_long_prompts_are_not_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_prompts, "_MOST", 31)
    step = CudaStep(DecoderWeights.of(make("rotary", torch.float32, DEVICE)), batch=1, capacity=64)
    prompts = PromptGraphs(step)

    def refuse(_: object) -> captured_prompts.Graph:
        raise AssertionError

    for _ in range(3):
        prompts.read(torch.tensor([LONG], device=DEVICE), refuse, is_padded=False)
    assert not prompts.known
