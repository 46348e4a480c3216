"""Steps that are replayed: the same losses, gradients and weights as without."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from closeness import assert_same
from glassformer.training import captured_steps
from glassformer.training.captured_steps import CapturedSteps
from glassformer.training.display import SilentDisplay
from training import small_runs


class Rerun:
    """In place of a CUDA graph: it computes from the same tensors and writes to the same."""

    def __init__(self, steps: CapturedSteps, tensors: dict[str, Tensor]) -> None:
        self.steps, self.tensors, self.factor = steps, tensors, torch.ones(())
        self.loss = steps._run(tensors, self.factor)
        steps._keep_gradients()

    def replay(self) -> None:
        for each in self.steps.parameters:
            each.grad = None
        self.loss.copy_(self.steps._run(self.tensors, self.factor))
        self.steps._keep_gradients()


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[CapturedSteps]:
    def capture(self: CapturedSteps, tensors: dict[str, Tensor]) -> captured_steps._Captured:
        own = {name: each.clone() for name, each in tensors.items()}
        graph = Rerun(self, own)
        self.addresses = [each.data_ptr() for each in self.parameters]
        return captured_steps._Captured(graph, own, graph.factor, graph.loss)  # type: ignore[arg-type]

    monkeypatch.setattr(CapturedSteps, "_capture", capture)
    model = nn.Linear(3, 2).double()
    yield CapturedSteps(lambda t: model(t["x"]).square().sum(), model.parameters(), nullcontext)


def check_step(steps: CapturedSteps, rows: int) -> None:
    x, factor = torch.randn(rows, 3, dtype=torch.float64), float(torch.rand(()))
    for each in steps.parameters:
        each.grad = None
    loss = steps({"x": x}, factor)
    found = [each.grad for each in steps.parameters]
    expected = steps.compute({"x": x})
    assert_same(loss, expected.detach())
    wanted = torch.autograd.grad(expected, steps.parameters)
    for own, other in zip(found, wanted, strict=True):
        assert own is not None
        torch.testing.assert_close(own, other * factor, atol=1e-6, rtol=1e-6)  # a float32 factor


def test_every_shape_is_replayed_from_its_fourth_step_on(steps: CapturedSteps) -> None:
    for _ in range(6):
        for rows in (4, 5):
            check_step(steps, rows)
    assert len(steps.captured) == 2


def test_no_more_than_four_shapes(steps: CapturedSteps) -> None:
    for _ in range(5):
        for rows in range(1, 7):
            check_step(steps, rows)
    assert len(steps.captured) == 4


def test_parameters_that_moved_are_captured_again(steps: CapturedSteps) -> None:
    for _ in range(5):
        check_step(steps, 4)
    steps.parameters[0].data = torch.randn_like(steps.parameters[0])
    check_step(steps, 4)
    assert not steps.captured
    for _ in range(4):
        check_step(steps, 4)
    assert len(steps.captured) == 1


def test_what_cannot_be_captured_runs_as_before(
    steps: CapturedSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(CapturedSteps, "_capture", fail)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    for _ in range(6):
        check_step(steps, 4)
    assert steps.refusal == "operation not permitted when stream is capturing"
    assert not steps.captured


@pytest.mark.gpu
@pytest.mark.plain
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("task", ["language", "translation"])
def test_a_replayed_step_is_that_of_its_seed(
    tmp_path: Path, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loss and gradients with dropout are those of the same step without a replay."""
    changes: dict[str, Any] = {
        "until": {"steps": 12},
        "compute": {"compile": True, "precision": "bf16"},
        "model": {"dropout": {"residual": 0.2, "weights": 0.1}},
    }
    if task == "translation":
        changes |= {"batches": {"packed": True, "max_tokens": 512}}
    gaps: list[float] = []
    ask = CapturedSteps.__call__

    def compare(self: CapturedSteps, tensors: dict[str, Tensor], factor: float) -> Tensor:
        drawn = torch.cuda.get_rng_state()
        expected = self._run(tensors, factor)
        wanted = [each.grad for each in self.parameters]
        for each in self.parameters:
            each.grad = None
        torch.cuda.set_rng_state(drawn)
        loss = ask(self, tensors, factor)
        if self.captured:
            found = [each.grad for each in self.parameters]
            pairs = [(a, b) for a, b in zip(found, wanted, strict=True) if a is not None]
            gaps.extend(float((a - b).norm() / b.norm()) for a, b in pairs if b is not None)
            gaps.append(abs(float(loss / expected) - 1))
        return loss

    monkeypatch.setattr(CapturedSteps, "__call__", compare)
    recipe = getattr(small_runs, task)(tmp_path, **changes)
    gf.train(recipe, out=tmp_path / "run", device="cuda", show=SilentDisplay())
    assert gaps
    assert max(gaps) < 2e-2  # another draw of dropout is further away than 0.2
