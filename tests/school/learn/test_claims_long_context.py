"""What the chapters on long context and on smaller caches say and nothing else carries."""

import math
import tomllib
from pathlib import Path

import pytest
import torch

from glassformer.functional import LinearScaling, NTKScaling, Rotary, YaRNScaling
from glassformer.languages import Language
from glassformer.models import PRESETS
from glassformer.models.description import describe
from glassformer.school.learn.pictures import draw

RECIPES = Path(__file__).parents[3] / "recipes"
SLOW = 2 * math.pi / 512  # radians per position: a turn takes the whole trained text


def test_the_writer_was_trained_on_texts_of_512_tokens():
    recipe = tomllib.loads((RECIPES / "writer.toml").read_text("utf-8"))
    assert recipe["batches"]["length"] == recipe["model"]["max_len"] == 512
    assert recipe["model"]["dim"] // recipe["model"]["n_heads"] == 64


@pytest.mark.parametrize("scaling", [LinearScaling(4), YaRNScaling(4, original_len=512)])
def test_slow_pairs_stay_within_the_trained_angles(scaling):
    plain, scaled = Rotary(64).frequencies(), Rotary(64, scaling=scaling).frequencies()
    slow = plain <= SLOW
    assert slow.sum() == 16
    assert torch.all(2048 * scaled[slow] <= 512 * plain[slow] + 1e-9)
    beyond = 2048 * plain[slow] - 512 * plain[slow]  # unscaled: all of them, by three times as much
    assert torch.all(beyond > 0)


def test_who_is_slowed_down():
    plain = Rotary(64).frequencies()
    ntk, yarn = (
        Rotary(64, scaling=scaling).frequencies() / plain
        for scaling in (NTKScaling(4), YaRNScaling(4, original_len=512))
    )
    assert ntk[0] == 1 and float(ntk[-1]) == pytest.approx(0.25)
    expected = 4.0 ** -(torch.arange(32, dtype=torch.float64) / 31)
    assert torch.allclose(ntk, expected)
    slow = plain <= SLOW
    assert (4 * ntk[slow] > 1.01).tolist() == [True] * 15 + [False]  # beyond training: all but one
    assert yarn[0] == 1 and torch.allclose(yarn[plain < SLOW / 2], torch.tensor(0.25).double())


def test_the_picture_of_rotations_shows_reach_and_resolution():
    shown = dict(draw("rope-reach", Language("en")).pictures)
    trained, unscaled, linear, _ntk, yarn = shown.values()
    reach = {
        name: [bar[1] for bar in picture.pictures[0].bars]
        for name, picture in zip(
            ("trained", "unscaled", "linear", "yarn"),
            (trained, unscaled, linear, yarn),
            strict=True,
        )
    }
    assert max(b - a for a, b in zip(reach["trained"], reach["unscaled"], strict=True)) > 0.5
    assert reach["linear"] == pytest.approx(reach["trained"])
    steps = [picture.pictures[1].bars[0][1] for picture in (unscaled, linear, yarn)]
    assert steps == pytest.approx([math.degrees(1), math.degrees(0.25), math.degrees(1)])


def test_the_picture_of_caches_marks_each_model_as_it_was_published():
    for name, bars in draw("cache-sizes", Language("en")).pictures:
        marked = [length for _, length, written in bars.bars if written.endswith("←")]
        assert marked == [describe(name).cache_bytes_per_token]


def test_latents_of_deepseek():
    config = PRESETS["deepseek-v2-lite"]
    latent = config.latent
    assert (latent.kv_dim, latent.rotary_dim) == (4 * latent.value_dim, latent.value_dim // 2)
    assert (latent.kv_dim, latent.rotary_dim) == (512, 64)
    assert 4.5 * latent.value_dim == 2.25 * 2 * latent.value_dim
    assert config.n_heads * config.head_dim > config.dim
    assert config.n_heads * config.value_dim == config.dim
    for name in ("gpt-3-175b", "llama-3.1-8b", "llama-3.1-405b"):
        other = PRESETS[name]
        assert other.n_heads * other.head_dim == other.dim


@pytest.mark.parametrize("shift", [0, 1, 100])
def test_absorbing_a_rotated_key_would_need_a_matrix_for_each_distance(shift):
    torch.manual_seed(0)
    w_uk = torch.randn(8, 5, dtype=torch.float64)
    angles = [Rotary(8).tables(torch.tensor([n]), dtype=torch.float64) for n in (0, shift)]
    absorbed = [_rotation(*each).T @ w_uk for each in angles]
    assert torch.allclose(*absorbed) is (shift == 0)


def _rotation(cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    c, s = cos[0].diag(), sin[0].diag()
    return torch.cat([torch.cat([c, -s], 1), torch.cat([s, c], 1)])
