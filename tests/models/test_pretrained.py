"""The models that come with the package: small, whole, described, and able to do their task."""

import re

import pytest
import torch

import glassformer as gf
from glassformer.errors import CheckpointError, ConfigError
from glassformer.models.pretrained import card, list_pretrained

MOST = 60_000_000  # bytes, all together


def test_together_they_are_small():
    sizes = [p.stat().st_size for folder in list_pretrained().values() for p in folder.rglob("*")]
    assert sum(sizes) <= MOST


@pytest.mark.parametrize("name", sorted(list_pretrained()))
def test_each_has_a_card_with_all_that_must_be_told(name):
    text = card(name)
    assert text.startswith(f"# {name}\n")
    for heading in ("## Data", "## Recipe", "## Scores", "## Limits"):
        assert heading in text
    assert "licence" in text and f"recipes/{name}.toml" in text


@pytest.mark.parametrize("name", sorted(list_pretrained()))
def test_stored_in_half_and_loaded_in_full(name):
    model = gf.load(name)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    halves = gf.load(name, dtype=torch.float16).state_dict()
    for key, tensor in model.state_dict().items():
        assert torch.equal(tensor, halves[key].float()), key
    stored = gf.load(list_pretrained()[name]).state_dict()
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("I am going to [MASK] my homework.", "do"),
        ("I drink a cup of [MASK] every morning.", "coffee"),
        ("She plays the [MASK] very well.", "piano"),
        ("He is taller [MASK] me.", "than"),
        ("Two and two make [MASK].", "four"),
        ("In the beginning God created the heaven and the [MASK].", "earth"),
    ],
)
def test_the_reader_fills_gaps(text, word):
    (guesses,) = gf.fill(gf.load("reader"), text, k=1)
    assert guesses[0].piece == word


def test_the_translator_writes_two_languages():
    model = gf.load("translator")
    assert gf.translate(model, "The cat sat on the mat.", to="zh").startswith("猫坐在")
    assert gf.translate(model, "The cat sat on the mat.", to="fr").startswith("Le chat ")
    assert gf.translate(model, "Where is the station?", to="fr") == "Où se trouve la gare ?"
    assert gf.translate(model, "Where is the station?", to="zh") == "车站在哪里？"
    with pytest.raises(ConfigError, match="into zh and fr; no target language"):
        gf.translate(model, "Where is the station?")


def test_the_writer_writes_like_its_books():
    model = gf.load("writer")
    sampling = {"temperature": 0.8, "top_p": 0.9, "seed": 1, "max_new_tokens": 40}
    bible = gf.generate(model, "And God said unto Abraham,", **sampling)
    novel = gf.generate(model, "Mrs. Weston smiled, and", **sampling)
    assert "unto" in bible and '"' not in bible
    assert '"' in novel and "unto" not in novel


@pytest.mark.parametrize("beginning", ["Once upon a time", "The robot", "In the beginning"])
def test_the_storyteller_ends_its_stories_and_does_not_go_in_circles(beginning):
    story = gf.generate(gf.load("storyteller"), beginning, max_new_tokens=400)
    assert len(story) > 300 and story.endswith((".", '"', "!"))
    sentences = re.split(r"(?<=[.!?])\s", story)
    assert len(set(sentences)) >= 0.9 * len(sentences)


def test_those_who_wrote_the_sentences_are_named():
    for model in ("translator", "reader"):
        names = (list_pretrained()[model] / "CONTRIBUTORS.tsv").read_text("utf-8")
        assert "CC-BY 2.0 FR" in names.splitlines()[0] and len(names.splitlines()) > 100


def test_the_reader_can_be_looked_into():
    model = gf.load("reader")
    tokens = torch.tensor([model.tokenizer.encode("The cat sat on the mat.")])
    with torch.no_grad(), gf.watch(model) as trace:
        model(tokens)
    weights = trace["encoder.0.self"].weights(head=0)
    assert weights.shape[-2:] == (tokens.shape[1],) * 2
    assert torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-5)


def test_a_name_wins_over_a_folder_and_dots_over_the_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reader").mkdir()
    assert gf.load("reader").config.family == "encoder"
    with pytest.raises(CheckpointError, match=r"must hold config\.json; reader does not"):
        gf.load("./reader")


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(CheckpointError, match=r"A model must be reader or .*'raeder' is not there"):
        gf.load("raeder")
