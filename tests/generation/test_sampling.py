import dataclasses
import doctest
import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.errors import ConfigError, ShapeError
from glassformer.generation import sampling as module
from glassformer.generation.sampling import Sampling, adjust, choose

B, V, L = 5, 97, 13
INF = math.inf
few = settings(max_examples=50)


def normal(*shape, seed=0, spread=3.0):
    generator = torch.Generator().manual_seed(seed)
    return spread * torch.randn(*shape, dtype=torch.float64, generator=generator)


def draws(logits, sampling, seed):
    return choose(logits, sampling, torch.Generator().manual_seed(seed))


def test_doctests():
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


# ── each step, by hand ──


def test_penalty_divides_above_zero_and_multiplies_below():
    logits = torch.tensor([[4.0, -4.0, 0.0, 4.0, -4.0], [1.0, 2.0, 3.0, 4.0, 5.0]])
    seen = torch.tensor([[0, 1, 1], [4, 2, 2]])
    expected = torch.tensor([[2.0, -8.0, 0.0, 4.0, -4.0], [1.0, 2.0, 1.5, 4.0, 2.5]])
    assert torch.equal(adjust(logits, Sampling(repetition_penalty=2), seen), expected)


def test_padding_does_not_count_as_seen():
    logits = torch.tensor([[4.0, 6.0, 8.0]])
    # 0 is padding alone; 1 is padding in one place and seen in another; −100 is no token at all.
    seen = torch.tensor([[1, 0, 1, -100]])
    mask = torch.tensor([[True, False, False, False]])
    for order in (torch.tensor([0, 1, 2, 3]), torch.tensor([3, 2, 1, 0])):
        out = adjust(logits, Sampling(repetition_penalty=2.0), seen[:, order], mask=mask[:, order])
        assert out.tolist() == [[4.0, 3.0, 8.0]]


def test_nothing_seen_is_nothing_penalised():
    logits, nothing = normal(B, V), torch.zeros(B, 0, dtype=torch.long)
    assert torch.equal(adjust(logits, Sampling(repetition_penalty=3.0), nothing), logits)


def test_temperature_divides_and_zero_leaves_as_it_is():
    logits = normal(B, V)
    assert torch.equal(adjust(logits, Sampling(temperature=0.25)), logits * 4)
    assert torch.equal(adjust(logits, Sampling(temperature=0)), logits)


@pytest.mark.parametrize("temperature", [1e-30, 1e-45, 1e-300])
@pytest.mark.parametrize("largest", [50.0, -50.0, 1e37, 0.0])
def test_the_lowest_temperatures_still_rank(temperature, largest):
    logits = torch.tensor([[largest * 0.9 - 1, largest, largest * 0.8 - 2]])
    if largest < 0:
        logits = logits - 10 * torch.tensor([[1.0, 0.0, 1.0]])
    sampling = Sampling(temperature=temperature)
    assert choose(adjust(logits, sampling), sampling).tolist() == [1]


def test_top_k_keeps_the_largest_and_their_equals():
    logits = torch.tensor([[3.0, 1.0, 2.0, 0.0], [2.0, 2.0, 2.0, 1.0]])
    expected = [[3.0, -INF, 2.0, -INF], [2.0, 2.0, 2.0, -INF]]
    assert adjust(logits, Sampling(top_k=2)).tolist() == expected


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [
        (1e-9, [2]),
        (0.5, [2]),  # reaches p: enough
        (0.51, [2, 0]),
        (0.75, [2, 0]),
        (0.76, [2, 0, 1]),  # of the two equals the lower id
        (0.875, [2, 0, 1]),
        (0.99, [2, 0, 1, 3]),
        (1.0, [2, 0, 1, 3]),
    ],
)
def test_top_p_keeps_the_smallest_set_that_reaches_p(top_p, kept):
    logits = torch.tensor([[0.25, 0.125, 0.5, 0.125]], dtype=torch.float64).log2() * math.log(2)
    out = adjust(logits, Sampling(top_p=top_p))
    assert out.isfinite().nonzero()[:, 1].tolist() == sorted(kept)
    assert torch.equal(out[0, kept], logits[0, kept])


