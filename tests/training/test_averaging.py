import torch
from torch import nn

from glassformer.training.averaging import MovingAverage, mean_weights


def test_the_formula_step_by_step():
    model = nn.Linear(3, 2)
    average = MovingAverage(model, decay=0.9)
    expected = model.weight.detach().double()
    for n in range(1, 200):
        with torch.no_grad():
            model.weight.add_(torch.randn(2, 3) * 0.1)
        average.update(model, n=n)
        d = min(0.9, (1 + n) / (10 + n))
        expected = d * expected + (1 - d) * model.weight.detach().double()
    torch.testing.assert_close(average.weights["weight"].double(), expected, atol=1e-5, rtol=1e-5)


def test_swapping_twice_changes_nothing():
    model = nn.Linear(3, 2)
    average = MovingAverage(model, decay=0.9)
    with torch.no_grad():
        model.weight.add_(1.0)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    kept = average.weights["weight"].clone()
    average.swap(model)
    assert torch.equal(model.weight, kept)
    average.swap(model)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert torch.equal(average.weights["weight"], kept)


def test_the_mean_of_checkpoints():
    states = [{"w": torch.randn(5, 3), "b": torch.randn(5)} for _ in range(7)]
    mean = mean_weights(states)
    for name in ("w", "b"):
        expected = sum(state[name].double() for state in states) / 7
        assert torch.equal(mean[name], expected.float())
