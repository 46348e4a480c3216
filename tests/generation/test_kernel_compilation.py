"""Kernels that are asked for together, with a kernel that says what is done with it."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from glassformer.compilation import notice_compilation
from glassformer.generation.kernel_compilation import compile_together, prepare_launch

pytest.importorskip("triton")


class Kernel:
    """What Triton makes of a function, as far as it is used here."""

    def __init__(self, *, is_new: bool) -> None:
        self.done: list[tuple] = []
        self.compiled = Compiled(self.done)
        self.asked = SimpleNamespace(result=lambda: self.compiled) if is_new else self.compiled

    def __getitem__(self, grid: tuple) -> object:
        return lambda *arguments, **options: self.done.append(("launch", grid, arguments, options))

    def warmup(self, *arguments: object, grid: tuple, **options: object) -> object:
        self.done.append(("ask", grid, arguments, options))
        return self.asked


class Compiled:
    def __init__(self, done: list[tuple]) -> None:
        self.done = done

    @property
    def run(self) -> None:
        self.done.append(("load",))


@pytest.mark.parametrize("is_new", [True, False])
def test_kernels_are_asked_for_and_loaded_but_not_launched(
    is_new: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices, noticed = [], []
    monkeypatch.setattr(torch.cuda, "set_device", devices.append)
    kernel = Kernel(is_new=is_new)

    def run() -> None:
        prepare_launch(kernel, (3, 2), speed=7)(1, 2, WIDTH=8)
        prepare_launch(kernel, (1,))(5)

    @contextmanager
    def notice():
        noticed.append([*kernel.done])
        yield
        noticed.append([*kernel.done])

    with notice_compilation(notice):
        compile_together(run, torch.device("cuda", 1))
    asked = [("ask", (3, 2), (1, 2), {"speed": 7, "WIDTH": 8}), ("ask", (1,), (5,), {})]
    assert kernel.done == [*asked, ("load",)]  # once, though it was asked for twice
    assert devices == [torch.device("cuda", 1)]
    assert noticed == ([asked, kernel.done] if is_new else [])
    run()
    assert [each[0] for each in kernel.done[3:]] == ["launch", "launch"]
    assert kernel.done[3] == ("launch", (3, 2), (1, 2), {"speed": 7, "WIDTH": 8})


def test_after_a_failure_kernels_are_launched_again() -> None:
    kernel = Kernel(is_new=True)

    def run() -> None:
        raise ValueError("out of memory")

    with pytest.raises(ValueError, match="out of memory"):
        compile_together(run, torch.device("cuda"))
    prepare_launch(kernel, (1,))()
    assert kernel.done == [("launch", (1,), (), {})]