def test_top_p_of_equals_keeps_the_lowest_ids():
    out = adjust(torch.zeros(1, 8), Sampling(top_p=0.375))
    assert out.isfinite().nonzero()[:, 1].tolist() == [0, 1, 2]


def test_top_p_ranks_by_logits_where_probabilities_round_alike():
    out = adjust(torch.tensor([[0.0, 0.0, 1e-9]]), Sampling(top_p=0.1))
    assert out.isfinite().nonzero()[:, 1].tolist() == [2]


def test_min_p_compares_with_the_likeliest():
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]], dtype=torch.float64).log()
    survivors = [
        adjust(logits, Sampling(min_p=p)).isfinite().sum().item() for p in (0.05, 0.2, 0.5, 0.7, 1)
    ]
    assert survivors == [4, 3, 2, 1, 1]


def test_the_order_is_penalty_temperature_k_p_min():
    logits, seen = normal(B, V), torch.arange(B * L).view(B, L) % V
    steps = [
        Sampling(repetition_penalty=1.7),
        Sampling(temperature=1.6),
        Sampling(top_k=20),
        Sampling(top_p=0.95),
        Sampling(min_p=0.04),
    ]
    sizes, one_by_one = [], logits
    for step in steps:
        one_by_one = adjust(one_by_one, step, seen)
        sizes.append(one_by_one.isfinite().sum().item())
    assert sizes[0] == sizes[1] > sizes[2] > sizes[3] > sizes[4]  # each step has something to do
    together = Sampling(repetition_penalty=1.7, temperature=1.6, top_k=20, top_p=0.95, min_p=0.04)
    assert torch.equal(adjust(logits, together, seen), one_by_one)


