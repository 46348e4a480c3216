"""Sharded models: each rank records its own heads, and the folder opens as the whole trace."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from closeness import assert_close
from glassformer.errors import TraceError
from glassformer.functional import ALiBi, Causal, Window
from glassformer.tracing import Run, Trace, head_shards, record
from glassformer.tracing.head_shards import find_head_shard
from glassformer.tracing.tensor_file import read_tensors
from tracing import sharded_run

SCRIPT = Path(sharded_run.__file__)


def launch(folder: Path, *ways: str, n_ranks: int, script: Path = SCRIPT) -> None:
    """Run a script on several processes of this machine."""
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    found = subprocess.run(
        [sys.executable, str(script), str(n_ranks), str(folder), *ways],
        env=environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-3000:]


@pytest.mark.plain
def test_two_ranks(tmp_path: Path) -> None:
    model = sharded_run.save_model(tmp_path / "model")
    launch(tmp_path, "tensor", "data", n_ranks=2)
    whole = sharded_run.trace_model(model)
    check_heads(tmp_path, whole)
    check_files(tmp_path / "run.trace", whole, n_ranks=2)
    found = Trace.load(tmp_path / "fsdp.trace")
    assert len(found.runs) == 2  # each rank read another text
    for rank in range(2):
        whole, own = sharded_run.trace_model(model, seed=rank), found.only(rank)
        for name in whole.names:
            assert_close(own[name].weights(), whole[name].weights(), 1e-5)


@pytest.mark.plain
def test_four_ranks(tmp_path: Path) -> None:
    whole = sharded_run.trace_model(sharded_run.save_model(tmp_path / "model"))
    launch(tmp_path, "tensor", n_ranks=4)
    check_heads(tmp_path, whole)
    check_files(tmp_path / "run.trace", whole, n_ranks=4)


def check_heads(folder: Path, whole: Trace) -> None:
    """The parts of all ranks are the trace of one process."""
    found = Trace.load(folder / "run.trace")
    assert found.names == whole.names and len(found.runs) == 1
    for name in whole.names:
        ours, theirs = found[name], whole[name]
        assert ours.heads is None and ours.shape == theirs.shape
        for operand in ("q", "k", "v", "out"):
            assert_close(getattr(ours, operand), getattr(theirs, operand), 1e-5)
        assert_close(ours.weights(), theirs.weights(), 1e-5)
    assert_close(found.residual().end, whole.residual().end, 1e-4)
    chosen = Trace.load(folder / "heads.trace")
    for name in whole.names:
        assert chosen[name].heads == (1, 6)
        assert_close(chosen[name].weights(head=6), whole[name].weights(head=6), 1e-5)


def check_files(folder: Path, whole: Trace, n_ranks: int) -> None:
    """No rank's file holds a head of another one: not under its number, nor in its numbers."""
    own = sharded_run.SIZES["num_attention_heads"] // n_ranks
    for rank in range(n_ranks):
        header, tensors = read_tensors(folder / f"rank-{rank}-of-{n_ranks}.trace", "trace", "")
        mine = slice(rank * own, (rank + 1) * own)
        (run,) = header["runs"]
        for site in run["sites"]:
            assert site["heads"] == list(range(mine.start, mine.stop))
            expected = whole[site["name"]]
            for operand in ("q", "out"):
                found = tensors[f"0/{site['name']}/{operand}"]
                assert_close(found, getattr(expected, operand)[:, mine], 1e-5)
            for operand in ("k", "v"):
                found, all_ = tensors[f"0/{site['name']}/{operand}"], getattr(expected, operand)
                assert_close(found, all_.chunk(n_ranks, dim=1)[rank], 1e-5)
        prefixes = tuple(f"0/{name}/" for name in whole.names)
        of_sites = {name for name in tensors if name.startswith(prefixes)}
        assert of_sites == {f"{prefix}{n}" for prefix in prefixes for n in ("q", "k", "v", "out")}


def part(rank: int, name: str = "decoder.0.self") -> Trace:
    q, k, v = torch.randn(3, 1, 2, 5, 4, generator=torch.Generator().manual_seed(rank)).unbind(0)
    site = record(q, k, v, name=name)
    site.heads = (2 * rank, 2 * rank + 1)
    trace = Trace([Run({name: site})])
    trace.part = (rank, 2)
    return trace


def test_parts_are_joined_by_head_and_by_layer(tmp_path: Path) -> None:
    for rank in (1, 0):
        part(rank).save(tmp_path / "run.trace")
    site = Trace.load(tmp_path / "run.trace")["decoder.0.self"]
    assert site.heads is None and site.shape == (1, 4, 5, 5)
    assert torch.equal(site.q[:, 2:], part(1)["decoder.0.self"].q)
    for rank in (0, 1):  # stages of a pipeline: other layers
        part(rank, f"decoder.{rank}.self").save(tmp_path / "stages.trace")
    assert Trace.load(tmp_path / "stages.trace").names == ["decoder.0.self", "decoder.1.self"]


@pytest.mark.plain
def test_what_is_missing_or_foreign(tmp_path: Path) -> None:
    folder = tmp_path / "run.trace"
    part(0).save(folder)
    with pytest.raises(TraceError, match="lacks the part of rank 1"):
        Trace.load(folder)
    other = part(0)
    other.part = (0, 3)
    with pytest.raises(TraceError, match=r"trace of 3 ranks .* has rank-0-of-2.trace"):
        other.save(folder)
    with pytest.raises(TraceError, match="part of several"):
        part(0).append(folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match="is a file"):
        part(0).save(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match="it has 0 of them"):
        Trace.load(tmp_path / "empty")


class Mesh:
    """Where a parameter lies, without processes: rank 1 of `n`."""

    def __init__(self, n: int) -> None:
        self.n = n

    def size(self, _dim: int) -> int:
        return self.n

    def get_local_rank(self, _dim: int) -> int:
        return 1


def test_heads_are_numbered_by_the_mesh(monkeypatch: pytest.MonkeyPatch) -> None:
    module = torch.nn.Linear(2, 2)
    module.config = SimpleNamespace(num_attention_heads=8)
    assert find_head_shard(module, 4) is None  # one process
    meshes = [(Mesh(3), 0), (Mesh(2), 1)]
    monkeypatch.setattr(head_shards, "_find_meshes", lambda _module: meshes)
    assert find_head_shard(module, 8) is None  # split otherwise, but all heads are here
    assert find_head_shard(module, 4) == (4, 8)
    with pytest.raises(TraceError, match="here are 3 of 8"):
        find_head_shard(module, 3)


def test_parts_that_do_not_fit(tmp_path: Path) -> None:
    for rank in (0, 1):
        found = part(rank)
        found["decoder.0.self"].scale = 0.5 + rank
        found.save(tmp_path / "scales.trace")
        found = part(rank)
        found["decoder.0.self"].mask = (Causal(), Window(left=1))[rank]
        found.save(tmp_path / "masks.trace")
        found = part(rank)
        found["decoder.0.self"].bias = ALiBi(torch.tensor([0.5, 0.25]) / (1 + rank))
        found.save(tmp_path / "slopes.trace")
    with pytest.raises(TraceError, match="the same rows, keys and scale"):
        Trace.load(tmp_path / "scales.trace")
    with pytest.raises(TraceError, match="cannot be joined"):
        Trace.load(tmp_path / "masks.trace")
    joined = Trace.load(tmp_path / "slopes.trace")["decoder.0.self"].bias
    assert isinstance(joined, ALiBi) and joined.slopes.tolist() == [0.5, 0.25, 0.25, 0.125]
