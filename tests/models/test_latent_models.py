"""Whole models with latent attention: caches, generation, watching, int8, counting."""

from pathlib import Path

import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.analysis.block_rows import read_block_row
from glassformer.errors import ConfigError, TraceError
from glassformer.generation import beam_search, generate_tokens
from glassformer.generation.direct import DirectSession
from glassformer.models import Config, Latent, Norms, Output, Positions, build
from glassformer.models.decoder_weights import refusal
from glassformer.models.description import describe
from glassformer.models.shape_costs import measure_costs
from glassformer.models.shapes import shapes

V, H, D, E, R, P = 13, 3, 10, 7, 8, 4
LATENT = Latent(kv_dim=R, rotary_dim=P, value_dim=E, q_dim=9)


def config(family: str = "decoder", **changes) -> Config:
    plain = {"vocab_size": V, "dim": 12, "n_layers": 2, "n_heads": H, "head_dim": D, "max_len": 24}
    plain |= {"positions": Positions(kind="rotary", layout="interleaved"), "latent": LATENT}
    return Config(family=family, **(plain | changes))


def model(family: str = "decoder", **changes) -> torch.nn.Module:
    torch.manual_seed(0)
    built = build(config(family, **changes)).double().eval()
    for parameter in built.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.5)
    return built


def tokens(B: int = 2, n: int = 7) -> torch.Tensor:
    return torch.randint(0, V, (B, n))


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("window", [None, 3])
def test_steps_with_a_cache_are_the_whole(static: bool, window: int | None) -> None:
    decoder, x = model(window=window), tokens()
    cache = decoder.new_cache(2, max_len=11 if static else None)
    with torch.no_grad():
        pieces = [decoder(x[:, a:b], cache=cache) for a, b in ((0, 3), (3, 4), (4, 7))]
        assert_close(torch.cat(pieces, 1), decoder(x), 1e-10)
    assert cache.layers[1].k.shape == (2, 1, 11 if static else 7, R)
    assert cache.layers[1].v.shape == (2, 1, 11 if static else 7, P)


@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_decoding_goes_by_the_modules_and_writes_the_same(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = model(family, output=Output(tied=False)).float()
    assert refusal(built) == "its attention caches latents"
    monkeypatch.setattr(DirectSession, "__init__", None)  # must not be made
    prompts, source = [[1, 2, 3], [4, 5]], [[6, 7, 8], [9]] if family != "decoder" else None
    written = generate_tokens(built, prompts, max_new_tokens=6, source=source)
    assert written == generate_tokens(built, prompts, max_new_tokens=6, source=source, fixed=True)
    assert len({*written[0], *written[1]}) > 2  # not one token for ever
    for i, prompt in enumerate(prompts):
        row = torch.tensor([prompt])
        for _ in range(6):
            given = (row,) if source is None else (torch.tensor([source[i]]), row)
            row = torch.cat([row, built(*given)[:, -1:].argmax(-1)], 1)
        assert written[i] == row[0, len(prompt) :].tolist()
    if source is None:
        found = beam_search(built, prompts, beams=1, max_new_tokens=6)
        assert [list(each[0].tokens) for each in found] == written


def test_watching_gives_the_weights_of_every_head() -> None:
    built, x = model(), tokens(1)
    with torch.no_grad(), gf.watch(built, residual=True) as trace:
        before = built(x)
    site = trace["decoder.1.self"]
    assert site.q.shape == (1, H, 7, D) and site.v.shape == (1, H, 7, E)
    scores = site.q @ site.k.mT * D**-0.5
    scores = scores.masked_fill(~torch.ones(7, 7, dtype=torch.bool).tril(), -torch.inf)
    for head in range(H):
        assert_close(site.weights(head=head), scores.softmax(-1)[0, head], 1e-12)
    assert_same(built(x), before)
    with pytest.raises(TraceError, match=r"decoder.1.self .* attention is latent"):
        read_block_row(built, trace, "decoder.1.self", head=0, query=3)


def test_generation_is_watched_step_by_step() -> None:
    built = model().float()
    with gf.watch(built) as trace:
        written = generate_tokens(built, [[1, 2, 3]], max_new_tokens=4)
    whole = torch.tensor([[1, 2, 3, *written[0][:-1]]])
    with gf.watch(built) as again:
        built(whole)
    for head in range(H):
        found, expected = (t["decoder.1.self"].weights(head=head) for t in (trace, again))
        assert_close(found, expected, 1e-5)


def test_interventions_rerun_without_the_cache_of_keys() -> None:
    built, x = model(), tokens(1, 20)
    with torch.no_grad(), gf.watch(built, residual=True) as trace:
        logits = built(x)
    with torch.no_grad(), gf.change(built, gf.Ablate("decoder.1.self", head=0)):
        expected = built(x)
    assert (expected - logits).abs().max() > 1e-6
    found = gf.rerun(trace, gf.Ablate("decoder.1.self", head=0))
    assert_close(found.logits().double(), expected, 1e-9)


def test_int8_and_own_folders(tmp_path: Path) -> None:
    built, x = model().float(), tokens()
    gf.save(built, tmp_path / "saved")
    assert_same(gf.load(tmp_path / "saved")(x), built(x))
    small = gf.quantize(built)
    gf.save(small, tmp_path / "small")
    with torch.no_grad():
        assert_same(gf.load(tmp_path / "small")(x), small(x))
    assert len(generate_tokens(small, [[1, 2]], max_new_tokens=3)[0]) == 3


def test_shapes_parameters_and_cache_bytes() -> None:
    settings = config(biases="none")
    trace, described = shapes(settings, batch=1, length=1), describe(settings)
    costs = measure_costs(trace)
    assert described.parameters == sum(cost.parameters for cost in costs)
    assert described.cache_bytes_per_token == 2 * 2 * (R + P)  # layers, bfloat16
    assert described.attention_flops_per_key == 2 * 2 * H * (D + E)
    flops = sum(cost.flops for cost in costs)
    assert flops == described.flops_per_token + described.attention_flops_per_key
    cache = build(settings).new_cache()
    build(settings)(torch.tensor([[1, 2, 3]]), cache=cache)
    kept = sum(t.numel() for layer in cache.layers for t in (layer.k, layer.v))
    assert 2 * kept == 3 * described.cache_bytes_per_token
    down = next(s for s in trace.steps if s.module.endswith("kv_down"))
    assert down.outputs[0].letters == ("B", "L", "R+P")
    names = [shape.name for step in trace.steps for shape in step.outputs]
    assert {"q", "k", "v"} <= set(names)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"positions": Positions(kind="alibi")}, r"needs rotary positions; got kind='alibi'"),
        ({"n_kv_heads": 1}, r"keys of its own .* n_kv_heads=1"),
        ({"norms": Norms(heads=True)}, r"without norms; .*norms.heads=True"),
        ({"head_dim": P}, r"got rotary_dim=4, head_dim=4"),
    ],
)
def test_configs_that_cannot_be(changes: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        config(**changes)
