"""The training loss without whole logits is the loss of the logits, for every task."""

from dataclasses import replace

import pytest
import torch

import glassformer as gf
from glassformer.models import Config, Experts, build
from glassformer.training.data import open_data, prepare_data
from glassformer.training.loss import cross_entropy_sum
from glassformer.training.model_building import build_model
from glassformer.training.tasks import TASKS, Objective
from training import small_runs


@pytest.mark.parametrize("kind", ["translation", "language", "masked"])
@pytest.mark.parametrize("documents", [False, True])
def test_losses_and_gradients_agree(tmp_path, kind, documents):
    recipe = getattr(small_runs, kind)(tmp_path)
    recipe = replace(recipe, batches=replace(recipe.batches, documents=documents))
    prepare_data(recipe, tmp_path)
    task = TASKS[kind](recipe, open_data(tmp_path))
    model = build_model(recipe, task).double()
    for part in model.modules():
        if isinstance(getattr(part, "dropout", None), float):
            part.dropout = 0.0
    tensors = task.batch(task.order(0)[0], 0, 0).tensors
    found = Objective(model, task, smoothing=0.1).train()(tensors)
    logits = task.logits(model, tensors)
    expected = cross_entropy_sum(logits, tensors["targets"], smoothing=0.1)
    torch.testing.assert_close(found.float(), expected)
    weights = list(model.parameters())
    for a, b in zip(*(torch.autograd.grad(x, weights) for x in (found, expected)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_a_mixture_adds_its_load_balancing_loss(tmp_path):
    recipe = small_runs.language(tmp_path)
    prepare_data(recipe, tmp_path)
    task = TASKS["language"](recipe, open_data(tmp_path))
    experts = Experts(n_experts=4, n_active=2, hidden_dim=8, balance=0.3)
    sizes = {"vocab_size": task.tokenizer.vocab_size, "dim": 8, "n_layers": 2, "n_heads": 2}
    config = Config(family="decoder", max_len=64, experts=experts, **sizes)
    model = build(config)
    tensors = task.batch(task.order(0)[0], 0, 0).tensors
    found = Objective(model, task).train()(tensors)
    with gf.watch_routing(model) as routing:
        expected = cross_entropy_sum(task.logits(model, tensors), tensors["targets"])
    expected = expected + 0.3 * tensors["targets"].numel() * routing.balance_loss()
    torch.testing.assert_close(found, expected)
    whole = Objective(model, task).eval()(tensors)[0]
    torch.testing.assert_close(
        whole, cross_entropy_sum(task.logits(model, tensors), tensors["targets"])
    )
