"""Which head and token are shown: the ones asked for, else the most telling."""

import pytest
import torch

from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.focus import choose_focus, find_token
from glassformer.render.informative_heads import find_most_informative
from glassformer.render.tokens import is_cross, token_names
from glassformer.tracing import Run, Trace, record
from render.page_traces import decoder, translator

ENGLISH = Language("en")


def test_the_most_telling_head_of_what_was_asked_for() -> None:
    trace = decoder(6, layers=3)
    assert choose_focus(trace) == find_most_informative(trace, list(trace))
    assert choose_focus(trace, layer=1) == find_most_informative(trace, [trace["decoder.1.self"]])
    assert choose_focus(trace, head=2) == find_most_informative(trace, list(trace), head=2)
    one = choose_focus(trace, site="decoder.2.self", head=1)
    assert one[:2] == (trace["decoder.2.self"], 1)


def test_another_text_goes_first() -> None:
    assert choose_focus(translator())[0].name == "decoder.0.cross"
    assert choose_focus(translator(), site="decoder.0.self")[0].name == "decoder.0.self"
    assert is_cross(translator()["decoder.0.cross"])
    assert not is_cross(translator()["decoder.0.self"])


def test_heads_go_by_their_numbers() -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 4).unbind(0)
    site = record(q, k, v)
    site.heads = (3, 7)
    trace = Trace([Run({"attention": site})])
    assert choose_focus(trace)[1] in (3, 7)
    assert choose_focus(trace, head=7)[:2] == (site, 7)
    with pytest.raises(TraceError, match=r"heads 3, 7 were recorded; got head=0"):
        choose_focus(trace, head=0)


def test_every_query_and_key_has_a_name() -> None:
    trace = translator()
    cross = trace["decoder.0.cross"]
    assert token_names(trace, cross, 1) == ([*"abcde"], [*"tuvwxyz"])
    trace.run.texts["source"].tokens = trace.run.texts["source"].tokens[:1]  # one for the batch
    trace.run.texts["source"].labels = [[*"TUVWXYZ"]]
    assert token_names(trace, cross, 1)[1] == [*"TUVWXYZ"]
    trace.run.texts.clear()
    assert token_names(trace, cross) == ([*"01234"], [*"0123456"])


def test_queries_that_continue_a_cache_are_the_last_tokens() -> None:
    trace = decoder(6)
    site = trace["decoder.0.self"]
    site.q = site.q[:, :, 4:]
    assert token_names(trace, site)[0] == trace.labels()[4:]


def test_a_token_is_named_by_itself_or_by_its_place() -> None:
    names = ["<s>", "␣cat", "##ting", "我", "2", "x"]
    for word, place in (("␣cat", 1), ("cat", 1), ("ting", 2), ("我", 3), ("5", 5), ("2", 2)):
        assert find_token(word, names, ENGLISH) == place
    with pytest.raises(TraceError, match=r"<s>, ␣cat.*got '9'"):
        find_token("9", names, ENGLISH)


@pytest.mark.plain
def test_refusals() -> None:
    with pytest.raises(TraceError, match=r"Layers are 0 … 1; got layer=9"):
        choose_focus(decoder(3), layer=9)
    with pytest.raises(TraceError, match=r"has heads 0 … 2; got head=-1"):
        choose_focus(decoder(3), head=-1)
    with pytest.raises(TraceError, match=r"this run has none. decoder.0.self: it is odd."):
        choose_focus(Trace([Run(refusals={"decoder.0.self": "it is odd"})]))
    with pytest.raises(TraceError, match=r"nothing has passed through the model yet"):
        choose_focus(Trace())
    q, k, v = torch.randn(3, 1, 2, 5, 4).unbind(0)
    with pytest.raises(TraceError, match=r"Layers are not numbered here; got layer=0"):
        choose_focus(Trace([Run({"attention": record(q, k, v)})]), layer=0)
