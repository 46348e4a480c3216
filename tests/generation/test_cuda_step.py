"""The kernels of a decoding step against the modules: on a GPU, or in Triton's interpreter."""

from itertools import product

import pytest
import torch

import glassformer as gf
from generation.step_models import CHANGES, SOURCES, make
from glassformer.functional.quantized import KINDS, dequantize_rows, find_numbers
from glassformer.generation import cuda_state, cuda_step
from glassformer.generation.cuda_prompts import read_prompts
from glassformer.generation.cuda_step import CudaStep, refusal
from glassformer.generation.prompts import pad_left
from glassformer.generation.sessions import DecodingSession
from glassformer.models import decoder_weights
from glassformer.models.decoder_weights import DecoderWeights
from triton_interpreter import DEVICE, INTERPRETED, check_in_interpreter, needs_kernels

# The interpreter multiplies matrices of bfloat16 wrongly (Triton 3.6 to 3.9).
DTYPES = (torch.float32,) if INTERPRETED else (torch.float32, torch.bfloat16, torch.float16)
# It takes seconds for each case: all models in one way, two of them in every way.
CASES = [
    (name, batch, parts, few)
    for name, (batch, parts), few in product(CHANGES, [(1, 4), (3, 1)], [True, False])
    if not INTERPRETED or (parts == 4 and few) or name in ("post-norm", "translator")
]


@pytest.mark.plain
def test_the_interpreter_agrees_with_the_modules() -> None:
    check_in_interpreter(__file__)


