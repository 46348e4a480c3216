"""Jacobian lenses: the derivative of the last state, held against finite differences."""

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from closeness import assert_close
from glassformer.errors import TraceError
from glassformer.models.config import Norms
from tiny_models import tiny
from tracing.test_stream import build
from tracing.watched_architectures import inputs

TOKENS = torch.tensor([[3, 17, 5, 9, 22, 11, 4]])
SKIP, VALID = 2, [2, 3, 4, 5]  # neither the first two nor the last


def differences(run, block: nn.Module, last: nn.Module, C: int, step: float = 1e-5) -> Tensor:
    """The Jacobian by shifting the output of a block, feature by feature and place by place."""
    shift = torch.zeros(1, TOKENS.shape[1], C, dtype=torch.float64)
    ends: list[Tensor] = []

    def change(_module, _args, out):
        return out + shift if isinstance(out, Tensor) else (out[0] + shift, *out[1:])

    handles = [
        block.register_forward_hook(change),
        last.register_forward_hook(
            lambda _m, _a, out: ends.append(out if isinstance(out, Tensor) else out[0])
        ),
    ]
    J = torch.zeros(C, C, dtype=torch.float64)
    for p in VALID:
        for j in range(C):
            ends.clear()
            for size in (step, -step):
                shift.zero_()
                shift[0, p, j] = size
                with torch.no_grad():
                    run()
            J[:, j] += (ends[0] - ends[1])[0, VALID].sum(0) / (2 * step) / len(VALID)
    for handle in handles:
        handle.remove()
    return J


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma3", "bert"])
def test_as_finite_differences_say(name: str) -> None:
    model = (tiny(name) if name == "bert" else build(name)).double()
    blocks = {
        "gpt2": lambda: model.transformer.h,
        "bert": lambda: model.bert.encoder.layer,
    }.get(name, lambda: model.model.layers)()
    lens = gf.fit_jacobian_lens(model, [TOKENS], skip=SKIP, chunk=5)
    C = lens.fingerprint.dim
    # RMSNorm of transformers computes in float32, which small steps would not show.
    step, tolerance = (3e-3, 1e-3) if name in ("llama", "gemma3") else (1e-5, 1e-5)
    by_hand = differences(lambda: model(TOKENS), blocks[0], blocks[-1], C, step)
    found = lens.matrices[1].double()
    assert float((found - by_hand).norm() / by_hand.norm()) < tolerance
    assert float((found - torch.eye(C)).norm()) > 0.1 and not lens.biases.any()
    # The start, by shifting what the first block reads.
    shifted = lens.matrices[0].double()
    assert float((shifted - found).norm() / by_hand.norm()) > 0.01


@pytest.mark.parametrize("place", ["pre", "post"])
def test_ours(place: str) -> None:
    torch.manual_seed(3)
    sizes = {"vocab_size": 37, "dim": 12, "n_layers": 3, "n_heads": 3, "max_len": 16}
    model = gf.build(gf.Config(family="decoder", norms=Norms(place=place), **sizes)).eval().double()
    for part in model.parameters():
        part.data.normal_(std=0.4)
    lens = gf.fit_jacobian_lens(model, [TOKENS], skip=SKIP, layers=[0, 1])
    blocks = list(
        model.decoder.blocks if hasattr(model.decoder, "blocks") else model.decoder.layers
    )
    for i in (0, 1):
        by_hand = differences(lambda: model(TOKENS), blocks[i], blocks[-1], 12)
        assert float((lens.matrices[i].double() - by_hand).norm() / by_hand.norm()) < 1e-5


def test_texts_are_averaged_and_the_model_is_left_alone() -> None:
    model = tiny("llama").train()
    texts = [
        torch.randint(3, 37, (1, n), generator=torch.Generator().manual_seed(n)) for n in (8, 9)
    ]
    both = gf.fit_jacobian_lens(model, texts, skip=1)
    each = [gf.fit_jacobian_lens(model, [text], skip=1).matrices for text in texts]
    assert_close(both.matrices, (each[0] + each[1]) / 2, 1e-6)
    assert all(module.training for module in model.modules())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())


def test_random_directions_are_unbiased() -> None:
    model = tiny("llama")
    whole = gf.fit_jacobian_lens(model, [TOKENS], skip=SKIP).matrices
    one, many = (
        gf.fit_jacobian_lens(model, [TOKENS] * n, skip=SKIP, directions=12, layers=[0])
        for n in (1, 36)
    )
    apart = [float((each.matrices[0] - whole[1]).norm() / whole[1].norm()) for each in (one, many)]
    assert apart[1] < 0.3 < 0.6 < apart[0]  # 1/√n: 32 texts make the map, four measure it


def test_an_encoder_decoder_and_a_trace() -> None:
    model = build("bart")
    given = {n: x[:1] for n, x in inputs(model, "text").items()}
    lens = gf.fit_jacobian_lens(model, [given], skip=1)
    assert lens.stack == "decoder" and lens.kind == "jacobian"
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(**given)
    found = gf.logit_lens(trace, lens=lens)
    assert found.borders[:-1] == lens.borders


@pytest.mark.parametrize(
    ("texts", "options", "reason"),
    [
        ([TOKENS], {}, "a text of at least 18 tokens: the first 16 and the last are left out"),
        ([TOKENS.repeat(2, 1)], {"skip": 1}, "must be one text; got 2"),
        ([TOKENS], {"chunk": 0}, "got chunk=0, skip=16, directions=None"),
        ([TOKENS], {"layers": [5], "skip": 1}, "the ends of layers 0 … 0; got layer 5"),
    ],
)
def test_mistakes_are_one_sentence(texts, options: dict, reason: str) -> None:
    with pytest.raises(TraceError, match=reason):
        gf.fit_jacobian_lens(tiny("llama"), texts, **options)


def test_a_random_model_is_refused() -> None:
    class Random(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.rand_like(x)

    model = tiny("llama")
    model.model.layers[0].mlp = Random()
    with pytest.raises(TraceError, match=r"must agree; at decoder\.0\.mlp they differ by"):
        gf.fit_jacobian_lens(model, [TOKENS], skip=1)
