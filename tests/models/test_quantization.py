"""Quantized models: which matrices, how far the logits move, and what works as before."""

import pytest
import torch

import glassformer as gf
from closeness import assert_same
from glassformer.errors import ConfigError
from glassformer.functional.int8 import Int8Weight, quantize_rows
from glassformer.generation import beam_search, generate_tokens
from glassformer.models import Config, Output, build, quantize
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
def test_the_matrices_are_int8_and_nothing_else(family: str, output: Output, matrix) -> None:
    whole = model(family, output=output)
    small = quantize(whole, "int8")
    state, copied = whole.state_dict(), small.state_dict()
    is_linear = {
        f"{n}.weight" for n, part in whole.named_modules() if type(part).__name__ == "Linear"
    }
    assert set(list_matrices(whole)) == is_linear | ({matrix} if matrix else set())
    for name, tensor in state.items():
        if name in list_matrices(whole):
            integers, scale = quantize_rows(tensor)
            assert_same(copied[name].integers, integers)
            assert_same(copied[name].scale, scale)
        else:
            assert type(copied[name]) is torch.Tensor
            assert_same(copied[name], tensor)
            assert copied[name].data_ptr() != tensor.data_ptr()
    assert (weight_kind(whole), weight_kind(small)) == ("float32", "int8")
    assert not any(p.requires_grad for p in small.parameters() if isinstance(p, Int8Weight))


@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_logits_move_little_and_decoding_works(family: str) -> None:
    whole = model(family)
    small = quantize(whole)
    source = [[3, 5, 8, 2]] if family == "encoder_decoder" else None
    tokens = torch.tensor([[1, 4, 9, 16, 7]])
    given = (tokens,) if source is None else (torch.tensor(source), tokens)
    with torch.no_grad():
        expected, found = whole(*given), small(*given)
    assert float((found - expected).abs().max()) < 0.05 * float(expected.abs().max())
    written = generate_tokens(small, [[1, 2]], source=source, max_new_tokens=6)
    (best,) = beam_search(small, [[1, 2]], source=source, max_new_tokens=6, beams=1)
    assert list(best[0].tokens) == written[0]


def test_a_step_with_a_cache_is_the_whole_pass() -> None:
    """Rows are rounded one by one: what is beside a token does not change its products."""
    small = quantize(model())
    tokens = torch.tensor([[1, 4, 9, 16, 7]])
    cache = small.new_cache(1)
    with torch.no_grad():
        whole = small(tokens)
        steps = [small(tokens[:, i : i + 1], cache=cache) for i in range(5)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, atol=2e-3, rtol=0)


def test_the_shipped_translator_translates_and_is_watched() -> None:
    small = quantize(gf.load("translator"))
    assert small.name == "translator"
    plain = gf.translate(small, "Where is the station?", to="fr")
    assert plain == "Où se trouve la gare ?"
    with gf.watch(small) as trace:
        assert gf.translate(small, "Where is the station?", to="fr") == plain
    assert trace["decoder.2.cross"].weights(head=1).shape[-1] > 1


def test_quantizing_again_changes_nothing() -> None:
    small = quantize(model())
    again = quantize(small)
    assert_same(again.embedding.weight.integers, small.embedding.weight.integers)
    assert again.embedding.weight.integers is not small.embedding.weight.integers


@pytest.mark.plain
def test_what_cannot_be_quantized() -> None:
    with pytest.raises(ConfigError, match="quantized to int8; got 'int4'"):
        quantize(model(), "int4")
    with pytest.raises(ConfigError, match="got Linear"):
        quantize(torch.nn.Linear(2, 3))
    lstm = build(RecurrentConfig(family="lstm", vocab_size=11, dim=8, n_layers=1))
    with pytest.raises(ConfigError, match="got RecurrentLanguage"):
        quantize(lstm)
