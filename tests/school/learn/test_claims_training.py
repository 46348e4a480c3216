"""Claims about learning, on models so small that a test can train them."""

import math

import pytest
import torch
from torch import nn

import glassformer as gf

pytestmark = pytest.mark.plain  # they train: with every signature checked, four times as long
SEEDS = pytest.mark.parametrize("seed", range(2))
V, L = 8, 9


@pytest.fixture(autouse=True)
def one_thread():
    """The tensors are tiny: several threads would only wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def train(family, seed, losses, steps=150):
    """A model of one layer, trained on random tokens, and its last loss."""
    torch.manual_seed(seed)
    model = gf.build(
        gf.Config(family=family, vocab_size=V, dim=32, n_layers=1, n_heads=1, max_len=L)
    )
    for weight in model.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=32**-0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        loss = losses(model, torch.randint(V, (32, L)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, loss.item()


def cross_entropy(logits, targets):
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def predict_next_unmasked(model, tokens):
    vectors = model(tokens)
    return cross_entropy((vectors @ model.embedding.weight.T)[:, :-1], tokens[:, 1:])


def predict_next(model, tokens):
    return cross_entropy(model(tokens)[:, :-1], tokens[:, 1:])


def predict_next_from_itself(model, tokens):
    return cross_entropy(model(tokens, tokens)[:, :-1], tokens[:, 1:])


def predict_next_from_another(model, tokens):
    return cross_entropy(model(torch.randint(V, (32, L)), tokens)[:, :-1], tokens[:, 1:])


@SEEDS
def test_who_sees_the_next_token_copies_it(seed):
    """Random tokens cannot be predicted: a loss below log V is a leak."""
    assert train("encoder", seed, predict_next_unmasked, steps=80)[1] < 0.2
    assert train("decoder", seed, predict_next, steps=60)[1] > 0.9 * math.log(V)


@SEEDS
def test_an_encoder_that_reads_the_target_makes_a_perfect_loss_of_nothing(seed):
    assert train("encoder_decoder", seed, predict_next_from_itself, steps=120)[1] < 0.4
    apart = train("encoder_decoder", seed, predict_next_from_another, steps=60)
    assert apart[1] > 0.9 * math.log(V)


@SEEDS
def test_a_single_head_that_recalls_the_previous_token_needs_to_see_it(seed):
    def predict_previous(model, tokens):
        return cross_entropy(model(tokens)[:, 1:], tokens[:, :-1])

    model, loss = train("decoder", seed, predict_previous)
    assert loss < 0.1
    tokens = torch.randint(V, (1, L))
    with torch.no_grad():
        for place in range(2, L):
            hidden = gf.Knockout("decoder.0.self", queries=place, keys=place - 1, head=0)
            with gf.change(model, hidden):
                others = [torch.randint(V, (1, L)) for _ in range(20)]
                right = [int(model(t)[0, place].argmax()) == int(t[0, place - 1]) for t in others]
            assert sum(right) <= 12
        assert (model(tokens)[0, 1:].argmax(-1) == tokens[0, :-1]).all()


@SEEDS
def test_a_new_model_begins_near_log_v_and_weights_that_are_too_large_do_not(seed):
    torch.manual_seed(seed)
    model = gf.build(
        gf.Config(family="decoder", vocab_size=100, dim=32, n_layers=2, n_heads=2, max_len=16)
    )
    tokens = torch.randint(100, (8, 16))
    assert abs(predict_next(model, tokens).item() - math.log(100)) < 0.5
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(20)
    assert predict_next(model, tokens).item() > 2 * math.log(100)


@SEEDS
def test_steps_of_adam_do_not_grow_with_the_gradient(seed):
    torch.manual_seed(seed)
    gradients = torch.randn(5, 7)
    ends = []
    for factor in (1.0, 1000.0):
        x = nn.Parameter(torch.zeros(7))
        optimizer = torch.optim.Adam([x], lr=0.1)
        for gradient in gradients:
            x.grad = factor * gradient
            optimizer.step()
        ends.append(x.detach())
    assert torch.allclose(*ends, atol=1e-5)
    x = nn.Parameter(torch.zeros(7))
    x.grad = gradients[0]
    torch.optim.Adam([x], lr=0.1).step()  # the first step has full length in every coordinate
    assert torch.allclose(x, -0.1 * gradients[0].sign(), atol=1e-5)


@SEEDS
def test_a_hard_target_asks_for_infinite_logits(seed):
    torch.manual_seed(seed)
    for size in (1.0, 5.0, 20.0):
        logits = torch.randn(1, 7, dtype=torch.float64)
        logits[0, 3] += size
        logits.requires_grad_()
        loss = nn.functional.cross_entropy(logits, torch.tensor([3]))
        (gradient,) = torch.autograd.grad(loss, logits)
        assert loss > 0 and gradient[0, 3] < 0  # larger would still be better


@SEEDS
def test_every_further_token_lowers_the_probability_of_a_text(seed):
    torch.manual_seed(seed)
    model = gf.build(
        gf.Config(family="decoder", vocab_size=V, dim=32, n_layers=1, n_heads=2, max_len=12)
    )
    tokens = torch.randint(V, (1, 12))
    with torch.no_grad():
        chances = model(tokens).log_softmax(-1)[0, :-1].gather(1, tokens[0, 1:, None])
    assert (chances.cumsum(0).diff(dim=0) < 0).all()
