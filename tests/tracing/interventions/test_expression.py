"""Interventions written as text: what prints is what reads, and nothing else does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import glassformer as gf
from glassformer.errors import InterventionError
from glassformer.tracing.interventions.expression import EXAMPLE, read_changes

places = st.sampled_from(["decoder.3.self", "encoder.0.mlp", "decoder.11.cross"])
numbers = st.one_of(st.integers(-9, 99), st.lists(st.integers(0, 9), min_size=2, max_size=4))
written = st.one_of(
    st.builds(gf.Ablate, places, head=numbers, how=st.sampled_from(["zero", "mean", "resample"])),
    st.builds(gf.Knockout, places, queries=st.just(slice(3, None)), keys=numbers),
    st.builds(gf.Scale, places, st.floats(-9, 9), positions=numbers),
    st.builds(gf.Swap, places, scale=st.floats(0.01, 9), positions=st.just("none")),
    st.just(gf.Skip("decoder.7")),
)


@given(written)
def test_what_prints_reads_as_the_same(change) -> None:
    assert str(read_changes(str(change))) == str(change)


def test_several_are_joined() -> None:
    assert str(read_changes(EXAMPLE)) == EXAMPLE
    assert len(read_changes(" skip( decoder.1 )&ABLATE(decoder.2.mlp)")) == 2


@pytest.mark.plain
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is written as a call"),
        ("ablate", "is written as a call"),
        ("ablate(decoder.1.self", "is written as a call"),
        ("patch(decoder.1.self)", "hold a trace or a tensor"),
        ("ablate(head=2)", "begins with a place"),
        ("skip()", "begins with a place"),
        ("ablate(decoder.1.self, hed=2)", "ablate takes head"),
        ("ablate(decoder.1.self, head=2, head=3)", "at most once"),
        ("ablate(decoder.1.self, head=two)", "must be numbers"),
        ("ablate(decoder.1.self, how=some)", "zero, mean or resample"),
        ("scale(decoder.1.self)", "needs a factor"),
        ("scale(decoder.1.self, factor=x)", "must be a number"),
        ("scale(decoder.1.self, factor=nan)", "finite number"),
        ("skip(decoder.1) & ablate(decoder.1.mlp)", "has no effect"),
        ("__import__(os)", "can be written are"),
        ("a" * 20_000, "at most 10,000 characters"),
    ],
)
def test_anything_else_is_refused_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(InterventionError, match=said):
        read_changes(text)


@given(st.text(max_size=60))
def test_any_text_reads_or_is_refused(text: str) -> None:
    try:
        read_changes(text)
    except InterventionError as error:
        assert str(error)
