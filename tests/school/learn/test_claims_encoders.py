"""What the chapter on encoders claims, and no snippet prints."""

import pytest
import torch
import torch.nn.functional as F

import glassformer as gf
from closeness import assert_close
from glassformer.languages import Language
from glassformer.school.lab.experiments import retrieval
from glassformer.school.learn.pictures import draw
from glassformer.school.paraphrases import PARAPHRASES


@pytest.fixture(scope="module")
def ranked():
    """For each query the documents and their cosines, the nearest first."""
    album = draw("sentence-search", Language("en"))
    return {
        query: [(text, cosine) for text, cosine, _ in bars.bars] for query, bars in album.pictures
    }


def test_which_queries_find_their_document(ranked):
    nearest = {query: rows[0][0] for query, rows in ranked.items()}
    assert nearest["The monarch took his royal seat."] != "The king sat upon his throne."
    assert nearest["The robber carried off the treasure."] == "The thief stole the gold."
    assert nearest["The wedding was held before the priest."] != "They were married in the church."


def test_what_a_cosine_does_not_say(ranked):
    text, cosine = ranked["The man bit the dog."][0]
    assert text == "The dog bit the man." and round(cosine, 2) == 0.99
    assert ranked["He did not love her at all."][0][0] == "He loved her with all his heart."
    text, cosine = ranked["My computer has no network."][0]
    assert text == "He loved her with all his heart."
    wrong = [c for query, rows in ranked.items() for _, c in rows[1:] if "computer" not in query]
    assert abs(cosine - sum(wrong) / len(wrong)) < 0.05


def test_the_reader_has_rotary_positions_and_no_window():
    reader = gf.load("reader")
    assert reader.config.positions.kind == "rotary" and reader.config.window is None


def test_vectors_of_different_texts_share_a_direction():
    vectors = gf.embed(gf.load("reader"), [text for pair in PARAPHRASES for text in pair])
    cosines = vectors @ vectors.T
    assert cosines.min() > 0.0  # of 32 sentences, none is at a right angle to another
    assert_close(vectors.norm(dim=-1), torch.ones(len(vectors)), 1e-5)


def test_paraphrases_have_few_common_words():
    shares = []
    for pair in PARAPHRASES:
        one, other = (set(text.lower()[:-1].split()) for text in pair)
        shares.append(len(one & other) / len(one | other))
    assert sum(shares) / len(shares) < 0.15


def test_the_gradient_of_info_nce_lies_on_the_hardest_negatives():
    cosines = torch.tensor([[0.9, 0.7, 0.1], [0.2, 0.8, 0.0], [0.1, 0.3, 0.6]]).double()
    shares = []
    for temperature in (1.0, 0.1):
        leaf = cosines.clone().requires_grad_()
        F.cross_entropy(leaf / temperature, torch.arange(3)).backward()
        p, wrong = (cosines / temperature).softmax(-1), ~torch.eye(3, dtype=torch.bool)
        assert_close(leaf.grad[wrong], (p / (3 * temperature))[wrong], 1e-12)
        shares.append(float(p[0, 1] / (p[0, 1] + p[0, 2])))
    assert shares[0] < 0.7 and shares[1] > 0.99


def test_the_last_token_of_a_decoder_alone_sees_the_whole_text():
    writer = gf.load("writer")
    tokens = torch.tensor([writer.tokenizer.encode("The king sat upon his throne")])
    other = tokens.clone()
    other[0, -1] = 7
    with torch.no_grad():
        change = (writer.hidden(tokens) - writer.hidden(other)).abs().amax(-1)[0]
    assert bool((change[:-1] < 1e-5).all()) and change[-1] > 0.1


def test_sentences_of_the_experiment():
    """No word of a paraphrase is a word of its sentence; reversed events share a bag of words."""
    world, generator = retrieval._World(0), torch.Generator().manual_seed(0)
    events = world.draw(generator, reversed_too=False)
    found = {tuple(event) for event in events.tolist()}
    assert not any((o, v, s) in found for s, v, o in found)
    one, other, swapped = retrieval._write_pairs(events, generator)
    words = [1, 3, 4]
    sides = zip(one[:, words].tolist(), other[:, words].tolist(), strict=True)
    assert not any(set(a) & set(b) for a, b in sides)
    assert torch.equal(other[:, words].sort().values, swapped[:, words].sort().values)
    held_out = {tuple(event) for event in world.events[world.held_out].tolist()}
    assert not held_out & found
