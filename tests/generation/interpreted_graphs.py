"""Decoding by graphs where none can be captured: in Triton's interpreter, each step just runs."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch

from glassformer.generation import captured, cuda_state, loop, sessions
from glassformer.generation.captured import Advance, CapturedSession, Engine
from triton_interpreter import INTERPRETED


class Event:
    """What is recorded has happened: without a GPU, nothing runs ahead."""

    def record(self) -> None: ...

    def synchronize(self) -> None: ...


class Again(NamedTuple):
    """Runs what a graph would replay."""

    replay: Callable[[], object]


def replace_graphs(monkeypatch: pytest.MonkeyPatch, *, few: int) -> None:
    """In the interpreter, a step runs where a graph would be replayed.

    Products of more than `few` rows are by torch.
    """
    if INTERPRETED:
        monkeypatch.setattr(cuda_state, "FEW", few)
        monkeypatch.setattr(Engine, "replay", _run_step)
        monkeypatch.setattr(Engine, "capture", lambda _, run: Again(run))
        monkeypatch.setattr(captured.torch.cuda, "Event", Event)
        for module in (sessions, loop):
            monkeypatch.setattr(module, "choose_direct", _choose_session)


def by_modules(monkeypatch: pytest.MonkeyPatch, decode: Callable[[], object]) -> object:
    """What `decode` gives if the model is read by its modules."""
    with monkeypatch.context() as patch:
        patch.setattr(sessions, "refusal", lambda _: "asked for the modules")
        return decode()


def _run_step(engine: Engine, advance: Advance = None) -> None:
    engine._run(advance)


def _choose_session(model: torch.nn.Module, _: int) -> type[CapturedSession] | None:
    return CapturedSession if sessions.refusal(model) is None else None
