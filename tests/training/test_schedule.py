import math

import pytest

from glassformer.errors import ConfigError
from glassformer.training import Schedule


def test_inverse_sqrt_is_fairseqs():
    schedule = Schedule(kind="inverse-sqrt", lr=0.005, warmup=2000, start=1e-7)
    for n in (0, 1, 700, 1999):
        assert schedule.rate(n) == pytest.approx(1e-7 + n * (0.005 - 1e-7) / 2000)
    for n in (2000, 2001, 8000):
        assert schedule.rate(n) == pytest.approx(0.005 * math.sqrt(2000) / math.sqrt(n))


def test_noam_is_the_papers():
    schedule = Schedule(kind="noam", lr=2.0, warmup=4000, dim=512)
    for n in (1, 100, 4000, 4001, 100_000):
        expected = 2.0 * 512**-0.5 * min(n**-0.5, n * 4000**-1.5)
        assert schedule.rate(n - 1) == pytest.approx(expected)
    highest = max(range(8000), key=schedule.rate)
    assert highest == 3999


def test_cosine_is_nanogpts():
    schedule = Schedule(kind="cosine", lr=1e-3, least=1e-4, warmup=100, steps=5000)
    for it in (0, 50, 99):
        assert schedule.rate(it) == pytest.approx(1e-3 * (it + 1) / 101)
    for it in (100, 2500, 4999):
        ratio = (it - 100) / (5000 - 100)
        expected = 1e-4 + 0.5 * (1 + math.cos(math.pi * ratio)) * 9e-4
        assert schedule.rate(it) == pytest.approx(expected)
    assert schedule.rate(5000) == schedule.rate(9000) == pytest.approx(1e-4)


def test_stable_is_level_then_falls():
    schedule = Schedule(kind="stable", lr=1.0, warmup=9, steps=100, decay=20, least=0.1)
    assert schedule.rate(4) == pytest.approx(0.5)
    assert schedule.rate(9) == schedule.rate(80) == 1.0
    assert schedule.rate(90) == pytest.approx(0.55)
    assert schedule.rate(100) == schedule.rate(200) == pytest.approx(0.1)
    assert Schedule(kind="stable", lr=1.0, warmup=0, steps=100).rate(95) == pytest.approx(0.5)


def test_constant_after_its_way_up():
    schedule = Schedule(kind="constant", lr=0.3, warmup=2)
    assert [round(schedule.rate(n), 4) for n in range(4)] == [0.1, 0.2, 0.3, 0.3]


@pytest.mark.plain
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kind": "line"}, "must be one of inverse-sqrt, noam, .*; got 'line'"),
        ({"kind": "constant", "lr": 0.0}, "greater than 0; got 0.0"),
        ({"kind": "constant", "warmup": -1}, "at least 0; got -1"),
        ({"kind": "noam", "warmup": 0}, "'noam' schedule needs warm-up steps; got warmup=0"),
        ({"kind": "cosine", "lr": 0.1, "least": 0.2}, "0 … lr; got least=0.2, lr=0.1"),
    ],
)
def test_refusals(settings, sentence):
    with pytest.raises(ConfigError, match=sentence):
        Schedule(**settings)


def test_what_must_be_known_in_time():
    with pytest.raises(ConfigError, match="'cosine' schedule needs a last step"):
        Schedule(kind="cosine", warmup=0).rate(1)
    with pytest.raises(ConfigError, match="needs the model's width"):
        Schedule(kind="noam", warmup=1).rate(1)
