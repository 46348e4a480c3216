"""All families on a GPU: the numbers of the CPU, steps over caches, compiled decoding."""

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.generation import generate_tokens
from glassformer.models import Config, Norms, Output, Positions, build

pytestmark = [pytest.mark.gpu, pytest.mark.plain]
V, L, S = 61, 37, 23
KINDS = ("none", "sinusoidal", "learned", "rotary", "alibi", "relative")
kinds = pytest.mark.parametrize("kind", KINDS)
families = pytest.mark.parametrize("family", ["encoder", "decoder", "encoder_decoder"])


def model(family: str, kind: str, dtype: torch.dtype = torch.float32, **changes):
    torch.manual_seed(3)
    plain = {
        "family": family,
        "vocab_size": V,
        "dim": 64,
        "n_layers": 2,
        "n_heads": 4,
        "n_kv_heads": 2,
        "max_len": 160,
        "gated": True,
        "norms": Norms(kind="rms"),
        "positions": Positions(kind=kind),
        "output": Output(tied=False),
        **changes,
    }
    return build(Config(**plain)).to(dtype).eval()


def inputs(family: str, device: str = "cpu") -> tuple[tuple, dict]:
    generator = torch.Generator().manual_seed(4)
    tokens = torch.randint(0, V, (3, L), generator=generator).to(device)
    source = torch.randint(0, V, (3, S), generator=generator).to(device)
    if family == "encoder":
        return (tokens,), {"mask": gf.Padding(torch.tensor([L, 5, 20], device=device))}
    if family == "decoder":
        return (tokens,), {}
    return (source, tokens), {"source_mask": gf.Padding(torch.tensor([S, 7, 12], device=device))}


def outputs(built, family: str, device: str):
    args, options = inputs(family, device)
    with torch.no_grad():
        out = built.to(device)(*args, **options)
    if family == "encoder":  # padded places mean nothing
        real = torch.arange(L, device=device) < options["mask"].lengths[:, None]
        out = out[real]
    return out.cpu()


@families
@kinds
def test_logits_are_those_of_the_cpu(family: str, kind: str) -> None:
    built = model(family, kind)
    expected = outputs(built, family, "cpu")
    assert not torch.backends.cuda.matmul.allow_tf32
    assert_close(outputs(built, family, "cuda"), expected, 2e-4)


@families
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_near(family: str, dtype: torch.dtype) -> None:
    expected = outputs(model(family, "rotary"), family, "cpu")
    got = outputs(model(family, "rotary", dtype), family, "cuda").float()
    assert_close(got, expected, 0.1 * float(expected.abs().max()))


@kinds
@pytest.mark.parametrize("static", [False, True])
def test_steps_with_a_cache_are_the_whole(kind: str, static: bool) -> None:
    decoder = model("decoder", kind, torch.float64).cuda()
    (tokens,), _ = inputs("decoder", "cuda")
    cache = decoder.new_cache(3, max_len=64 if static else None)
    with torch.no_grad():
        whole = decoder(tokens)
        pieces = [decoder(tokens[:, a:b], cache=cache) for a, b in ((0, 30), (30, 31), (31, L))]
    assert_close(torch.cat(pieces, 1), whole, 1e-9)


@pytest.mark.filterwarnings("ignore:(?s).*Online softmax is disabled")  # Inductor thinks aloud
@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_the_same_text_on_both_devices_and_compiled(family: str) -> None:
    from torch._dynamo.utils import counters

    written = model(family, "rotary", torch.float64)
    for part in written.parameters():
        if part.ndim > 1:
            torch.nn.init.normal_(part, std=0.3)
    prompts = [[3, 1, 4], [1, 5, 9, 2, 6], [5]]
    source = [[2, 7], [1, 8, 2], [8]] if family == "encoder_decoder" else None
    expected = generate_tokens(written, prompts, max_new_tokens=100, source=source)
    assert len(set(expected[0])) > 5
    written.cuda()
    assert generate_tokens(written, prompts, max_new_tokens=100, source=source) == expected
    torch._dynamo.reset()
    counters.clear()
    compiled = generate_tokens(written, prompts, max_new_tokens=100, source=source, compiled=True)
    assert compiled == expected
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]


def test_ids_outside_the_vocabulary_are_refused_before_the_gpu_sees_them() -> None:
    decoder = model("decoder", "rotary").cuda()
    with pytest.raises(gf.GlassformerError, match=r"token ids must lie in 0 … 60; got 0 to 61"):
        decoder(torch.tensor([[0, 61]], device="cuda"))
    assert torch.zeros(1, device="cuda").item() == 0.0  # the device is well
