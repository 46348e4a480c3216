"""Quantized models: which matrices, how far the logits move, and what works as before."""

import pytest
import torch

import glassformer as gf
from closeness import assert_same
from glassformer.errors import ConfigError
from glassformer.functional.quantized import KINDS, QuantizedWeight, quantize_rows
from glassformer.generation import beam_search, generate_tokens
from glassformer.models import Config, DecoderWeights, Output, build, quantize
from glassformer.models.baselines import RecurrentConfig
from glassformer.models.quantization import list_matrices, weight_kind

SIZES = {"vocab_size": 23, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 44, "max_len": 19}


def model(family: str = "decoder", **changes):
    torch.manual_seed(0)
    return build(Config(family=family, **{**SIZES, **changes})).eval()


@pytest.mark.parametrize(
    ("family", "output", "matrix"),
    [
        ("decoder", Output(tied=True), "embedding.weight"),
        ("decoder", Output(tied=False), "head.weight"),
        ("encoder_decoder", Output(tied=True, bias=True), "embedding.weight"),
        ("encoder", Output(), "embedding.weight"),
        ("encoder", Output(masked_tokens=False), None),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_matrices_are_quantized_and_nothing_else(
    family: str, output: Output, matrix, kind: str
) -> None:
    whole = model(family, output=output)
    small = quantize(whole, kind)
    state, copied = whole.state_dict(), small.state_dict()
    is_linear = {
        f"{n}.weight" for n, part in whole.named_modules() if type(part).__name__ == "Linear"
    }
    assert set(list_matrices(whole)) == is_linear | ({matrix} if matrix else set())
    for name, tensor in state.items():
        if name in list_matrices(whole):
            numbers, scale = quantize_rows(tensor, kind)
            assert_same(copied[name].numbers.float(), numbers.float())
            assert_same(copied[name].scale, scale)
        else:
            assert type(copied[name]) is torch.Tensor
            assert_same(copied[name], tensor)
            assert copied[name].data_ptr() != tensor.data_ptr()
    assert (weight_kind(whole), weight_kind(small)) == ("float32", kind)
    assert not any(p.requires_grad for p in small.parameters() if isinstance(p, QuantizedWeight))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_logits_move_little_and_decoding_works(family: str, kind: str) -> None:
    whole = model(family)
    small = quantize(whole, kind)
    source = [[3, 5, 8, 2]] if family == "encoder_decoder" else None
    tokens = torch.tensor([[1, 4, 9, 16, 7]])
    given = (tokens,) if source is None else (torch.tensor(source), tokens)
    with torch.no_grad():
        expected, found = whole(*given), small(*given)
    allowed = {"int8": 0.05, "fp8": 0.12}[kind]
    assert float((found - expected).abs().max()) < allowed * float(expected.abs().max())
    written = generate_tokens(small, [[1, 2]], source=source, max_new_tokens=6)
    (best,) = beam_search(small, [[1, 2]], source=source, max_new_tokens=6, beams=1)
    assert list(best[0].tokens) == written[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_with_a_cache_is_the_whole_pass(kind: str) -> None:
    """Rows are rounded one by one: what is beside a token does not change its products."""
    small = quantize(model(), kind)
    tokens = torch.tensor([[1, 4, 9, 16, 7]])
    cache = small.new_cache(1)
    with torch.no_grad():
        whole = small(tokens)
        steps = [small(tokens[:, i : i + 1], cache=cache) for i in range(5)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, atol=2e-3, rtol=0)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_fp8_is_decoded_on_a_cpu_as_floats_that_are_made_once(family: str, tied: bool) -> None:
    small = quantize(model(family, output=Output(tied=tied)), "fp8")
    weights = DecoderWeights.of(small)
    assert DecoderWeights.of(small) is weights
    assert (weights.head.weight is weights.embedding) == tied
    encoder = () if weights.encoder is None else weights.encoder.linears
    for linear in (*weights.stack.linears, *encoder, weights.head):
        assert type(linear.weight) is torch.Tensor
    up = small.decoder.blocks[1].feed_forward.up.weight
    assert_same(weights.stack.layers[1].feed_forward.up.weight, up + 0)
    exact = model(family, output=Output(tied=tied))
    state = {name: tensor + 0 for name, tensor in small.state_dict().items()}
    exact.load_state_dict(state)
    source = [[3, 5, 8, 2]] if family == "encoder_decoder" else None
    texts = [
        generate_tokens(each, [[1, 2]], source=source, max_new_tokens=9) for each in (small, exact)
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_shipped_translator_translates_and_is_watched(kind: str) -> None:
    small = quantize(gf.load("translator"), kind)
    assert small.name == "translator"
    plain = gf.translate(small, "Where is the station?", to="fr")
    assert plain == "Où se trouve la gare ?"
    with gf.watch(small) as trace:
        assert gf.translate(small, "Where is the station?", to="fr") == plain
    assert trace["decoder.2.cross"].weights(head=1).shape[-1] > 1


@pytest.mark.parametrize("kind", KINDS)
def test_quantizing_again_changes_nothing(kind: str) -> None:
    small = quantize(model(), kind)
    again = quantize(small, kind)
    assert_same(again.embedding.weight + 0, small.embedding.weight + 0)
    assert again.embedding.weight.numbers is not small.embedding.weight.numbers


@pytest.mark.plain
def test_what_cannot_be_quantized() -> None:
    with pytest.raises(ConfigError, match="quantized to int8 or fp8; got 'int4'"):
        quantize(model(), "int4")
    with pytest.raises(ConfigError, match=r"these are int8 already.*made from to fp8"):
        quantize(quantize(model(), "int8"), "fp8")
    with pytest.raises(ConfigError, match="got Linear"):
        quantize(torch.nn.Linear(2, 3))
    lstm = build(RecurrentConfig(family="lstm", vocab_size=11, dim=8, n_layers=1))
    with pytest.raises(ConfigError, match="got RecurrentLanguage"):
        quantize(lstm)
