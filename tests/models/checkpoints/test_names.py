"""The notation of the tables, and that every table is a map in both directions."""

import pytest
import torch

from closeness import assert_same
from glassformer.models.checkpoints.architectures import ARCHITECTURES
from glassformer.models.checkpoints.names import Origin, Table, part_sizes
from glassformer.models.config import Config

TABLE = Table(
    [
        ("a.{i}.qkv.{x}", "b.{i}.[q|k|v].{x}"),
        ("a.weight", "b.weight.T"),
        ("positions", "places[2:]"),
        ("bias", "row[0]"),
        ("e", "f = g = h"),
        ("a.{i}.up", "b.{i}.{e}.[g|u]"),
        ("a.{i}.down", "b.{i}.{e}.d"),
    ],
    n_experts=2,
)


def test_a_row_is_found_by_its_pattern() -> None:
    assert TABLE.origin("a.12.qkv.bias") == Origin(
        ("b.12.q.bias", "b.12.k.bias", "b.12.v.bias"), (), ""
    )
    assert TABLE.origin("e") == Origin(("f",), ("g", "h"), "")
    assert TABLE.origin("a.x.qkv.bias") is None
    assert TABLE.origin("a.1.qkv.scale") is None


@pytest.mark.parametrize(
    ("name", "shape", "theirs", "sizes"),
    [
        (
            "a.0.qkv.weight",
            (7, 3),
            {"b.0.q.weight": (3, 3), "b.0.k.weight": (2, 3), "b.0.v.weight": (2, 3)},
            [3, 2, 2],
        ),
        ("a.weight", (5, 3), {"b.weight": (3, 5)}, []),
        ("positions", (5, 3), {"places": (7, 3)}, []),
        ("bias", (5,), {"row": (1, 5)}, []),
        ("e", (5,), {"f": (5,)}, []),
        (
            "a.4.up",
            (2, 6, 5),
            {"b.4.0.g": (3, 5), "b.4.0.u": (3, 5), "b.4.1.g": (3, 5), "b.4.1.u": (3, 5)},
            [3, 3],
        ),
        ("a.4.down", (2, 7, 3), {"b.4.0.d": (7, 3), "b.4.1.d": (7, 3)}, [3, 4]),
    ],
)
def test_both_directions(name: str, shape: tuple, theirs: dict, sizes: list) -> None:
    origin, tensor = TABLE.origin(name), torch.randn(shape)
    written = dict(origin.write(tensor, sizes))
    assert {n: tuple(t.shape) for n, t in written.items()} == theirs
    assert_same(origin.read(written.__getitem__, set(written), sizes), tensor)


def test_any_copy_will_do() -> None:
    origin, tensor = TABLE.origin("e"), torch.randn(3)
    assert origin.missing({"h"}) == []
    assert origin.missing({"x"}) == ["f"]
    assert_same(origin.read({"h": tensor}.__getitem__, {"h"}, []), tensor)


def test_rows_divide_by_heads() -> None:
    config = Config(
        family="decoder", vocab_size=5, dim=12, n_layers=1, n_heads=6, n_kv_heads=2, max_len=4
    )
    assert part_sizes("x.qkv.weight", (20, 12), config) == [12, 4, 4]
    assert part_sizes("x.kv.weight", (8, 12), config) == [4, 4]
    assert part_sizes("x.expert_up.weight", (3, 10, 12), config) == [5, 5]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_no_name_stands_twice_in_a_column(name: str) -> None:
    architecture = ARCHITECTURES[name]
    for columns in filter(None, (architecture.columns, architecture.gated_columns)):
        ours, theirs = zip(*columns, strict=True)
        assert len(set(ours)) == len(ours)
        assert len(set(theirs)) == len(theirs)
