"""Heads that copy what they attend to, told by what they write."""

import pytest
import torch

import glassformer as gf
from glassformer.analysis.copied_tokens import find_copied
from glassformer.errors import TraceError
from letter_models import letter_model
from tiny_models import tiny
from tracing.test_stream import build


def test_copied_is_what_is_among_the_first_five() -> None:
    """Llama, by hand: W_O v through the gain of the final norm and the unembedding."""
    model, tokens = tiny("llama"), torch.arange(3, 15)
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(tokens[None])
    site, keys = trace["decoder.1.self"], torch.tensor([1, 4, 11])
    copied = find_copied(site, trace.residual(), tokens, keys)
    own = model.model.layers[1].self_attn.o_proj.weight.detach()
    D = own.shape[1] // 6
    for head in range(6):
        for i, key in enumerate(keys.tolist()):
            written = own[:, head * D : (head + 1) * D] @ site.v[0, head // 3, key]
            logits = model.lm_head.weight.detach() @ (model.model.norm.weight.detach() * written)
            assert bool(copied[head, i]) == (int(tokens[key]) in logits.topk(5).indices.tolist())
    assert copied.any() and not copied.all()


def copying_model(sign: float):
    """One head that attends evenly and writes what it reads, or its negative."""
    model = letter_model("decoder", n_layers=1, n_heads=1)
    attention = model.decoder.blocks[0].attention
    for layer in (attention.qkv, attention.out):
        layer.weight.data.zero_()
        layer.bias.data.zero_()
    attention.qkv.weight.data[32:] = torch.eye(16)
    attention.out.weight.data = sign * torch.eye(16)
    model.decoder.blocks[0].attention_norm.weight.data.fill_(1)
    model.decoder.final_norm.weight.data.fill_(1)
    model.head.weight.data = model.embedding.weight.data.clone()
    return model


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_head_that_copies_is_named_by_it(sign: float) -> None:
    model, tokens = copying_model(sign), torch.arange(4, 44) % 27 + 4
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(tokens[None])
    site = trace["decoder.0.self"]
    (plain,) = gf.roles(site, tokens)
    (role,) = gf.roles(site, tokens, stream=trace.residual())
    assert plain.role == "broad" and "copying" not in plain.scores
    assert {name: role.scores[name] for name in plain.scores} == plain.scores
    if sign > 0:
        assert role.role == "copying" and role.score == role.scores["copying"] > 0.9
    else:
        assert role.role == "broad" and role.scores["copying"] < 0.1


def test_what_writes_by_no_matrix_is_refused() -> None:
    model, tokens = build("bert"), torch.arange(3, 9)
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(tokens[None])
    with pytest.raises(TraceError, match="The stream of 'encoder' has no readout"):
        gf.roles(trace["encoder.0.self"], tokens, stream=trace.residual())
    model = tiny("llama")
    with torch.no_grad(), gf.watch(model, residual=True, heads=[1, 2]) as trace:
        model(tokens[None])
    with pytest.raises(TraceError, match=r"No single matrix writes the heads of decoder.0.self"):
        gf.roles(trace["decoder.0.self"], tokens, stream=trace.residual())
