"""Attribution: shares that add up to the model's own score, whatever they are split by."""

from dataclasses import replace

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.errors import TraceError
from glassformer.models.config import Norms, Output
from letter_models import letter_model
from tiny_models import ENCODER, tiny
from tracing.test_readout import WRITERS
from tracing.test_stream import build
from tracing.watched_architectures import inputs

# Between the heads and their matrix lies a gate, or a norm.
GATED = {"qwen3-next", "bitnet"}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # theirs
def test_shares_add_up_to_the_score(name: str) -> None:
    model = build(name)
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        logits = model(**inputs(model, "text")).logits
    readout = trace.residual().readout
    if name in GATED:
        with pytest.raises(TraceError, match="between the heads and the stream lies more than"):
            gf.attribute(trace, 7, by="head", position=2)
    for by in ("part",) if name in GATED else ("part", "head", "source"):
        found = gf.attribute(trace, 7, against=9, by=by, position=2, sequence=0)
        assert abs(found.remainder) < 1e-4, by
        if not readout.is_capped:
            assert abs(found.logit - float(logits[0, 2, 7] - logits[0, 2, 9])) < 1e-4
        parts: dict[str, float] = {}
        for share in found.shares:
            parts[share.part.removesuffix(".bias")] = (
                parts.get(share.part.removesuffix(".bias"), 0.0) + share.value
            )
        if by == "part":
            whole = parts
        assert parts.keys() == whole.keys()
        assert max(abs(parts[n] - whole[n]) for n in parts) < 1e-4
    assert "the size that the final norm divides by" in found.frozen or readout.norm is None


