"""The mean of saved models."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import glassformer as gf
from glassformer.errors import ConfigError

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes"))
means: ModuleType = importlib.import_module("mean")


def model(dim: int = 8) -> torch.nn.Module:
    config = gf.Config(
        family="decoder", vocab_size=5, dim=dim, n_layers=1, n_heads=2, max_len=4, hidden_dim=8
    )
    return gf.build(config)


def test_every_weight_is_the_mean():
    a, b = model(), model()
    before = {name: tensor.clone() for name, tensor in a.state_dict().items()}
    found = means.mean([a, b], [0.25, 0.75]).state_dict()
    for name, tensor in b.state_dict().items():
        exact = 0.25 * before[name].double() + 0.75 * tensor.double()
        assert torch.equal(found[name], exact.float()), name


@pytest.mark.parametrize("shares", [[1.0], [0.5, 0.6], [0.5, 0.25, 0.25]])
def test_shares_that_do_not_fit(shares):
    with pytest.raises(ConfigError, match=r"Each model must have a share, .* got 2 models"):
        means.mean([model(), model()], shares)


def test_models_of_two_shapes():
    with pytest.raises(ConfigError, match="must have one shape; number 2 has another"):
        means.mean([model(), model(dim=16)], [0.5, 0.5])


def test_from_folders_to_a_folder(tmp_path, monkeypatch, capsys):
    for name in ("a", "b"):
        gf.save(model(), tmp_path / name)
    words = ["mean.py", "a", "b", "--shares", "0.5", "0.5", "--half", "--out", "c"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [word if word not in "ab" else f"./{word}" for word in words])
    assert means.main() == 0
    states = [gf.load(tmp_path / name).state_dict() for name in "abc"]
    for name, tensor in states[2].items():
        assert tensor.dtype == torch.float16
        assert torch.equal(tensor, ((states[0][name] + states[1][name]) / 2).half()), name
    assert means.main() == 2
    assert "c exists already" in capsys.readouterr().err
