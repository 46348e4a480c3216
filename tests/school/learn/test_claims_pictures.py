"""What the captions of pictures say is what the pictures show."""

import math

import pytest
import torch

from glassformer.functional import sinusoidal
from glassformer.languages import Language
from glassformer.school.learn.picture import Flow
from glassformer.school.learn.pictures import draw

ENGLISH = Language("en")


def lengths(bars):
    return [length for _, length, _ in bars.bars]


def test_steps_between_the_ends_of_64_tokens():
    assert lengths(draw("distances", ENGLISH)) == [63, 32, 1]


def test_keys_and_values_of_a_hundred_tokens():
    assert lengths(draw("cache", ENGLISH)) == [sum(range(1, 101)), 100]


def test_the_rate_rises_to_step_4000_and_falls():
    rates = {step: rate for step, rate, _ in draw("schedule", ENGLISH).bars}
    assert max(rates, key=rates.get) == "4,000"
    assert rates["4,000"] / rates["2,000"] == pytest.approx(2)
    assert rates["4,000"] / rates["16,000"] == pytest.approx(2)
    assert math.isclose(4000**-0.5, 4000 * 4000**-1.5)


def test_peaks_of_eight_weights_rise_with_the_width_unless_scaled():
    plain, scaled = (lengths(bars) for bars in draw("peaks", ENGLISH).pictures)
    assert plain == sorted(plain) and max(scaled) - min(scaled) < 0.05
    assert min(plain + scaled) > 1 / 8


def test_masks_are_drawn_as_captions_say():
    rows = torch.ones(6, 6).tril().bool()
    causal, padding, both = (each.values for each in draw("masks", ENGLISH).pictures)
    assert torch.equal(draw("causal", ENGLISH).values, rows) and torch.equal(causal, rows)
    assert padding.sum(-1).tolist() == [4] * 6
    assert torch.equal(both, causal & padding)
    encoder, decoder, prefix = (each.values for each in draw("families", ENGLISH).pictures)
    assert encoder.all() and torch.equal(decoder, rows)
    assert prefix[:3, :3].all() and torch.equal(prefix[3:], rows[3:])


def test_waves_are_fast_on_the_left():
    picture = draw("waves", ENGLISH).values
    assert picture.shape == (24, 32) and picture.abs().max() <= 1
    changes = picture.diff(dim=0).abs().mean(0)[0::2]
    assert (
        torch.equal(picture, sinusoidal(24, 32)) and changes[0] > 5 * changes[8] > 25 * changes[15]
    )


def test_near_positions_are_similar():
    products = lengths(draw("wave-products", ENGLISH))
    assert max(products) == products[5] == pytest.approx(1)
    assert products[4] > products[0] and products[6] > products[-1]
    assert products[:5] == pytest.approx(products[:5:-1], abs=1e-4)


def test_a_clear_winner_becomes_a_tie():
    divided, floored = (each.values[0] for each in draw("floored", ENGLISH).pictures)
    assert divided[1] > 1.5 * divided[2] and floored[1] == floored[2]
    assert [math.floor(s) for s in (3.85, 3.14)] == [3, 3]


def test_random_heads_differ():
    heads = [each.values for each in draw("heads", ENGLISH).pictures]
    assert [head.shape for head in heads] == [(6, 6)] * 3
    assert all(not torch.allclose(heads[i], heads[i - 1], atol=0.1) for i in range(3))


def test_the_sizes_that_captions_name():
    def first_shapes(name):
        found = draw(name, ENGLISH)
        flows = [found] if isinstance(found, Flow) else found.pictures
        return [stage.shape for flow in flows for stage in flow.stages]

    block, whole = first_shapes("block"), first_shapes("transformer")
    assert {shape[:2] for shape in block} == {(2, 5)} and {6, 24} >= {s[-1] for s in block}
    assert {shape[:2] for shape in whole} >= {(2, 14), (2, 10)}
    single = first_shapes("single-head")
    assert single[0] == (2, 5, 6) and single[-1] == (2, 5, 4)
