"""Operands under a budget: the same numbers, wherever they lie, and nothing left behind."""

import gc
from pathlib import Path

import pytest
import torch

from closeness import assert_same
from glassformer.errors import TraceError
from glassformer.generation import generate_tokens
from glassformer.tracing import watch
from glassformer.tracing.operand_store import OperandStore, parse_bytes
from letter_models import letter_model


@pytest.mark.parametrize("budget", [0, 5_000, "20 KiB", None])
def test_a_budget_changes_where_and_nothing_else(budget: int | str | None, tmp_path: Path) -> None:
    model = letter_model("decoder", n_layers=3)
    prompt = [list(range(6)), list(range(1, 7))]
    with watch(model, outputs=True) as whole:
        list(generate_tokens(model, prompt, max_new_tokens=5))
    with watch(model, outputs=True, budget=budget, folder=tmp_path) as kept:
        list(generate_tokens(model, prompt, max_new_tokens=5))
        assert list(tmp_path.iterdir()) == []  # files without a name
    for site in whole:
        for name in ("q", "k", "v", "out"):
            assert_same(getattr(kept[site.name], name), getattr(site, name))
        assert_same(kept[site.name].weights(), site.weights())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int64])
def test_what_is_on_disk_reads_back(dtype: torch.dtype, tmp_path: Path) -> None:
    store = OperandStore(budget=0, folder=tmp_path)
    tensor = torch.randn(3, 0, 5).to(dtype), torch.randn(2, 7, 5).transpose(0, 1).to(dtype)
    for each in tensor:
        assert_same(store.keep(each), each)
    parts = [torch.randn(2, n, 5).to(dtype) for n in (1, 4, 2)]
    assert_same(store.concatenate(parts, dim=1), torch.cat(parts, dim=1))
    assert store.in_memory == 0


def test_memory_that_is_free_again_is_used_again() -> None:
    store = OperandStore(budget=1000)
    first = store.keep(torch.zeros(200))
    second = store.keep(torch.zeros(200))
    assert (store.in_memory, store.on_disk) == (800, 800)
    del first
    gc.collect()
    third = store.keep(torch.zeros(200))
    assert (store.in_memory, store.on_disk) == (800, 800)
    assert float(second.sum() + third.sum()) == 0


def test_reserved_room_counts_and_can_be_filled(tmp_path: Path) -> None:
    store, like = OperandStore(budget=1000, folder=tmp_path), torch.zeros(1, dtype=torch.float16)
    rooms = [store.reserve((3, 100), like) for _ in range(2)]
    assert (store.in_memory, store.on_disk) == (600, 600)
    for i, room in enumerate(rooms):
        assert room.dtype == torch.float16
        room[1].copy_(torch.full((100,), i + 2.0))
        assert_same(room[1], torch.full((100,), i + 2.0, dtype=torch.float16))
    rooms = room = None
    assert store.in_memory == 0


@pytest.mark.plain
def test_budgets_as_people_write_them() -> None:
    assert parse_bytes("4 GiB") == 4 << 30
    assert parse_bytes("1.5m") == 3 << 19
    assert parse_bytes("12") == 12
    for wrong in ("much", -1, "3 parsecs"):
        with pytest.raises(TraceError, match="A budget must be bytes, or written as"):
            parse_bytes(wrong)


@pytest.mark.plain
def test_folders_that_do_not_serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TraceError, match="folder must be there to keep operands in"):
        OperandStore(folder=tmp_path / "nowhere")
    full = OperandStore(budget=0, folder="/dev/full" if Path("/dev/full").is_dir() else tmp_path)

    def no_room(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", no_room)
    with pytest.raises(TraceError, match="that failed: No space left on device"):
        full.concatenate([torch.zeros(2), torch.zeros(3)], dim=0)
    assert list(tmp_path.iterdir()) == []