def test_inputs_are_left_alone():
    logits, seen = normal(B, V), torch.arange(B * L).view(B, L)
    before = logits.clone()
    adjust(logits, Sampling(temperature=2, top_k=3, top_p=0.5, repetition_penalty=2), seen)
    choose(logits, Sampling())
    assert torch.equal(logits, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_is_adjusted_in_float32(dtype):
    logits = normal(B, V).to(dtype)
    sampling = Sampling(temperature=0.3, top_p=0.9)
    out = adjust(logits, sampling)
    assert out.dtype == torch.float32
    assert torch.equal(out, adjust(logits.float(), sampling))
    assert choose(logits, sampling).dtype == torch.int64


# ── the same as transformers ──


def warper(name, *settings):
    transformers = pytest.importorskip("transformers")
    return getattr(transformers, name)(*settings)


@pytest.mark.parametrize(
    ("name", "setting", "values"),
    [
        ("TemperatureLogitsWarper", "temperature", [0.1, 0.7, 1.3, 9.0]),
        ("TopKLogitsWarper", "top_k", [1, 2, 50, V - 1, V, 1000]),
        ("TopPLogitsWarper", "top_p", [0.01, 0.3, 0.5, 0.9, 0.99, 1.0]),
        ("MinPLogitsWarper", "min_p", [0.0, 0.01, 0.1, 0.5, 0.9, 1.0]),
        ("RepetitionPenaltyLogitsProcessor", "repetition_penalty", [0.5, 1.0, 1.2, 3.0]),
    ],
)
@pytest.mark.parametrize("spread", [0.3, 1.0, 6.0])
def test_each_step_is_transformers(name, setting, values, spread):
    logits, seen = normal(B, V, spread=spread), torch.randint(V, (B, L))
    for value in values:
        theirs = warper(name, value)(seen, logits.clone())
        ours = adjust(logits, Sampling(**{setting: value}), seen)
        assert torch.equal(ours.isfinite(), theirs.isfinite()), value
        torch.testing.assert_close(ours, theirs, atol=0, rtol=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_all_steps_are_transformers_in_the_same_order(seed):
    logits, seen = normal(B, V, seed=seed), torch.randint(V, (B, L))
    theirs = logits.clone()
    for name, setting in [
        ("RepetitionPenaltyLogitsProcessor", 1.3),
        ("TemperatureLogitsWarper", 1.7),
        ("TopKLogitsWarper", 30),
        ("TopPLogitsWarper", 0.97),
        ("MinPLogitsWarper", 0.02),
    ]:
        theirs = warper(name, setting)(seen, theirs)
    ours = adjust(
        logits,
        Sampling(repetition_penalty=1.3, temperature=1.7, top_k=30, top_p=0.97, min_p=0.02),
        seen,
    )
    assert torch.equal(ours.isfinite(), theirs.isfinite())
    torch.testing.assert_close(ours, theirs, atol=0, rtol=1e-14)


# ── laws ──

numbers = st.floats(-1e4, 1e4, width=32)
rows = st.lists(numbers, min_size=7, max_size=7)
samplings = st.builds(
    Sampling,
    temperature=st.floats(0, 1e3),
    top_k=st.none() | st.integers(1, 9),
    top_p=st.none() | st.floats(0, 1, exclude_min=True),
    min_p=st.none() | st.floats(0, 1),
    repetition_penalty=st.none() | st.floats(0.1, 10),
)


@few
@given(st.lists(rows, min_size=1, max_size=3), samplings, st.booleans())
def test_something_always_survives_and_is_chosen(values, sampling, doubled):
    logits = torch.tensor(values, dtype=torch.float64 if doubled else torch.float32)
    out = adjust(logits, sampling, torch.tensor([[0, 3, 3]]).expand(len(values), -1))
    assert not out.isnan().any()
    survives = out > -INF
    assert survives.any(dim=1).all()
    tokens = choose(out, sampling)
    assert survives.gather(1, tokens[:, None]).all()


@few
@given(st.lists(rows, min_size=1, max_size=3), samplings)
def test_the_likeliest_survives_without_penalty(values, sampling):
    # Tempered first: what differs by less than float32 holds may become equal there.
    logits = adjust(torch.tensor(values), Sampling(temperature=sampling.temperature))
    out = adjust(logits, dataclasses.replace(sampling, temperature=1, repetition_penalty=None))
    assert (out.gather(1, logits.argmax(dim=1, keepdim=True)) > -INF).all()


@few
@given(st.lists(rows, min_size=1, max_size=3))
def test_settings_that_rule_nothing_out_change_nothing(values):
    logits = torch.tensor(values)
    nothing = Sampling(temperature=1, top_k=7, top_p=1, min_p=0, repetition_penalty=1)
    assert torch.equal(
        adjust(logits, nothing, torch.tensor([[0, 6]]).expand(len(values), 2)), logits
    )
    assert torch.equal(adjust(logits, Sampling()), logits)


@few
@given(st.lists(rows, min_size=2, max_size=4), samplings)
def test_rows_do_not_meet(values, sampling):
    logits, seen = torch.tensor(values), torch.arange(2 * len(values)).view(-1, 2) % 7
    alone = [adjust(logits[i : i + 1], sampling, seen[i : i + 1]) for i in range(len(values))]
    assert torch.equal(adjust(logits, sampling, seen), torch.cat(alone))


@few
@given(rows, st.integers(1, 7), st.floats(0.01, 1), st.floats(0, 1))
def test_a_tighter_setting_keeps_fewer(values, k, p, q):
    logits = torch.tensor([values])

    def kept(**setting):
        return adjust(logits, Sampling(**setting)) > -INF

    assert (kept(top_k=k) <= kept(top_k=k + 1)).all()
    assert (kept(top_p=p / 2) <= kept(top_p=p)).all()
    assert (kept(min_p=q) <= kept(min_p=q / 2)).all()


# ── choosing ──


def test_greedy_takes_the_largest_and_the_lowest_of_equals():
    logits = torch.tensor([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0], [-INF, -2.0, -1.0]])
    assert choose(logits, Sampling(temperature=0)).tolist() == [1, 0, 2]


def test_draws_follow_the_probabilities():
    n, probabilities = 100_000, torch.tensor([0.4, 0.3, 0.2, 0.08, 0.02, 0.0])
    tokens = draws(probabilities.log().expand(n, -1), Sampling(), seed=7)
    counts, expected = tokens.bincount(minlength=6), n * probabilities
    assert counts[5] == 0
    # χ² of 4 degrees of freedom: above 23.5 once in ten thousand seeds, and this seed is fixed.
    assert ((counts - expected)[:5].square() / expected[:5]).sum() < 23.5


def test_same_seed_same_tokens():
    logits = normal(1000, V)
    first, again = draws(logits, Sampling(), seed=3), draws(logits, Sampling(), seed=3)
    assert torch.equal(first, again)
    assert not torch.equal(first, draws(logits, Sampling(), seed=4))


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_infinite_logits_are_chosen(temperature):
    logits = torch.tensor([[9.0, INF, 99.0], [INF, -INF, 0.0]])
    sampling = Sampling(
        temperature=temperature, top_k=2, top_p=0.9, min_p=0.1, repetition_penalty=1.5
    )
    out = adjust(logits, sampling, torch.tensor([[1, 2], [0, 1]]))
    assert not out.isnan().any()
    for ready in (logits, out):
        assert choose(ready, sampling).tolist() == [1, 0]


def test_infinite_logits_share_the_row():
    tokens = draws(torch.tensor([[INF, 5.0, INF]]).expand(1000, -1), Sampling(), seed=0)
    counts = tokens.bincount(minlength=3).tolist()
    assert counts[1] == 0
    assert min(counts[0], counts[2]) > 400


def test_no_rows_no_tokens():
    logits = torch.zeros(0, V)
    everything = Sampling(top_k=3, top_p=0.5, min_p=0.5)
    assert choose(adjust(logits, everything), everything).shape == (0,)


@pytest.mark.plain
@pytest.mark.parametrize("temperature", [0, 0.7])
def test_it_compiles_whole(temperature):
    sampling = Sampling(
        temperature=temperature, top_k=20, top_p=0.9, min_p=0.05, repetition_penalty=1.3
    )
    logits, seen = normal(B, V), torch.randint(V, (B, L))
    mask = torch.rand(B, L) > 0.3
    whole = torch.compile(adjust, fullgraph=True, backend="aot_eager")
    adjusted = adjust(logits, sampling, seen, mask=mask)
    torch.testing.assert_close(whole(logits, sampling, seen, mask=mask), adjusted)
    tokens = torch.compile(choose, fullgraph=True, backend="aot_eager")(adjusted, sampling)
    assert adjusted.gather(1, tokens[:, None]).isfinite().all()
    if temperature == 0:
        assert torch.equal(tokens, adjusted.argmax(dim=1))


# ── what is refused ──


def test_settings_survive_json():
    sampling = Sampling(temperature=0.8, top_k=40, min_p=0.1)
    assert Sampling(**json.loads(json.dumps(dataclasses.asdict(sampling)))) == sampling
    with pytest.raises(dataclasses.FrozenInstanceError):
        sampling.top_k = 3


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("temperature", -0.5, r"at least 0 and finite; got temperature=-0\.5\. Use 0 for"),
        ("temperature", INF, r"at least 0 and finite; got temperature=inf\."),
        ("temperature", math.nan, r"at least 0 and finite; got temperature=nan\."),
        ("top_k", 0, r"a whole number, at least 1; got top_k=0\. Leave it out"),
        ("top_k", -3, r"a whole number, at least 1; got top_k=-3\."),
        ("top_p", 0.0, r"greater than 0 and at most 1; got top_p=0\.0\. Leave it out"),
        ("top_p", 1.1, r"greater than 0 and at most 1; got top_p=1\.1\."),
        ("top_p", math.nan, r"greater than 0 and at most 1; got top_p=nan\."),
        ("min_p", -0.1, r"at least 0 and at most 1; got min_p=-0\.1\. Leave it out"),
        ("min_p", 2, r"at least 0 and at most 1; got min_p=2\."),
        ("repetition_penalty", 0, r"than 0 and finite; got repetition_penalty=0\. Use 1\.2"),
        ("repetition_penalty", INF, r"than 0 and finite; got repetition_penalty=inf\."),
    ],
)
def test_settings_outside_of_what_they_may_be(name, value, sentence):
    with pytest.raises(ConfigError, match=rf"^{name} must be .*{sentence}"):
        Sampling(**{name: value})


