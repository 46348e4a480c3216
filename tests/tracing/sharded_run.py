"""The ranks of a sharded model that is watched, with gloo.

python sharded_run.py N_RANKS FOLDER tensor|data
"""

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import transformers
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

sys.path.insert(0, str(Path(__file__).parents[1]))

from glassformer.tracing import Trace, watch
from tracing.forked_ranks import run_ranks

SIZES: dict[str, Any] = {
    "vocab_size": 37,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "pad_token_id": 1,
}


def save_model(folder: Path) -> Any:
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    model.save_pretrained(folder)
    return model.eval()


def tokens(seed: int = 0) -> torch.Tensor:
    return torch.randint(3, 37, (2, 11), generator=torch.Generator().manual_seed(seed))


def trace_model(model: Any, seed: int = 0, **options: Any) -> Trace:
    with watch(model, outputs=True, residual=True, **options) as trace, torch.no_grad():
        model(tokens(seed))
    return trace


def check_own_heads(trace: Trace, rank: int, n_ranks: int) -> None:
    """No rank holds heads of another one."""
    each = SIZES["num_attention_heads"] // n_ranks
    for site in trace:
        assert site.heads == tuple(range(rank * each, (rank + 1) * each)), site.heads
        assert site.q.shape[1] == each
        assert site.k.shape[1] == SIZES["num_key_value_heads"] // n_ranks


def run_tensor_parallel(folder: Path, rank: int, n_ranks: int) -> None:
    config = transformers.distributed.DistributedConfig(tp_plan="auto", tp_size=n_ranks)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder / "model", distributed_config=config
    ).eval()
    trace = trace_model(model)
    check_own_heads(trace, rank, n_ranks)
    trace.save(folder / "run.trace")
    trace_model(model, heads=[1, 6]).save(folder / "heads.trace")


def run_fully_sharded(folder: Path, rank: int, n_ranks: int) -> None:
    """Every rank reads a text of its own."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "model").eval()
    mesh = init_device_mesh("cpu", (n_ranks,))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    trace_model(model, seed=rank).save(folder / "fsdp.trace")


def main(folder: Path, ways: list[str]) -> None:
    dist.init_process_group("gloo")
    for way in ways:
        run = {"tensor": run_tensor_parallel, "data": run_fully_sharded}[way]
        run(folder, dist.get_rank(), dist.get_world_size())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    n_ranks, folder, *ways = sys.argv[1:]
    transformers.LlamaForCausalLM  # imported when it is named: once, not by each rank
    sys.exit(run_ranks(int(n_ranks), lambda: main(Path(folder), ways)))
