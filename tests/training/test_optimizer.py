import pytest
import torch

from glassformer.errors import ConfigError
from glassformer.models import Config, build
from glassformer.training import Optimizer, clip_gradients
from glassformer.training.initialization import initialize_weights
from glassformer.training.optimizer import parameter_groups

CONFIG = Config(family="decoder", vocab_size=11, dim=8, n_layers=2, n_heads=2, max_len=16)


def test_norms_biases_and_embeddings_do_not_decay():
    model = build(CONFIG)
    decaying, steady = parameter_groups(model)
    names = {id(p): name for name, p in model.named_parameters()}
    assert all(
        names[id(p)].endswith(("qkv.weight", "out.weight", "up.weight", "down.weight"))
        for p in decaying
    )
    assert len(decaying) == 8 and len(decaying) + len(steady) == len(names)
    with_tables, _ = parameter_groups(model, decay_embeddings=True)
    extra = {names[id(p)] for p in with_tables} - {names[id(p)] for p in decaying}
    assert extra == {"embedding.weight", "decoder.positions.weight"}


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_it_is_torchs(kind):
    theirs, ours = (torch.nn.Linear(5, 3, bias=False) for _ in range(2))
    ours.load_state_dict(theirs.state_dict())
    settings = {"betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.1}
    expected = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind](
        theirs.parameters(), lr=0.01, fused=True, **settings
    )
    built = Optimizer(kind=kind, **settings).build(ours)
    built.param_groups[0]["lr"] = 0.01
    for _ in range(5):
        x = torch.randn(7, 5)
        for model, optimizer in ((theirs, expected), (ours, built)):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
    assert torch.equal(theirs.weight, ours.weight)


def test_clipping_is_torchs_and_tells_the_length():
    model = torch.nn.Linear(5, 3)
    model(torch.randn(7, 5) * 30).square().sum().backward()
    twin = torch.nn.Linear(5, 3)
    for a, b in zip(twin.parameters(), model.parameters(), strict=True):
        a.grad = b.grad.clone()
    expected = torch.nn.utils.clip_grad_norm_(twin.parameters(), 2.0)
    before = [p.grad.clone() for p in model.parameters()]
    assert torch.equal(clip_gradients(model.parameters(), 0.0), expected)
    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), before, strict=True))
    assert torch.equal(clip_gradients(model.parameters(), 2.0), expected)
    for a, b in zip(twin.parameters(), model.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad)


@torch.no_grad()
def test_first_weights():
    model = build(CONFIG.replace(dim=64, vocab_size=500))
    initialize_weights(model, "gpt2")
    block = model.decoder.blocks[0]
    assert float(model.embedding.weight.std()) == pytest.approx(0.02, rel=0.1)
    assert float(block.feed_forward.down.weight.std()) == pytest.approx(0.01, rel=0.1)  # √4
    assert float(block.attention.qkv.bias.abs().max()) == 0.0
    initialize_weights(model, "xavier")
    assert float(block.feed_forward.up.weight.abs().max()) == pytest.approx(
        (6 / (64 + 256)) ** 0.5, rel=0.05
    )
    q = block.attention.qkv.weight[:64]
    assert float(q.abs().max()) == pytest.approx((6 / (64 + 64) / 2) ** 0.5, rel=0.05)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    initialize_weights(model, "ours")
    assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())


@pytest.mark.plain
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kind": "sgd"}, "one of adam, adamw, muon; got 'sgd'"),
        ({"betas": (0.9, 1.0)}, r"from 0 to below 1; got \(0.9, 1.0\)"),
        ({"clip": -1.0}, "optimizer.clip must be at least 0; got -1.0"),
    ],
)
def test_refusals(settings, sentence):
    with pytest.raises(ConfigError, match=sentence):
        Optimizer(**settings)