@pytest.mark.plain
def test_top_k_is_whole():
    with pytest.raises(ConfigError, match=r"whole number, at least 1; got top_k=2\.5\."):
        Sampling(top_k=2.5)


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_nan_is_not_chosen(temperature):
    sampling = Sampling(temperature=temperature, top_k=3, top_p=0.9, min_p=0.1)
    logits = normal(B, V)
    logits[3, 11] = math.nan
    for ready in (logits, adjust(logits, sampling)):
        with pytest.raises(ConfigError, match=r"^logits must be numbers; got NaN in row 3\."):
            choose(ready, sampling)


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_something_must_be_left_to_choose(temperature):
    sampling = Sampling(temperature=temperature, top_k=3, top_p=0.9, min_p=0.1)
    logits = normal(B, V)
    logits[2] = -INF
    for ready in (logits, adjust(logits, sampling)):
        with pytest.raises(ConfigError, match=r"got nothing but -inf in row 2\. Exclude fewer"):
            choose(ready, sampling)


def test_a_penalty_needs_the_tokens_so_far():
    with pytest.raises(ConfigError, match=r"got repetition_penalty=1\.2 and seen=None\. Pass"):
        adjust(normal(B, V), Sampling(repetition_penalty=1.2))


def test_a_mask_needs_its_tokens():
    with pytest.raises(ConfigError, match=r"^mask needs the tokens.*got seen=None\."):
        adjust(normal(B, V), Sampling(), mask=torch.ones(B, L, dtype=torch.bool))