@needs_kernels
@pytest.mark.parametrize(("name", "batch", "parts", "few"), CASES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_and_choice(
    name: str,
    dtype: torch.dtype,
    batch: int,
    parts: int,
    few: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda_state, "FEW", 4 if few else 0)
    monkeypatch.setattr(cuda_step.shapes, "count_parts", lambda *_: parts)
    check_logits_and_choice(name, dtype, batch)


@needs_kernels
@pytest.mark.parametrize("name", ["learned", "translator"] if INTERPRETED else CHANGES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_many_rows(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention is computed as where programs fill the GPU."""
    monkeypatch.setattr(cuda_state, "FEW", 0)
    monkeypatch.setattr(cuda_step.shapes, "_PARTS", 0)
    check_logits_and_choice(name, dtype, 3)


def check_logits_and_choice(name: str, dtype: torch.dtype, batch: int) -> None:
    """Errors are at most twice those of the modules, and the largest logit is chosen."""
    model = make(name, dtype, DEVICE)
    exact = make(name, torch.float64, DEVICE)
    exact.load_state_dict({k: v.double() for k, v in model.state_dict().items()})
    sources = SOURCES[:batch] if model.config.family == "encoder_decoder" else None
    n = 3 if INTERPRETED else 130  # on a GPU: several blocks of keys in each part
    with torch.no_grad():
        plain, truth = (
            DecodingSession(m, [[3]] * batch, source=sources, max_new_tokens=n)
            for m in (model, exact)
        )
        step = CudaStep(DecoderWeights.of(model), batch=batch, capacity=n + 2)
        if sources is not None:
            lengths = torch.tensor([len(each) for each in sources])
            step.read_context(plain.context, lengths, 1)
        step.tokens.fill_(3)
        written = torch.zeros(n + 2, batch, dtype=torch.int32, device=DEVICE)
        ours, theirs, unit = torch.zeros(3, dtype=torch.float64, device=DEVICE)
        for i in range(n):
            expected = truth.next_logits()
            theirs = theirs.maximum((plain.next_logits().double() - expected).abs().max())
            logits = step()
            ours = ours.maximum((logits.double() - expected).abs().max())
            unit = unit.maximum(torch.finfo(dtype).eps * expected.abs().max())
            step.choose(written)
            assert written[i + 1].tolist() == logits.argmax(-1).tolist()
            tokens = expected.argmax(-1)
            step.tokens.copy_(tokens)
            for session in (plain, truth):
                session.append(tokens)
        assert ours <= 2 * theirs + 16 * unit
        assert step.lengths.tolist() == [n] * batch


@needs_kernels
# On a CPU, what is not a kernel of ours would round its inputs to int8, too.
@pytest.mark.parametrize("name", ["learned", "rotary"] if INTERPRETED else CHANGES)
@pytest.mark.parametrize("few", [True] if INTERPRETED else [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_quantized_weights(
    name: str, dtype: torch.dtype, kind: str, few: bool, monkeypatch
) -> None:
    """Against a model in float64 whose weights are what the bytes stand for."""
    monkeypatch.setattr(cuda_state, "FEW", 4 if few else 0)
    # On a CPU fp8 would be read as floats.
    monkeypatch.setattr(decoder_weights, "_read_matrix", torch.Tensor.detach)
    model = gf.quantize(make(name, dtype), kind).to(DEVICE)
    exact = make(name, torch.float64, DEVICE)
    state = {k: find_numbers(v) for k, v in model.state_dict(keep_vars=True).items()}
    exact.load_state_dict(
        {
            k: v.double() if scale is None else dequantize_rows(v, scale, torch.float64)
            for k, (v, scale) in state.items()
        }
    )
    sources = SOURCES[:2] if model.config.family == "encoder_decoder" else None
    n = 3 if INTERPRETED else 40
    with torch.no_grad():
        truth = DecodingSession(exact, [[3]] * 2, source=sources, max_new_tokens=n)
        assert refusal(model.config, dtype) is None
        step = CudaStep(DecoderWeights.of(model), batch=2, capacity=n + 2)
        if sources is not None:
            lengths = torch.tensor([len(each) for each in sources])
            step.read_context(truth.context.to(dtype), lengths, 1)
        assert find_numbers(step.head.weight)[0].dtype == KINDS[kind]
        step.tokens.fill_(3)
        for _ in range(n):
            expected = truth.next_logits()
            gap = (step().double() - expected).abs().max()
            assert gap <= 200 * torch.finfo(dtype).eps * expected.abs().max()
            tokens = expected.argmax(-1)
            step.tokens.copy_(tokens)
            step.lengths.add_(1)
            truth.append(tokens)


@needs_kernels
@pytest.mark.parametrize("prompts", [[[3, 1, 4, 1, 5]], [[3, 1, 4, 1, 5, 9], [2], [6, 5]]])
@pytest.mark.parametrize("name", [name for name in CHANGES if name != "translator"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_prompts(name: str, dtype: torch.dtype, prompts: list[list[int]]) -> None:
    """Without padding and with it, the second copy of a prompt has its keys and values, too."""
    model = make(name, dtype, DEVICE)
    exact = make(name, torch.float64, DEVICE)
    exact.load_state_dict({k: v.double() for k, v in model.state_dict().items()})
    tokens, missing = pad_left(prompts, torch.device(DEVICE))
    (B, L), with_padding = tokens.shape, bool(missing.any())
    step = CudaStep(DecoderWeights.of(model), batch=2 * B, capacity=16)
    step.memory.fill_(torch.nan)
    with torch.no_grad():
        hidden = read_prompts(step, tokens, missing if with_padding else None, copies=2)
        logits = model.head(hidden, model.embedding.weight)
        found, expected, theirs = [], [], []
        for m, kept in ((exact, expected), (model, theirs)):
            session = DecodingSession(m, prompts, source=None, max_new_tokens=1)
            kept += [session.next_logits(), *(each.k for each in session.cache.layers)]
            kept += [each.v for each in session.cache.layers]
    memory = step.memory[:, ::2, :L]
    assert torch.equal(memory.nan_to_num(), step.memory[:, 1::2, :L].nan_to_num())
    found = [
        logits[:, -1],
        *memory[:, :, :, 0].transpose(2, 3),
        *memory[:, :, :, 1].transpose(2, 3),
    ]
    real = (torch.arange(L, device=DEVICE) >= missing[:, None])[:, None, :, None]
    for i, (ours, other, truth) in enumerate(zip(found, theirs, expected, strict=True)):
        shown = slice(None) if i == 0 else real.expand_as(truth)
        gap = (ours.double() - truth)[shown].abs().max()
        unit = torch.finfo(dtype).eps * truth.abs().max()
        assert gap <= 2 * (other.double() - truth)[shown].abs().max() + 16 * unit


@needs_kernels
@pytest.mark.parametrize("few", [True, False])
def test_exclusions_ties_and_nan(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_state, "FEW", 4 if few else 0)
    model = make("learned", torch.float32, DEVICE)
    with torch.no_grad():
        model.head.weight[20:] = model.head.weight[5]  # ties: the first is chosen
        step = CudaStep(DecoderWeights.of(model), batch=2, capacity=4)
        logits = step()
        likeliest = logits.argmax(-1).tolist()
        assert not {*range(21, 37)} & {*likeliest}
        step.excluded[likeliest] = -torch.inf
        written = torch.zeros(4, 2, dtype=torch.int32, device=DEVICE)
        step()
        step.choose(written)
        logits[:, likeliest] = -torch.inf
        assert written[1].tolist() == logits.argmax(-1).tolist()
        hidden = torch.zeros(2, 37, dtype=torch.bool, device=DEVICE)
        hidden[1, written[1, 1]] = True  # in the second row alone
        step.exclude(likeliest, hidden)
        step.lengths.zero_()
        step.tokens.zero_()
        logits = step().clone()
        step.choose(written)
        logits[:, likeliest] = -torch.inf
        logits[hidden] = -torch.inf
        assert written[1].tolist() == logits.argmax(-1).tolist()
        model.head.weight[7, 3] = torch.nan
        step = CudaStep(DecoderWeights.of(model), batch=2, capacity=4)
        step()
        step.choose(written)
        assert written[1].tolist() == [-1, -1]
        assert step.tokens.tolist() == [0, 0]


def test_what_the_kernels_refuse() -> None:
    assert "float64" in str(refusal(make("learned", torch.float64).config, torch.float64))
    wide = make("learned", torch.float32)
    object.__setattr__(wide.config, "head_dim", 257)
    assert "at most 256" in str(refusal(wide.config, torch.float32))
