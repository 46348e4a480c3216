"""Interventions written as text: what prints is what reads, and nothing else does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import glassformer as gf
from glassformer.errors import InterventionError
from glassformer.tracing.interventions.expression import EXAMPLE, read_changes
from glassformer.tracing.interventions.values import Changes

places = st.sampled_from(["decoder.3.self", "encoder.0.mlp", "decoder.11.cross", "model.block-1.x"])
whole = st.integers(-9, 99)
ends = st.one_of(st.none(), whole)
numbers = st.one_of(
    st.none(),
    whole,
    st.lists(whole, max_size=4),
    st.sets(whole, max_size=3),
    st.builds(range, whole, whole, st.sampled_from([1, 2, -3])),
    st.builds(slice, ends, ends, st.sampled_from([None, 1, 3, -1])),
)
factors = st.floats(-2e38, 2e38)
simple_masks = st.one_of(
    st.just(gf.Causal()),
    st.builds(gf.Causal, st.integers(-3, 3)),
    st.builds(gf.Window, st.integers(0, 5), st.one_of(st.none(), st.integers(0, 5))),
    st.builds(gf.Prefix, st.integers(0, 5)),
    st.builds(
        gf.Padding,
        st.lists(st.integers(0, 9), min_size=1, max_size=12),
        st.sampled_from(["keys", "queries", "both"]),
        st.sampled_from(["left", "right"]),
    ),
    st.builds(gf.Documents, st.lists(st.integers(0, 3), min_size=1, max_size=12)),
)
masks = st.recursive(
    simple_masks,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a: ~a, inner),
    ),
    max_leaves=5,
)
swapped = {
    "mask": st.one_of(st.none(), masks),
    "bias": st.none(),
    "scale": st.one_of(st.none(), factors),
    "softcap": st.one_of(st.none(), st.floats(1e-30, 2e38)),
    "positions": st.just("none"),
    "sequences": numbers,
}
chosen = {"positions": numbers, "sequences": numbers}
one = st.one_of(
    st.builds(
        gf.Ablate,
        places,
        head=numbers,
        how=st.sampled_from(["zero", "mean", "resample"]),
        seed=st.integers(0, 2**63 - 1),
        **chosen,
    ),
    st.builds(gf.Knockout, places, queries=numbers, keys=numbers, head=numbers, sequences=numbers),
    st.builds(gf.Scale, places, factors, head=numbers, **chosen),
    st.fixed_dictionaries({}, optional=swapped)
    .filter(lambda given: given.keys() - {"sequences"})
    .map(lambda given: gf.Swap("decoder.3.self", **given)),
    st.builds(gf.Skip, st.sampled_from(["decoder.7", "encoder.0"]), sequences=numbers),
)


@pytest.mark.plain  # the type hook draws random numbers, which hypothesis refuses
@given(st.lists(one, min_size=1, max_size=4))
def test_what_prints_reads_as_an_equal_value(changes) -> None:
    joined = Changes.of_variants(changes)
    try:
        found = read_changes(str(joined))
    except InterventionError as error:  # drawn so that they contradict each other
        assert any(said in str(error) for said in ("contradict", "has no effect"))
        found = Changes.of_variants([next(iter(read_changes(str(each)))) for each in changes])
    assert found == joined and hash(found) == hash(joined)
    assert str(found) == str(joined)


@pytest.mark.plain
@given(one, one)
def test_equal_values_print_the_same_and_others_do_not(a, b) -> None:
    assert (a == b) == (str(a) == str(b))


def test_several_are_joined() -> None:
    assert str(read_changes(EXAMPLE)) == EXAMPLE
    assert len(read_changes(" skip( decoder.1 )&ABLATE(decoder.2.mlp)")) == 2


def test_a_mask_is_written_as_everywhere() -> None:
    text = "swap(decoder.1.self, mask=causal & window(3), softcap=none) & skip(decoder.2)"
    swap, skip = read_changes(text)
    assert swap == gf.Swap("decoder.1.self", mask=gf.Causal() & gf.Window(3), softcap=None)
    assert skip == gf.Skip("decoder.2")


@pytest.mark.plain
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is written as a call"),
        ("ablate", "is written as a call"),
        ("ablate(decoder.1.self", "is written as a call"),
        ("patch(decoder.1.self)", "trace of patch is a trace or a tensor, which no text can hold"),
        ("steer(decoder.1.self, vector=1)", "vector of steer is a trace or a tensor"),
        ("freeze(decoder.1.self, weights=$0)", "refers to value 0 of a file; there are 0"),
        ("ablate(head=2)", "begins with a place"),
        ("skip()", "begins with a place"),
        ("skip(a b)", "A place is a name"),
        ("ablate(decoder.1.self, hed=2)", "ablate takes head"),
        ("ablate(decoder.1.self, head=2, head=3)", "at most once"),
        ("ablate(decoder.1.self, head=two)", "must be numbers"),
        ("ablate(decoder.1.self, head=1:5:0)", "must be numbers"),
        ("ablate(decoder.1.self, head=" + "9" * 5000 + ")", "must be numbers"),
        ("ablate(decoder.1.self, how=some)", "zero, mean or resample"),
        ("ablate(decoder.1.self, seed=1 2)", "seed must be a whole number"),
        ("scale(decoder.1.self)", "needs a factor"),
        ("scale(decoder.1.self, factor=x)", "must be a number"),
        ("scale(decoder.1.self, factor=nan)", "finite number"),
        ("swap(decoder.1.self, scale=inf)", "finite number"),
        ("swap(decoder.1.self, softcap=-1)", "greater than 0"),
        ("swap(decoder.1.self, mask=cauzal)", "mask of swap cannot be read. A mask is one of"),
        ("skip(decoder.1) & ablate(decoder.1.mlp)", "has no effect"),
        ("__import__(os)", "is one of ablate, freeze"),
        ("a" * 200_000, "at most 100,000 characters"),
        ("skip(a.1)" + "&skip(a.1)" * 2000, "At most 1,000 interventions"),
    ],
)
def test_anything_else_is_refused_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(InterventionError, match=said):
        read_changes(text)


@given(st.text(max_size=60) | st.text("swap(ablte.,=&$0-:)[] masknohu", max_size=60))
def test_any_text_reads_or_is_refused(text: str) -> None:
    try:
        read_changes(text)
    except InterventionError as error:
        assert str(error)