@pytest.mark.parametrize("token", [-1, V])
def test_what_was_seen_must_be_of_the_vocabulary(token):
    seen = torch.full((B, L), token)
    with pytest.raises(ConfigError, match=rf"token ids from 0 to 96; got {token}\. Mark padding"):
        adjust(normal(B, V), Sampling(repetition_penalty=1.2), seen)


@pytest.mark.plain
def test_logits_must_be_one_row_for_each_sequence():
    for use in (adjust, choose):
        with pytest.raises(ShapeError, match=r"got \(2, 3, 5\)\. Take the last position"):
            use(torch.zeros(2, 3, 5), Sampling())
        with pytest.raises(ShapeError, match=r"at least one token to choose from; got \(2, 0\)\."):
            use(torch.zeros(2, 0), Sampling())


@pytest.mark.plain
def test_seen_and_mask_must_fit():
    logits, seen = normal(B, V), torch.zeros(4, 7, dtype=torch.long)
    with pytest.raises(ShapeError, match=r"got \(4, 7\) for logits \(5, 97\)\."):
        adjust(logits, Sampling(), seen)
    with pytest.raises(ShapeError, match=r"got mask \(4, 6\) for seen \(4, 7\)\."):
        adjust(logits[:4], Sampling(), seen, mask=torch.ones(4, 6, dtype=torch.bool))
