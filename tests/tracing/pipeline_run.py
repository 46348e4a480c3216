"""The ranks of a pipeline that is watched, with gloo.

python pipeline_run.py N_RANKS FOLDER WAY…
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import transformers
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    SplitPoint,
    pipeline,
)
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

sys.path.insert(0, str(Path(__file__).parents[1]))

from glassformer.errors import TraceError
from glassformer.tracing import Trace, watch
from glassformer.tracing.head_shards import as_plain
from tracing.forked_ranks import run_ranks
from tracing.sharded_run import SIZES

N_LAYERS = 4
N_BATCHES = 3
OPTIONS: dict[str, Any] = {"outputs": True, "residual": True}


def build_model() -> Any:
    """Grouped heads, norms of q and k, and weights that differ from layer to layer."""
    torch.manual_seed(0)
    sizes = SIZES | {"num_hidden_layers": N_LAYERS, "use_cache": False}
    model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**sizes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model.eval()


def tokens() -> Tensor:
    return torch.randint(3, 37, (2 * N_BATCHES, 11), generator=torch.Generator().manual_seed(1))


def trace_whole() -> Trace:
    """The same texts in one process: a run for each micro-batch."""
    model = build_model()
    with watch(model, **OPTIONS) as trace, torch.no_grad():
        for batch in tokens().chunk(N_BATCHES):
            model(batch)
    return trace


def own_layers(stage: int, n_stages: int) -> range:
    each = N_LAYERS // n_stages
    return range(stage * each, (stage + 1) * each)


class Stage(nn.Module):
    """Some layers of a model, cut by hand."""

    def __init__(self, model: Any, layers: range, *, keeps_numbers: bool) -> None:
        super().__init__()
        held = [model.model.layers[i] for i in layers]
        numbered = {str(i): layer for i, layer in zip(layers, held, strict=True)}
        self.layers = nn.ModuleDict(numbered) if keeps_numbers else nn.ModuleList(held)
        self.rotary = model.model.rotary_emb
        self.embedding = model.model.embed_tokens if layers[0] == 0 else None
        self.norm = model.model.norm if layers[-1] == N_LAYERS - 1 else None
        self.head = model.lm_head if layers[-1] == N_LAYERS - 1 else None

    def forward(self, x: Tensor) -> Tensor:
        h = x if self.embedding is None else self.embedding(x)
        rotations = self.rotary(h, torch.arange(h.shape[1])[None])
        for layer in self.layers.children():
            h = layer(h, attention_mask=None, position_embeddings=rotations)
        return h if self.norm is None or self.head is None else self.head(self.norm(h))


class Exportable(Stage):
    """All layers, and rotations that are known before: torch.export loses those of a module."""

    def __init__(self) -> None:
        super().__init__(build_model(), range(N_LAYERS), keeps_numbers=False)
        length = tokens().shape[1]
        cos, sin = self.rotary(torch.zeros(1), torch.arange(length)[None])
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, x: Tensor) -> Tensor:
        assert self.embedding is not None and self.norm is not None and self.head is not None
        h = self.embedding(x)
        for layer in self.layers.children():
            h = layer(h, attention_mask=None, position_embeddings=(self.cos, self.sin))
        return self.head(self.norm(h))


class CutModel(nn.Module):
    """A model of transformers without the layers of others, as many people cut one."""

    def __init__(self, layers: range) -> None:
        super().__init__()
        self.model = build_model().model
        self.model.layers = nn.ModuleList([self.model.layers[i] for i in layers])
        self.is_first = layers[0] == 0
        if not self.is_first:
            self.model.embed_tokens = None
        if layers[-1] < N_LAYERS - 1:
            self.model.norm = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        given = {"input_ids": x} if self.is_first else {"inputs_embeds": x}
        return self.model(**given, use_cache=False).last_hidden_state


def cut_by_hand(rank: int, n_ranks: int, *, keeps_numbers: bool = True) -> Stage:
    layers = own_layers(rank, n_ranks)
    return Stage(build_model(), layers, keeps_numbers=keeps_numbers).eval()


def forget_numbers(stage: nn.Module) -> None:
    """As in stages that were built from a config for as many layers as they have."""
    for i, layer in enumerate(stage.layers.children()):  # pyright: ignore
        layer.self_attn.layer_idx = i
        layer.self_attn.config.num_hidden_layers = len(stage.layers)  # pyright: ignore


def as_stage(module: nn.Module, rank: int, n_ranks: int, group: Any = None) -> PipelineStage:
    return PipelineStage(module, rank, n_ranks, torch.device("cpu"), group=group)


def watch_stage(module: nn.Module, schedule: Any, path: Path, **options: Any) -> Trace:
    """Run all micro-batches, save what this rank has recorded, and check that it is its own."""
    is_first = schedule._stage.is_first
    with watch(module, **OPTIONS | options) as trace, torch.no_grad():
        schedule.eval(*[tokens()] if is_first else [])
    trace.save(path)
    return trace


def run_numbered(folder: Path, rank: int, n_ranks: int) -> None:
    module = cut_by_hand(rank, n_ranks)
    schedule = ScheduleGPipe(as_stage(module, rank, n_ranks), N_BATCHES)
    trace = watch_stage(module, schedule, folder / "numbered.trace")
    assert trace.names == [f"decoder.{i}.self" for i in own_layers(rank, n_ranks)], trace.names
    assert len(trace.runs) == N_BATCHES
    watch_stage(module, schedule, folder / "chosen.trace", layers=[1], heads=[5], rows="last")


def run_counted(folder: Path, rank: int, n_ranks: int) -> None:
    """Every stage counts its layers from 0; attention knows better, or first_layer= says it."""
    module = cut_by_hand(rank, n_ranks, keeps_numbers=False)
    schedule = ScheduleGPipe(as_stage(module, rank, n_ranks), N_BATCHES)
    watch_stage(module, schedule, folder / "counted.trace")
    forget_numbers(module)
    watch_stage(module, schedule, folder / "overlaid.trace")
    first = own_layers(rank, n_ranks)[0]
    watch_stage(module, schedule, folder / "first.trace", first_layer=first)


def run_cut(folder: Path, rank: int, n_ranks: int) -> None:
    module = CutModel(own_layers(rank, n_ranks)).eval()
    schedule = ScheduleGPipe(as_stage(module, rank, n_ranks), N_BATCHES)
    watch_stage(module, schedule, folder / "cut.trace")


def run_exported(folder: Path, rank: int, n_ranks: int) -> None:
    """Cut by PyTorch, out of a graph."""
    starts = [own_layers(i, n_ranks)[0] for i in range(1, n_ranks)]
    spec = {f"layers.{i}": SplitPoint.BEGINNING for i in starts}
    pipe = pipeline(Exportable().eval(), mb_args=(tokens()[:2],), split_spec=spec)
    stage = pipe.build_stage(rank, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, N_BATCHES)
    watch_stage(stage.submod, schedule, folder / "exported.trace", residual=False)


def compute_loss(out: Tensor, target: Tensor) -> Tensor:
    return nn.functional.cross_entropy(out.flatten(0, 1), target.flatten())


def run_training(folder: Path, rank: int, n_ranks: int) -> None:
    """Forward and backward passes take turns."""
    module = cut_by_hand(rank, n_ranks)
    schedule = Schedule1F1B(as_stage(module, rank, n_ranks), N_BATCHES, loss_fn=compute_loss)
    options = {"target": tokens()} if rank == n_ranks - 1 else {}
    with watch(module, **OPTIONS) as trace:
        schedule.step(*[tokens()] if rank == 0 else [], **options)
    trace.save(folder / "training.trace")
    assert all(p.grad is not None for p in module.parameters())


def run_interleaved(folder: Path, rank: int, n_ranks: int) -> None:
    """Two stages on every rank, with the layers of other ranks between them; each counts from 0."""
    n_stages = 2 * n_ranks
    places = [rank, rank + n_ranks]
    modules = [cut_by_hand(place, n_stages, keeps_numbers=False) for place in places]
    stages = [as_stage(*each, n_stages) for each in zip(modules, places, strict=True)]
    schedule = ScheduleInterleaved1F1B(stages, N_BATCHES, loss_fn=compute_loss)  # pyright: ignore
    options = {"target": tokens()} if rank == n_ranks - 1 else {}
    with ExitStack() as contexts:
        traces = [contexts.enter_context(watch(module, **OPTIONS)) for module in modules]
        schedule.step(*[tokens()] if rank == 0 else [], **options)
    for trace, place in zip(traces, places, strict=True):
        assert trace.names == [f"decoder.{i}.self" for i in own_layers(place, n_stages)]
        trace.save(folder / "interleaved.trace")
    traces[0].save(folder / "incomplete.trace")


def run_both(folder: Path, rank: int, n_ranks: int) -> None:
    """Two stages, the heads of each on two ranks."""
    del rank
    mesh = init_device_mesh("cpu", (2, n_ranks // 2), mesh_dim_names=("stages", "heads"))
    place = mesh.get_local_rank("stages")
    module = cut_by_hand(place, 2)
    plan = {f"layers.*.self_attn.{name}_proj": ColwiseParallel() for name in "qkv"}
    plan["layers.*.self_attn.o_proj"] = RowwiseParallel()
    plan |= {f"layers.*.mlp.{name}_proj": ColwiseParallel() for name in ("gate", "up")}
    plan["layers.*.mlp.down_proj"] = RowwiseParallel()
    parallelize_module(module, mesh["heads"], plan)
    stage = as_stage(module, place, 2, mesh.get_group("stages"))
    trace = watch_stage(module, ScheduleGPipe(stage, N_BATCHES), folder / "both.trace")
    each = SIZES["num_attention_heads"] // 2
    first = mesh.get_local_rank("heads") * each
    assert all(site.heads == tuple(range(first, first + each)) for site in trace)
    split = next(iter(module.layers.children())).self_attn.q_proj.weight  # pyright: ignore
    with pytest.raises(TraceError, match="must be its own tensors; this one is a DTensor"):
        as_plain(split.detach())


WAYS = {
    "numbered": run_numbered,
    "counted": run_counted,
    "cut": run_cut,
    "exported": run_exported,
    "training": run_training,
    "interleaved": run_interleaved,
    "both": run_both,
}


def main(folder: Path, ways: list[str]) -> None:
    dist.init_process_group("gloo")
    for way in ways:
        WAYS[way](folder, dist.get_rank(), dist.get_world_size())
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    n_ranks, folder, *ways = sys.argv[1:]
    transformers.Qwen3ForCausalLM  # imported when it is named: once, not by each rank
    sys.exit(run_ranks(int(n_ranks), lambda: main(Path(folder), ways)))
