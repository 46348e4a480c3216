"""What the chapter on how the field got here says and nothing else carries."""

import importlib
import re
from collections import Counter
from itertools import pairwise

import pytest
import torch

from glassformer.languages import CODES, Language
from glassformer.models import Config, Decoder
from glassformer.models.recurrent import LSTMSeq2Seq
from glassformer.school.learn import chapter_names, read_chapter
from glassformer.school.learn.blocks import Table
from glassformer.school.learn.picture_html import picture_markup
from glassformer.school.learn.pictures import draw
from glassformer.school.learn.plain_blocks import plain_picture
from glassformer.school.learn.timeline import read_timelines

TEXT = "the cat sat on the mat . the dog sat on the rug ."


@pytest.mark.parametrize("code", CODES)
def test_timelines_are_in_order_and_lead_to_chapters_and_works(code):
    timelines = read_timelines(Language(code))
    assert len(timelines) == 4
    for timeline in timelines:
        years = [event.year for event in timeline.events]
        assert years == sorted(years)
        assert {event.chapter for event in timeline.events} < set(chapter_names())
    events = {event.work.split()[0].rstrip(","): event for event in timelines[1].events}
    name = next(name for name in events if name.startswith("Bahdanau"))
    assert events[name].year == 2014 and "2015" in events[name].work  # first version, citation


def test_both_languages_have_the_same_events():
    english, chinese = (
        [
            (e.year, e.address, e.chapter)
            for line in read_timelines(Language(code))
            for e in line.events
        ]
        for code in CODES
    )
    assert english == chinese and len(set(english)) == len(english)


def test_events_are_links_in_the_book_and_plain_values_for_the_page():
    picture = draw("history", Language("en"))
    markup = picture_markup(picture, language=Language("en"))
    event = picture.pictures[2][1].events[0]
    assert f'<a href="{event.address}">' in markup and f'<a href="#{event.chapter}">' in markup
    plain = plain_picture(picture)["pictures"][2]["picture"]
    assert plain["kind"] == "timeline" and plain["events"][0]["chapter"] == event.chapter


@pytest.mark.parametrize("code", CODES)
def test_the_table_of_costs_names_parts_of_the_library(code):
    (table,) = [b for b in read_chapter("history", Language(code)).blocks if isinstance(b, Table)]
    names = [piece.text for row in table.rows for piece in row[3] if piece.kind == "code"]
    parts = [name for name in names if re.fullmatch(r"\w+\.\w+", name)]
    assert len(parts) == len(table.rows) - 1  # one is a command
    for name in parts:
        package, _, part = name.partition(".")
        assert hasattr(importlib.import_module(f"glassformer.{package}"), part)


def test_which_pairs_of_the_two_sentences_were_seen():
    text = TEXT.split()
    seen, words = Counter(pairwise(text)), set(text)
    assert len(words) == 8 and seen["the", "cat"] == 1 and text.count("the") == 4
    for sentence, unseen in (("the cat sat on the rug .", 0), ("the rug sat on the dog .", 2)):
        assert sum(pair not in seen for pair in pairwise(sentence.split())) == unseen
        assert sentence not in " ".join(text)


def test_without_attention_a_source_is_one_state_of_fixed_width():
    torch.manual_seed(0)
    model, target = LSTMSeq2Seq(11, 13, dim=6, n_layers=1), torch.tensor([[1, 5, 9]])
    memories = [model.encode(torch.randint(11, (1, n)), torch.tensor([n])) for n in (3, 9)]
    assert {part.shape for memory in memories for part in memory.state} == {(1, 1, 6)}
    first, second = memories
    swapped = second._replace(state=first.state)  # another sentence behind the same state
    with torch.no_grad():
        assert torch.equal(model.decode(target, first)[0], model.decode(target, swapped)[0])


def test_every_token_passes_through_the_same_layers():
    config = Config(family="decoder", vocab_size=11, dim=8, n_layers=3, n_heads=2, max_len=16)
    model, n_calls = Decoder(config).eval(), []
    for name, module in model.named_modules():
        if name.endswith(".core"):
            module.register_forward_hook(lambda *_: n_calls.append(1))
    for tokens in (torch.zeros(1, 4, dtype=torch.long), torch.arange(4)[None]):
        n_calls.clear()
        model(tokens)
        assert len(n_calls) == 3
