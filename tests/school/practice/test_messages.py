"""The border between the learner's process and the judge: one grammar, and nothing else."""

import json
from contextlib import suppress

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.school.practice.call_trail import TrailStep
from glassformer.school.practice.messages import MOST_LINE, Interference, read_transcript
from glassformer.school.practice.outcome import Outcome
from glassformer.school.practice.plain_values import TooLarge, as_data, from_data, to_plain

VALUE = to_plain({"out": torch.arange(6.0).reshape(2, 3), "n": 3})
OUTCOMES = [Outcome(VALUE), Outcome(failure="raised", error="ValueError", message="no", line=4)]


def lines(*messages):
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def conversation():
    said = [{"ready": ["landlock"]}]
    for number, outcome in enumerate(OUTCOMES):
        said += [{"begin": number}, {"case": number, "outcome": outcome.as_data()}]
    return [*said, {"done": True}]


def test_what_our_own_code_sends_is_understood():
    read = read_transcript(lines(*conversation()), 2)
    assert (read.isolation, read.done, read.stop) == (("landlock",), True, None)
    assert read.got[0].value.parts["out"].data.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert read.got[1] == OUTCOMES[1]


def test_a_trail_is_understood():
    step = TrailStep("attention", 3, 5, 0, (VALUE,), VALUE)
    read = read_transcript(
        lines({"ready": []}, {"trail": [step.as_data()], "weights": None, "repairs": [3, 1]}), 1
    )
    assert (read.trail[0].name, read.trail[0].line, read.got) == ("attention", 5, [])


def test_a_line_that_was_cut_off_does_not_count():
    whole = lines(*conversation())
    for end in range(len(whole)):
        read = read_transcript(whole[:end], 2)
        assert not read.done and len(read.got) <= 2


@pytest.mark.parametrize("place", range(6))
def test_no_message_may_be_missing_twice_or_out_of_place(place):
    said = conversation()
    with pytest.raises(Interference):
        read_transcript(lines(*said[: place + 1], *said[place:]), 2)
    if place < 5:
        with pytest.raises(Interference):
            read_transcript(lines(*said[:place], *said[place + 1 :]), 2)


def test_more_cases_than_there_are():
    with pytest.raises(Interference, match="not the next case"):
        read_transcript(lines(*conversation()), 1)


def test_a_line_has_a_length():
    with pytest.raises(Interference, match="too long"):
        read_transcript(b" " * (MOST_LINE + 1) + b"\n", 1)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
_FIELDS = st.sampled_from(
    ["leaf", "dtype", "text", "shape", "numpy", "bytes", "parts", "kind", "value", "failure"]
)


@given(_FIELDS, _JSON)
def test_whatever_stands_in_a_field_is_a_value_or_interference(name, other):
    """Never another error, whichever field of an outcome is forged."""
    data = json.loads(json.dumps(OUTCOMES[0].as_data()))
    leaf = data["value"]["parts"]["out"]
    for place in (data, data["value"], leaf):
        if name in place:
            place[name] = other
    sent = lines({"ready": []}, {"begin": 0}, {"case": 0, "outcome": data})
    with suppress(Interference):
        assert len(read_transcript(sent, 1).got) == 1


@given(st.binary(max_size=60), st.integers(0, 400))
def test_bytes_between_the_lines_are_interference_or_change_nothing(noise, place):
    whole = lines(*conversation())
    place = min(place, len(whole))
    try:
        read = read_transcript(whole[:place] + noise + whole[place:], 2)
    except Interference:
        return
    assert len(read.got) <= 2


def test_texts_lose_what_steers_a_terminal():
    value = from_data(as_data(to_plain({"\x1b[2J": "\x1b[31mred"})))
    assert list(value.parts) == ["·[2J"] and value.parts["·[2J"].text == "·[31mred"


def test_all_parts_of_a_result_together_have_a_size():
    with pytest.raises(TooLarge):
        to_plain([torch.ones(400_000) for _ in range(3)])
    with pytest.raises(TooLarge):
        to_plain([[0] * 6000, [0] * 6000])
