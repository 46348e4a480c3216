"""What is drawn states how far it lies from what the model computed."""

import math

import pytest
import torch

import glassformer as gf
from glassformer.languages import Language
from glassformer.render.difference import (
    MOST_QUERIES,
    describe_difference,
    output_difference,
    sample_for_comparison,
)
from glassformer.tracing import Site, record

ENGLISH, CHINESE = Language("en"), Language("zh")


def made(n: int, **options) -> Site:
    q, k, v = torch.randn(2, 4, n, 6), torch.randn(2, 2, n + 3, 6), torch.randn(2, 2, n + 3, 5)
    return record(q, k, v, out=gf.attention(q, k, v, **options), **options)


def test_all_of_a_short_text_is_compared() -> None:
    site = made(9, mask=gf.Causal())
    assert sample_for_comparison(site) is site
    assert output_difference(site) == site.difference_from_output() < 1e-5
    site.out[1, 3, 8, 4] += 0.5
    assert output_difference(site) == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mask": gf.Causal() & gf.Padding([150, 90])},
        {"bias": gf.ALiBi.of_heads(4), "mask": gf.Window(7)},
        {"bias": gf.ExplicitBias(torch.randn(300, 303)), "softcap": 2.0, "scale": 0.3},
    ],
)
def test_of_a_long_text_some_queries_are_compared_exactly(options) -> None:
    site = made(300, **options)
    part = sample_for_comparison(site)
    assert part.shape == (2, 4, MOST_QUERIES, 303)
    assert output_difference(site) <= site.difference_from_output() < 1e-5
    site.out[:, :, 299] += 0.25  # the last query is one of them
    assert output_difference(site) == pytest.approx(0.25, abs=1e-5)


def test_it_is_said_in_both_languages() -> None:
    site, long = made(4), made(200)
    assert f"{output_difference(site):.1e}" in describe_difference([site], ENGLISH)
    assert f"{output_difference(site):.1e}" in describe_difference([site], CHINESE)
    assert "at 128 evenly spaced queries" in describe_difference([site, long], ENGLISH)
    site.out = None
    assert output_difference(site) is None
    assert "not recorded" in describe_difference([site, long], ENGLISH)
    assert "没有记录" in describe_difference([site], CHINESE)


def test_what_is_no_number_stays_visible() -> None:
    site = made(4)
    site.q[0, 0, 0, 0] = math.inf
    assert "nan" in describe_difference([made(4), site], ENGLISH)
