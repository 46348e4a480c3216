"""Effects of heads: each equals the same ablation made by hand, and predictions are the model's."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from closeness import assert_close
from glassformer.errors import TraceError
from letter_models import letter_model
from tracing.watched_architectures import built

TOKENS = torch.tensor([[5, 9, 4, 13, 24, 9]])


def record(model: nn.Module, tokens: Tensor = TOKENS) -> gf.Trace:
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(tokens)
    return trace


def predict(model: nn.Module) -> Tensor:
    with torch.no_grad():
        out = model(TOKENS)
    return (out if isinstance(out, Tensor) else out.logits)[0].double().log_softmax(-1)


@pytest.mark.parametrize("name", ["ours", "llama", "gpt2"])
@pytest.mark.parametrize("how", ["mean", "zero"])
def test_each_effect_is_that_of_the_ablation(name: str, how: Any) -> None:
    model = letter_model("decoder", n_layers=2) if name == "ours" else built(name, "sdpa")
    trace = record(model)
    found = gf.head_effects(trace, how=how, batch=3)
    own = predict(model)
    for i, (site, head) in enumerate(found.heads):
        with gf.change(
            model, gf.Ablate(site, head=head, how=how, of=None if how == "zero" else trace)
        ):
            changed = predict(model)
        apart = (own.exp() * (own - changed)).sum(-1).mean()
        assert_close(found.divergence[i].float(), apart.float(), 1e-4)
        rows = torch.arange(5)
        worse = (own - changed)[rows, TOKENS[0, 1:]].mean()
        assert abs(float(found.loss[i] - worse)) < 1e-5
    assert len(found.heads) == sum(site.n_heads for site in trace)
    (site, head, most), *_ = found.top(1)
    assert found.rank(site, head) == 1 and found.of(site, head) == most == found.divergence.max()
    assert f"{site}.{head}" in str(found)


def test_heads_of_an_encoder_count_by_what_the_decoder_writes() -> None:
    model = gf.load("translator")
    with gf.watch(model, residual=True) as trace:
        gf.translate(model, "The cat sat.", to="fr", beams=1)
    done = []
    found = gf.head_effects(trace, report=lambda n, total: done.append((n, total)))
    kinds = {site.partition(".")[0] for site, _ in found.heads}
    assert kinds == {"encoder", "decoder"} and done[-1] == (len(found.heads), len(found.heads))
    assert all(found.of(site, head) > 0 for site, head in found.heads[:4])


def test_roles_bring_their_effects() -> None:
    model = letter_model("decoder", n_layers=2)
    trace = record(model)
    effects = gf.head_effects(trace)
    site = trace["decoder.1.self"]
    for role in gf.roles(site, TOKENS[0], effects=effects):
        assert role.effect == effects.of(*role.layer_head)
    assert gf.roles(site)[0].effect is None


@pytest.mark.plain
def test_mistakes_are_one_sentence() -> None:
    model = letter_model("decoder", n_layers=2)
    trace = record(model)
    how: Any = "none"
    with pytest.raises(TraceError, match="how must be 'mean' or 'zero'; got 'none'"):
        gf.head_effects(trace, how=how)
    with pytest.raises(TraceError, match="batch must be at least 1; got batch=0"):
        gf.head_effects(trace, batch=0)
    with pytest.raises(TraceError, match=r"There are \d+ heads; got decoder\.9\.self, head 0"):
        gf.head_effects(trace).of("decoder.9.self", 0)
