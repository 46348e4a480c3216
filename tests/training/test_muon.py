"""Muon: what is orthogonal, which matrices are, and that a stopped run goes on to the same bits."""

import os
import signal

import pytest
import torch

from glassformer.errors import ConfigError
from glassformer.models import Config, Experts, build
from glassformer.training import Optimizer, TrainingInterrupted
from glassformer.training.muon import Muon, orthogonalize, split_parameters
from training import small_runs

CONFIG = Config(
    family="decoder",
    vocab_size=11,
    dim=12,
    n_layers=2,
    n_heads=3,
    n_kv_heads=1,
    hidden_dim=20,
    gated=True,
    max_len=16,
)


def test_experts_count_one_by_one():
    experts = Experts(n_experts=3, n_active=1, hidden_dim=5)
    model = build(CONFIG.replace(experts=experts))
    matrices, row_counts = split_parameters(model)
    names = {id(p): name for name, p in model.named_parameters()}
    found = {names[id(m)]: rows for m, rows in zip(matrices, row_counts, strict=True)}
    block = "decoder.blocks.1.feed_forward."
    assert found[f"{block}expert_up.weight"] == [5] * 6
    assert found[f"{block}expert_down.weight"] == [12] * 3
    assert f"{block}router.weight" not in found
    weight = model.decoder.blocks[1].feed_forward.expert_up.weight
    before = weight.detach().clone()
    optimizer = Optimizer(kind="muon").build(model)
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    weight.grad = torch.randn(3, 10, 12)
    optimizer.step()
    expected = orthogonalize(1.95 * weight.grad[2, 5:]) * 0.1 * 0.2 * 12**0.5  # Nesterov's first
    torch.testing.assert_close((before - weight.detach())[2, 5:], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", [(7, 13), (13, 7), (8, 8)])
def test_singular_values_become_one_and_vectors_stay(shape):
    torch.manual_seed(0)
    matrix = torch.randn(shape, dtype=torch.float64)
    u, s, vh = torch.linalg.svd(matrix, full_matrices=False)
    inner = u.t() @ orthogonalize(matrix) @ vh.t()
    values = inner.diagonal()
    assert float(s.max() / s.min()) > 2 and float(values.min()) > 0.5 and float(values.max()) < 1.3
    torch.testing.assert_close(inner, torch.diag(values), rtol=0, atol=1e-9)


def test_fused_matrices_count_as_several():
    model = build(CONFIG)
    matrices, row_counts = split_parameters(model)
    names = {id(p): name for name, p in model.named_parameters()}
    found = {names[id(m)]: rows for m, rows in zip(matrices, row_counts, strict=True)}
    block = "decoder.blocks.1."
    assert found[f"{block}attention.qkv.weight"] == [12, 4, 4]
    assert found[f"{block}feed_forward.up.weight"] == [20, 20]
    assert found[f"{block}feed_forward.down.weight"] == [12]
    assert len(found) == 8 and "embedding.weight" not in found


def test_an_update_by_its_formula():
    torch.manual_seed(0)
    model = build(CONFIG)
    optimizer = Optimizer(kind="muon", weight_decay=0.1).build(model)
    assert isinstance(optimizer, Muon)
    for group in optimizer.param_groups:
        group["lr"] = 0.01
    layer = model.decoder.blocks[0].feed_forward.down
    before, momentum = layer.weight.detach().clone(), torch.zeros_like(layer.weight)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randint(0, 11, (2, 5))).square().mean().backward()
        momentum = 0.95 * momentum + layer.weight.grad
        ahead = layer.weight.grad + 0.95 * momentum
        before = before * (1 - 0.01 * 0.1) - 0.01 * 0.2 * 20**0.5 * orthogonalize(ahead)
        optimizer.step()
        torch.testing.assert_close(layer.weight.detach(), before)
    assert set(optimizer.state[layer.weight]) == {"momentum"}
    assert set(optimizer.state[model.embedding.weight]) == {"step", "exp_avg", "exp_avg_sq"}


def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path):
    recipe = small_runs.language(
        tmp_path, optimizer={"kind": "muon"}, until={"steps": 12}, show={"every": 7}
    )
    small_runs.run(recipe, tmp_path / "whole")
    stopping = small_runs.RecordingDisplay(at=7, do=lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(TrainingInterrupted):
        small_runs.run(recipe, tmp_path / "stopped", show=stopping)
    small_runs.run(recipe, tmp_path / "stopped", resume=True)
    whole, stopped = (small_runs.weights(tmp_path / n) for n in ("whole", "stopped"))
    assert whole.keys() == stopped.keys()
    assert all(torch.equal(whole[name], stopped[name]) for name in whole)


@pytest.mark.plain
def test_sharded_matrices_are_refused(monkeypatch):
    model = build(CONFIG)
    monkeypatch.setattr(torch.nn.Parameter, "to_local", None, raising=False)
    with pytest.raises(ConfigError, match="needs whole matrices in every process; got compute"):
        split_parameters(model)
