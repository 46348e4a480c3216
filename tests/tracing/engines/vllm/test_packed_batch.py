"""Rows of packed batches: what is kept depends on positions, not on how an engine cuts steps."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from glassformer.tracing.engines.vllm.packed_batch import PackedBatch, select_rows
from glassformer.tracing.selection import Selection

PROMPT, LENGTH = 5, 11


def kept_positions(selection: Selection, cuts: list[int]) -> list[int]:
    """Which positions of one request are kept when it is computed in these steps."""
    found: list[int] = []
    for start, stop in zip([0, *cuts], [*cuts, LENGTH], strict=True):
        n = stop - start
        rows = select_rows(selection, np.array([0, n]), np.array([start]), np.array([PROMPT]))
        found += [start + int(i) for i in (range(n) if rows is None else rows)]
    return found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [*range(11)]),
        ({"rows": "last"}, [4, 5, 6, 7, 8, 9, 10]),
        ({"rows": slice(2, 9, 3)}, [2, 5, 8]),
        ({"rows": slice(3, None)}, [3, 4, 5, 6, 7, 8, 9, 10]),
        ({"rows": [10, 0, 7]}, [0, 7, 10]),
        ({"every": 3}, [0, 1, 2, 3, 4, 7, 10]),
        ({"every": 2, "rows": "last"}, [4, 6, 8, 10]),
    ],
)
def test_rows_do_not_depend_on_steps(options: dict[str, Any], expected: list[int]) -> None:
    selection = Selection(**options)
    whole = [*range(PROMPT, LENGTH)]
    for cuts in (whole, [2, *whole], [1, 3, 4, *whole], [3]):
        assert kept_positions(selection, cuts) == expected


def test_all_rows_of_a_step_need_no_index() -> None:
    rows = select_rows(
        Selection(rows="last"), np.array([0, 1, 2]), np.array([7, 9]), np.array([5, 5])
    )
    assert rows is None


def test_batch_is_a_copy_of_the_runner() -> None:
    runner: Any = SimpleNamespace(
        input_batch=SimpleNamespace(
            num_reqs=2,
            req_ids=["a", "b", "left over"],
            num_computed_tokens_cpu=np.array([0, 6, 99], dtype=np.int32),
            num_prompt_tokens=np.array([3, 6, 99], dtype=np.int32),
        ),
        query_start_loc=SimpleNamespace(np=np.array([0, 3, 4, 4], dtype=np.int32)),
        input_ids=SimpleNamespace(gpu=torch.arange(10, 18)),
    )
    batch = PackedBatch.of(runner, Selection(rows="last"))
    runner.input_ids.gpu.zero_()
    runner.query_start_loc.np[:] = 0
    assert batch.requests == ["a", "b"]
    assert len(batch) == 4
    assert batch.starts.tolist() == [0, 6]
    assert batch.tokens.tolist() == [10, 11, 12, 13]
    assert batch.rows is not None and batch.rows.tolist() == [2, 3]
