"""Models whose layers lie on several devices, or on disk until they run, by device_map."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from closeness import assert_close
from glassformer.errors import TraceError
from glassformer.tracing import Trace, watch
from glassformer.tracing.offloading import read_weight
from tracing import sharded_run

pytest.importorskip("accelerate", reason="device_map needs accelerate")

N_LAYERS = sharded_run.SIZES["num_hidden_layers"]


def place_layers(places: list[Any], rest: Any) -> dict[str, Any]:
    """A device for each layer, and one for everything else."""
    layers = {f"model.layers.{i}": place for i, place in enumerate(places)}
    ends = ("model.embed_tokens", "model.norm", "model.rotary_emb", "lm_head")
    return layers | dict.fromkeys(ends, rest)


def load(folder: Path, device_map: Any, kind: Any = transformers.LlamaForCausalLM) -> Any:
    offloaded = folder / "offloaded"
    return kind.from_pretrained(
        folder / "model", device_map=device_map, offload_folder=offloaded
    ).eval()


def check_same(found: Trace, whole: Trace, tolerance: float = 0.0) -> None:
    """Operands, weights, stream and scores of a plain model, to the bit unless said otherwise."""
    assert found.names == whole.names and not found.run.refusals
    for name in whole.names:
        for operand in ("q", "k", "v", "out"):
            ours, theirs = getattr(found[name], operand), getattr(whole[name], operand)
            assert_close(ours.cpu(), theirs, tolerance)
        assert_close(found[name].weights().cpu(), whole[name].weights(), tolerance)
    stream, expected = found.residual(), whole.residual()
    assert stream.borders == expected.borders
    for border in expected.borders:
        assert_close(stream.after(border).cpu(), expected.after(border), tolerance)
    for ours, theirs in zip(stream.parts, expected.parts, strict=True):
        assert ours.writing is not None and theirs.writing is not None
        assert torch.equal(ours.writing.weight.cpu(), theirs.writing.weight)
    assert_close(found.logits().cpu(), whole.logits(), tolerance)
    ours, theirs = stream.require_readout(), expected.require_readout()
    assert ours.norm is not None and ours.norm.gain is not None
    assert theirs.norm is not None and theirs.norm.gain is not None
    assert torch.equal(ours.norm.gain.cpu(), theirs.norm.gain)


@pytest.mark.parametrize(
    "device_map",
    [
        {"": "cpu"},
        place_layers(["cpu", "disk", "disk"], "cpu"),
        place_layers(["disk", "cpu", "disk"], "disk"),
        {"": "disk"},
    ],
    ids=["cpu", "layers on disk", "head on disk", "all on disk"],
)
def test_layers_on_disk(tmp_path: Path, device_map: dict[str, Any]) -> None:
    whole = sharded_run.trace_model(sharded_run.save_model(tmp_path / "model"))
    model = load(tmp_path, device_map)
    is_offloaded = "disk" in device_map.values()
    assert any(parameter.is_meta for parameter in model.parameters()) == is_offloaded
    found = sharded_run.trace_model(model)
    check_same(found, whole)
    assert found.part is None  # one process: one file
    found.save(tmp_path / "run.trace")
    read = Trace.load(tmp_path / "run.trace")
    best, expected = read.residual().best_tokens(), whole.residual().best_tokens()
    assert best is not None and expected is not None
    assert torch.equal(best.tokens, expected.tokens)
    assert any(parameter.is_meta for parameter in model.parameters()) == is_offloaded


def test_norms_of_the_stream_on_disk(tmp_path: Path) -> None:
    """Post-norm: the stream itself passes norms whose weights are gone when the block returns."""
    torch.manual_seed(0)
    sizes: dict[str, Any] = {**sharded_run.SIZES, "num_hidden_layers": 2}
    model = transformers.BertForMaskedLM(transformers.BertConfig(**sizes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    model.save_pretrained(tmp_path / "model")
    whole = sharded_run.trace_model(model)
    found = sharded_run.trace_model(load(tmp_path, {"": "disk"}, transformers.BertForMaskedLM))
    assert not found.run.refusals
    for name in whole.names:
        assert torch.equal(found[name].weights(), whole[name].weights())
    for border in whole.residual().borders:
        assert_close(found.residual().after(border), whole.residual().after(border), 0.0)


def test_generation_with_layers_on_disk(tmp_path: Path) -> None:
    plain = sharded_run.save_model(tmp_path / "model")
    model = load(tmp_path, place_layers(["cpu", "disk", "disk"], "cpu"))
    traces = []
    for each in (plain, model):
        with watch(each) as trace, torch.no_grad():
            each.generate(sharded_run.tokens()[:1], max_new_tokens=4, do_sample=False)
        traces.append(trace)
    assert traces[0].names == traces[1].names
    for name in traces[0].names:
        # Weights lie in a file as they come, and MKL adds unaligned numbers in another order.
        assert_close(traces[0][name].weights(), traces[1][name].weights(), 1e-6)


def test_weights_that_cannot_be_read() -> None:
    module = torch.nn.LayerNorm(3, device="meta")
    with pytest.raises(
        TraceError, match="the weight of LayerNorm is offloaded, and cannot be read"
    ):
        read_weight(module, "weight")
    assert read_weight(module, "gain") is None


@pytest.mark.gpu
@pytest.mark.plain
def test_layers_on_two_devices(tmp_path: Path) -> None:
    """A layer on the CPU between two on the GPU: sites stay where they are, the stream meets."""
    whole = sharded_run.trace_model(sharded_run.save_model(tmp_path / "model"))
    model = load(tmp_path, place_layers([0, "cpu", 0], 0))
    found = sharded_run.trace_model(model)
    check_same(found, whole, 1e-4)
    assert {site.q.device.type for site in found} >= {"cuda"}
    assert {part.value.device.type for part in found.residual().parts} <= {"cpu", "cuda"}
    through = found.rollout("decoder")
    assert_close(through.cpu(), whole.rollout("decoder"), 1e-4)
    found.save(tmp_path / "run.trace")
    assert Trace.load(tmp_path / "run.trace").names == whole.names
