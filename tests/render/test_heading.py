"""Which model and which text: from what a trace knows."""

import pytest

import glassformer as gf
from glassformer.languages import Language
from glassformer.render.heading import heading, join_labels, model_name, shorten
from glassformer.tracing import Trace, watch
from letter_models import letter_model
from render.page_traces import translator


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (["<s>", "The", "␣cat", ".", "</s>"], "The cat."),
        (["<fr>", "␣I", "␣love", "␣you", "."], "I love you."),
        (["[CLS]", "the", "cat", "sat", "##s", ".", "it", "ran", "[SEP]"], "the cat sats. it ran"),
        (["政", "府", "…", "星期", "一", "。"], "政府星期一。"),
        ([*"hello"], "hello"),
        (["<|endoftext|>", "Hi", "⏎", "␣there"], "Hi there"),
        ([], ""),
        (["<s>"], ""),
    ],
)
def test_tokens_as_running_text(labels, text):
    assert join_labels(labels) == text


def test_long_texts_lose_their_middle():
    words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    found = shorten(words, 40)
    assert len(found) <= 40 and found.startswith("one two ") and found.endswith(" fourteen")
    assert len(shorten("长" * 500, 40)) <= 40


def test_the_name_it_was_loaded_as(tmp_path):
    model = letter_model("decoder")
    assert model.name is None
    gf.save(model, tmp_path / "mine")
    loaded = gf.load(tmp_path / "mine")
    with watch(loaded) as trace:
        gf.generate(loaded, "hello", max_new_tokens=2)
    assert model_name(trace) == "mine"
    trace.save(tmp_path / "a.trace")
    again = Trace.load(tmp_path / "a.trace")
    site = again["decoder.0.self"]
    assert heading(again, site, Language("en")).startswith("mine: “hello")
    assert heading(again, site, Language("zh")).startswith("mine：“hello")


def test_runs_of_a_copied_folder_are_of_one_model(tmp_path):
    for name in ("one", "two"):
        gf.save(letter_model("decoder"), tmp_path / name)
        model = gf.load(tmp_path / name)
        with watch(model) as trace:
            gf.generate(model, "hello", max_new_tokens=1)
        trace.append(tmp_path / "a.trace")
    assert len(Trace.load(tmp_path / "a.trace").runs) == 2


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ({"name": "translator"}, "translator"),
        ({"config": {"_name_or_path": "org/tiny", "model_type": "llama"}}, "org/tiny"),
        ({"config": {"_name_or_path": "/home/anna/models/tiny"}}, "tiny"),
        ({"config": {"_name_or_path": "", "model_type": "llama"}}, "llama"),
        ({"config": {"family": "decoder"}}, "decoder"),
        ({"name": 5, "config": [1]}, ""),
        ({}, ""),
    ],
)
def test_names_of_models(model, name):
    assert model_name(Trace([], model)) == name


def test_a_batch_names_its_own_texts():
    trace = translator()
    site = trace["decoder.0.cross"]
    assert heading(trace, site, Language("en"), sequence=1) == "“tuvwxyz” → “abcde”"
    trace.run.texts.clear()
    assert heading(trace, site, Language("en")) == ""
