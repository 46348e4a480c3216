"""Neurons: their shares add up to those of their feed-forward networks, or they are refused."""

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.errors import TraceError
from glassformer.models.config import Norms
from letter_models import letter_model
from tiny_models import tiny
from tracing.test_readout import WRITERS
from tracing.test_stream import build
from tracing.watched_architectures import inputs

# Experts, each with a matrix of its own.
MIXED = {
    "deepseek-v3",
    "gpt-oss",
    "jamba",
    "llama4",
    "mixtral",
    "qwen2-moe",
    "qwen3-moe",
    "qwen3-next",
}


def check_neurons(trace, model, token: int, **options) -> int:
    """The shares of the neurons of a part are the part's; how many there are."""
    split = gf.attribute(trace, token, by="neuron", model=model, **options)
    options.pop("inputs", None)
    parts = {s.name: s.value for s in gf.attribute(trace, token, **options).shares}
    sums: dict[str, float] = {}
    for share in split.shares:
        name = share.part.removesuffix(".bias") if share.part not in parts else share.part
        sums[name] = sums.get(name, 0.0) + share.value
    assert sums.keys() == parts.keys()
    assert max(abs(sums[name] - parts[name]) for name in parts) < 1e-4
    assert abs(split.remainder) < 1e-4
    assert "the activations of neurons" in split.frozen
    return sum(share.neuron is not None for share in split.shares)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # theirs
def test_every_architecture_is_split_or_refused(name: str) -> None:
    model = build(name)
    given = inputs(model, "text")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(**given)
    if name in MIXED:
        with pytest.raises(TraceError, match="a mixture of experts has one for each expert"):
            gf.attribute(trace, 7, by="neuron", model=model, inputs=given)
        return
    n = check_neurons(trace, model, 7, against=9, position=2, sequence=1, inputs=given)
    assert n >= 20


def test_a_neuron_is_its_activation_times_its_row() -> None:
    model, tokens = tiny("llama"), torch.arange(3, 9)[None]
    seen = []
    model.model.layers[1].mlp.down_proj.register_forward_pre_hook(lambda _m, a: seen.append(a[0]))
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(tokens)
    found = gf.attribute(trace, 5, by="neuron", model=model, position=4)
    end, norm = trace.residual().end[0, 4].double(), model.model.norm
    size = (end.square().mean() + norm.variance_epsilon).sqrt()
    row = model.model.layers[1].mlp.down_proj.weight[:, 13].double()
    written = row * seen[0][0, 4, 13].double() / size * norm.weight.double()
    (share,) = [s for s in found.shares if s.name == "decoder.1.mlp.13"]
    assert share.neuron == 13 and share.part == "decoder.1.mlp"
    by_hand = written @ model.lm_head.weight[5].double()
    assert_close(torch.tensor(share.value), by_hand.detach().float(), 1e-6)
    assert not any(m._forward_pre_hooks for m in model.model.layers[0].modules())


@pytest.mark.parametrize("place", ["pre", "post"])
@pytest.mark.parametrize("gated", [False, True])
def test_ours(place: str, gated: bool) -> None:
    torch.manual_seed(7)
    sizes = {"vocab_size": 13, "dim": 12, "n_layers": 2, "n_heads": 3, "max_len": 16}
    config = gf.Config(family="decoder", norms=Norms(place=place), gated=gated, **sizes)
    model = gf.build(config).eval()
    for part in model.parameters():
        part.data.normal_(mean=0.2, std=0.4)
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(torch.randint(13, (2, 5)))
    assert check_neurons(trace, model, 4, sequence=1) == 2 * config.hidden_dim


def test_generated_text_is_read_once_more() -> None:
    model = letter_model("decoder")
    with gf.watch(model, residual=True) as trace:
        gf.generate(model, "abc", temperature=0, max_new_tokens=5)
    check_neurons(trace, model, 7)


def test_a_translation_is_read_once_more() -> None:
    model = gf.load("translator")
    with gf.watch(model, residual=True) as trace:
        gf.translate(model, "The cat sat.", to="fr", beams=2)
    found = gf.attribute(trace, "</s>", by="neuron", model=model)
    assert abs(found.remainder) < 1e-3
    assert {s.part for s in found.shares if s.neuron == 0} >= {"decoder.0.mlp", "decoder.2.mlp"}


def test_another_run_is_refused() -> None:
    model = build("llama")
    given = inputs(model, "text")
    given["attention_mask"] = given["attention_mask"].flip(1)  # padding on the left
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(**given)
    check_neurons(trace, model, 7, sequence=1, inputs=given)
    with pytest.raises(TraceError, match=r"must write what was recorded; they miss it by .* %"):
        gf.attribute(trace, 7, by="neuron", model=model, sequence=1)
    with pytest.raises(TraceError, match=r"it read a tensor of shape \(1, 3, 20\)"):
        gf.attribute(trace, 7, by="neuron", model=model, inputs=torch.tensor([[3, 4, 5]]))


def test_the_model_is_needed() -> None:
    model = tiny("llama")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(torch.arange(3, 9)[None])
    with pytest.raises(TraceError, match="pass the model= that was recorded"):
        gf.attribute(trace, 5, by="neuron")
    with pytest.raises(TraceError, match=r"The matrix of decoder\.0\.mlp is none of this model's"):
        gf.attribute(trace, 5, by="neuron", model=tiny("llama"))
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(inputs_embeds=torch.randn(1, 6, 24))
    with pytest.raises(TraceError, match="This run read more than tokens"):
        gf.attribute(trace, 5, by="neuron", model=model)
