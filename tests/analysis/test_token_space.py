"""Circuits in token space: scores of pairs of tokens, what a token writes, copying."""

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.analysis.token_model import TokenModel
from glassformer.analysis.token_vectors import TokenVectors
from glassformer.errors import TraceError
from letter_models import letter_model
from tiny_models import tiny
from tracing.test_stream import build

V = 37


@pytest.mark.parametrize("name", ["llama", "llama-biases", "llama-tied", "qwen2"])
def test_scores_of_tokens_are_those_of_the_first_layer(name: str) -> None:
    """Each token by itself, at the first position: what the model multiplies there."""
    model = tiny(name)
    with torch.no_grad(), gf.watch(model) as trace:
        model(torch.arange(V)[:, None])
    site, head = trace["decoder.0.self"], 4
    q, k = site.q[:, head, 0].double(), site.k[:, head // 3, 0].double()
    scores = (site.scale or q.shape[-1] ** -0.5) * q @ k.mT
    circuits = gf.circuits(model)
    for token in (5, 11):
        found = circuits.qk_tokens("decoder.0.self", head, query=token, top=V)
        assert_close(found.scores, scores[token, found.tokens].float(), 1e-4)
        assert found.rank == int((scores[token] > scores[token, token]).sum())
        found = circuits.qk_tokens("decoder.0.self", head, key=token, top=V)
        assert_close(found.scores, scores[found.tokens, token].float(), 1e-4)


def dense_ov(model, layer: int, head: int) -> torch.Tensor:
    """Llama: W_U W_OV W_E, every norm by its gain, logits relative to their mean."""
    block = model.model.layers[layer]
    own, D = block.self_attn, block.self_attn.head_dim
    o = own.o_proj.weight.detach().double()[:, head * D : (head + 1) * D]
    v = own.v_proj.weight.detach().double()[head // 3 * D : (head // 3 + 1) * D]
    ov = o @ (v * block.input_layernorm.weight.detach().double())
    u = model.lm_head.weight.detach().double() * model.model.norm.weight.detach().double()
    logits = u @ ov @ model.model.embed_tokens.weight.detach().double().mT  # V V: logit, token
    return logits - logits.mean(0)


@pytest.mark.parametrize("name", ["llama", "llama-tied"])
def test_what_a_token_writes_and_whether_it_is_copied(name: str) -> None:
    model = tiny(name)
    circuits = gf.circuits(model)
    embedding = model.model.embed_tokens.weight.detach().double()
    eps = model.config.rms_norm_eps
    scores = circuits.copying("decoder.1.self")
    for head in range(6):
        dense = dense_ov(model, 1, head)
        values = torch.linalg.eigvals(dense)
        assert_close(scores[head], (values.real.sum() / values.abs().sum()).float(), 1e-4)
        found = circuits.ov_tokens("decoder.1.self", head, 7, top=V)
        size = (embedding[7].square().mean() + eps).sqrt()
        assert_close(found.scores, (dense[found.tokens, 7] / size).float(), 1e-4)
        assert found.scores.tolist() == sorted(found.scores.tolist(), reverse=True)


def test_copying_behind_norms_that_centre_and_norms_of_the_stream() -> None:
    """BART: post-norm; every norm on the way of the token is a matrix here."""
    model = tiny("bart")
    circuits = gf.circuits(model)
    layers, head, D = model.model.decoder.layers, 1, 4

    def linear_part(norm) -> torch.Tensor:
        gain = norm.weight.detach().double()
        return torch.diag(gain) @ (torch.eye(12, dtype=torch.float64) - 1 / 12)

    with torch.no_grad():
        ids = torch.arange(V)[:, None]
        starts = []
        layers[0].register_forward_pre_hook(lambda _m, args: starts.append(args[0][:, 0]))
        model(input_ids=ids, decoder_input_ids=ids)
    x = starts[0].double().mT  # C V
    for part in ("self_attn", "encoder_attn", "final"):
        x = linear_part(getattr(layers[0], f"{part}_layer_norm")) @ x
    own = layers[1].self_attn
    v = own.v_proj.weight.detach().double()[head * D : (head + 1) * D]
    x = own.out_proj.weight.detach().double()[:, head * D : (head + 1) * D] @ v @ x
    for layer in (1, 2):
        for part in ("self_attn", "encoder_attn", "final"):
            x = linear_part(getattr(layers[layer], f"{part}_layer_norm")) @ x
    logits = model.lm_head.weight.detach().double() @ x
    values = torch.linalg.eigvals(logits - logits.mean(0))
    by_hand = (values.real.sum() / values.abs().sum()).float()
    assert_close(circuits.copying("decoder.1.self")[head], by_hand, 1e-4)


@pytest.mark.parametrize(
    ("name", "factor"), [("llama", 1.0), ("gpt2", 1.0), ("gemma", 24**0.5), ("opt", 1.0)]
)
def test_a_table_of_embeddings_is_found_without_positions(name: str, factor: float) -> None:
    model = build(name)
    vectors = TokenVectors.of(TokenModel(model, "circuits"), "decoder")
    table = model.get_input_embeddings().weight.detach()
    assert_close(vectors(torch.arange(V)), factor * table.double(), 1e-5)
    assert vectors.note == "tokens are their embeddings, without positions"


@pytest.mark.parametrize("name", ["bert", "bloom", "electra"])
def test_tokens_behind_a_norm_are_what_the_first_block_reads(name: str) -> None:
    model = build(name)
    stack = "decoder" if name == "bloom" else "encoder"
    vectors = TokenVectors.of(TokenModel(model, "circuits"), stack)
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(input_ids=torch.tensor([[7], [9]]))
    assert_close(vectors(torch.tensor([7, 9])), trace.residual().start[:, 0].double(), 1e-6)
    assert vectors.note == "tokens are what the first block reads at the first position"


def test_tokens_by_their_text() -> None:
    model = letter_model("decoder")
    circuits = gf.circuits(model)
    found = circuits.ov_tokens("decoder.1.self", 1, "c", top=3)
    assert found.token == "c" and len(found.labels) == 3
    assert str(found).startswith("decoder.1.self.1 attends to c, itself in place ")
    with pytest.raises(TraceError, match="A token must be one of the vocabulary; 'cat' is 3"):
        circuits.ov_tokens("decoder.1.self", 1, "cat")
    with pytest.raises(TraceError, match="Tokens are numbered 0 … 30; got 99"):
        circuits.qk_tokens("decoder.1.self", 1, query=99)
    with pytest.raises(TraceError, match="qk_tokens needs either a query or a key"):
        circuits.qk_tokens("decoder.1.self", 1)
    with pytest.raises(TraceError, match=r"top must be 1 … 100 tokens; got top=0"):
        circuits.qk_tokens("decoder.1.self", 1, key="c", top=0)


def test_what_gives_no_scores_does_not_copy() -> None:
    circuits = gf.circuits(build("bert"))
    with pytest.raises(TraceError, match="The stream of 'encoder' has no readout"):
        circuits.copying("encoder.0.self")
    assert circuits.qk_tokens("encoder.0.self", 1, query=5).n == V


def test_what_is_left_out_is_said() -> None:
    circuits = gf.circuits(build("gemma3"))
    embedded = "tokens are their embeddings, without positions"
    found = circuits.qk_tokens("decoder.1.self", 0, query=5)
    assert found.notes == (
        embedded,
        "the size that the queries are divided by is left out",
        "the size that the keys are divided by is left out",
        "positions (rotary) are left out of QK",
    )
    assert str(found).endswith("\n  (positions (rotary) are left out of QK)")
    found = circuits.ov_tokens("decoder.1.self", 0, 5)
    assert found.notes == (embedded, "the size that the norm after it divides by is left out")