def test_a_head_is_what_its_matrix_writes() -> None:
    """By hand: weights times values, times the slice of W_O, through the final norm."""
    model, tokens = tiny("llama"), torch.arange(3, 9)[None]
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(tokens)
    found = gf.attribute(trace, 5, by="head", position=4)
    layer, head = 1, 3
    site = trace["decoder.1.self"]
    values = site.v[0].double().repeat_interleave(site.n_heads // site.v.shape[1], 0)
    mixed = site.weights(head=head)[4].double() @ values[head]
    width = mixed.shape[-1]
    matrix = model.model.layers[layer].self_attn.o_proj.weight.detach().double()
    written = matrix[:, head * width : (head + 1) * width] @ mixed
    end = trace.residual().end[0, 4].double()
    norm = model.model.norm
    size = (end.square().mean() + norm.variance_epsilon).sqrt()
    seen = written / size * norm.weight.detach().double()
    by_hand = seen @ model.lm_head.weight[5].detach().double()
    (share,) = [s for s in found.shares if s.name == "decoder.1.self.3"]
    assert_close(torch.tensor(share.value), by_hand.float(), 1e-6)


def test_ours_by_text_in_words() -> None:
    model = gf.load("translator")
    with gf.watch(model, residual=True) as trace:
        gf.translate(model, "The cat sat.", to="fr", beams=1)
    found = gf.attribute(trace, "</s>", by="source")
    assert abs(found.remainder) < 1e-3
    assert any("cross" in share.name and "← ␣cat" in share.name for share in found.shares)
    text = str(found)
    assert text.startswith("</s> at .: +") and "remainder" in text


@pytest.mark.parametrize(
    ("token", "options", "reason"),
    [
        (99, {}, "Tokens are numbered 0 … 36; got 99"),
        ("cat", {}, "Naming a token by its text needs a tokenizer; got 'cat'"),
        (3, {"position": 6}, "There are 6 positions; got position=6"),
    ],
)
def test_what_is_asked_for_is_checked(token, options: dict, reason: str) -> None:
    model = tiny("llama")
    with gf.watch(model, residual=True) as trace:
        model(torch.arange(3, 9)[None])
    with pytest.raises(TraceError, match=reason):
        gf.attribute(trace, token, **options)


@pytest.mark.parametrize("place", ["pre", "post"])
@pytest.mark.parametrize("kind", ["rms", "layer"])
@pytest.mark.parametrize("by", ["part", "head", "source"])
def test_ours_with_every_norm(place: str, kind: str, by: str) -> None:
    torch.manual_seed(7)
    norms = Norms(place=place, kind=kind)
    sizes = {"vocab_size": 13, "dim": 12, "n_layers": 2, "n_heads": 3, "max_len": 16}
    model = gf.build(gf.Config(family="decoder", norms=norms, **sizes)).eval()
    for part in model.parameters():
        part.data.normal_(mean=0.2, std=0.4)
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        logits = model(torch.randint(13, (2, 5)))
    found = gf.attribute(trace, 4, by=by, sequence=1)
    assert abs(found.logit - float(logits[1, -1, 4])) < 1e-5
    assert abs(found.remainder) < 1e-5


def test_shares_that_miss_the_score_are_refused() -> None:
    model = tiny("llama")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(torch.arange(3, 9)[None])
    readout = trace.residual().readout
    readout.norm = replace(readout.norm, is_centred=True)
    with pytest.raises(TraceError, match="which is more than rounding"):
        gf.attribute(trace, 5)


@pytest.mark.plain
def test_another_split_is_refused() -> None:
    model = tiny("llama")
    with gf.watch(model, residual=True) as trace:
        model(torch.arange(3, 9)[None])
    with pytest.raises(TraceError, match="'head', 'source' or 'neuron'; got 'layer'"):
        gf.attribute(trace, 3, by="layer")


def test_a_text_of_several_tokens_is_no_token() -> None:
    model = gf.load("translator")
    with gf.watch(model, residual=True) as trace:
        gf.translate(model, "The cat sat.", to="fr")
    with pytest.raises(TraceError, match="A token must be one of the vocabulary; 'xyzzyx' is"):
        gf.attribute(trace, "xyzzyx")


def test_some_heads_are_not_enough() -> None:
    model = tiny("llama")
    with gf.watch(model, residual=True, heads=[0]) as trace:
        model(torch.arange(3, 9)[None])
    assert abs(gf.attribute(trace, 3).remainder) < 1e-5
    with pytest.raises(TraceError, match="only some heads were recorded"):
        gf.attribute(trace, 3, by="head")


@pytest.mark.parametrize("name", ["bert", "roberta", "ours"])
@pytest.mark.parametrize("by", ["part", "head", "source", "neuron"])
def test_masked_language_models(name: str, by: str) -> None:
    """Through the dense layer, with the slopes of its nonlinearity frozen."""
    model = letter_model("encoder", output=Output(tied=True)) if name == "ours" else tiny(name)
    tokens = torch.arange(3, 9)[None]
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        out = model(tokens)
        logits = model.fill(out) if name == "ours" else out.logits
    found = gf.attribute(trace, 5, against=7, by=by, position=3, model=model)
    assert abs(found.logit - float(logits[0, 3, 5] - logits[0, 3, 7])) < 1e-5
    assert abs(found.remainder) < 1e-4
    assert "the slopes of the nonlinearity before the unembedding" in found.frozen
    assert "the size that the final norm divides by" in found.frozen


def test_by_hand_through_a_dense_layer() -> None:
    model = tiny("bert")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(torch.arange(3, 9)[None])
    found = gf.attribute(trace, 5, position=3)
    stream, head = trace.residual(), model.cls.predictions
    end = stream.end[0, 3].double()
    dense, norm = head.transform.dense, head.transform.LayerNorm
    y = end @ dense.weight.double().mT + dense.bias.double()
    a = torch.nn.functional.gelu(y)
    along = head.decoder.weight[5].double() * norm.weight.double()
    size = ((a - a.mean()).square().mean() + norm.eps).sqrt()
    slopes = (along - along.mean()) / size * (a / y)
    direction = slopes @ dense.weight.double()
    by_hand = {
        name: float(value @ along)
        for name, (value, along) in stream.directions(direction.detach(), row=3).items()
    }
    shares = {share.name: share.value for share in found.shares}
    assert max(abs(shares[name] - value) for name, value in by_hand.items()) < 1e-6


def test_other_nonlinearities_are_refused() -> None:
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    model = BertForMaskedLM(BertConfig(**{**ENCODER, "hidden_act": "gelu_new"})).eval()
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(torch.arange(3, 9)[None])
    with pytest.raises(TraceError, match="once norms and nonlinearities are frozen; those of this"):
        gf.attribute(trace, 5)
