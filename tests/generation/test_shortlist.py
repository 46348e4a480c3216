"""Translating with a lexical shortlist: likely tokens alone, and texts that have no list."""

import pytest
import torch

import glassformer as gf
from glassformer.errors import ConfigError
from glassformer.generation import rank_translations
from glassformer.generation.source_text import read_sources
from glassformer.text.shortlist import Shortlist, TargetShortlist
from letter_models import letter_model

TEXTS = [
    "Where is the station?",
    "I have never seen such a beautiful garden in my life.",
    "Tom gave Mary a book about the history of London.",
    "My x-ray was OK, said Dr. Zhivago.",
]


@pytest.mark.parametrize("code", ["zh", "fr"])
@pytest.mark.parametrize("beams", [1, 4])
def test_translations_have_tokens_of_the_shortlist_alone(code: str, beams: int) -> None:
    model = gf.load("translator")
    sources = read_sources(model, TEXTS, code, shortlist=True)
    ranked = rank_translations(model, TEXTS, to=code, beams=beams, n_best=beams, shortlist=True)
    plain = rank_translations(model, TEXTS, to=code, beams=beams)
    for source, found, usual in zip(sources, ranked, plain, strict=True):
        assert source.is_shortened and source.forbidden is not None
        assert 100 < int((~source.forbidden).sum()) < 1500
        assert not any(source.forbidden[[*each.tokens]].any() for each in found)
        is_possible = not bool(source.forbidden[[*usual[0].tokens]].any())
        if is_possible and found[0].tokens == usual[0].tokens:
            assert found[0].score >= usual[0].score - 1e-4  # the same, among fewer
    assert ranked[0][0].text == plain[0][0].text


def test_a_word_of_the_source_may_be_copied() -> None:
    model = gf.load("translator")
    (source,) = read_sources(model, ["Zhivago came."], "fr", shortlist=True)
    spelled = model.tokenizer.encode(" Zhivago", add_special=False)
    assert source.forbidden is None or not source.forbidden[spelled].any()


def test_what_is_restricted_stays_so() -> None:
    model = gf.load("translator")
    (strict,) = read_sources(model, TEXTS[:1], "zh", shortlist=True)
    (usual,) = read_sources(model, TEXTS[:1], "zh")
    (free,) = read_sources(model, TEXTS[:1], "zh", restricted=False, shortlist=True)
    assert strict.forbidden is not None and free.forbidden is not None
    assert bool(strict.forbidden[usual.forbidden].all())
    assert torch.equal(strict.forbidden, free.forbidden | usual.forbidden)


def test_a_text_with_an_unseen_token_is_translated_as_without() -> None:
    model = gf.load("translator")
    texts = [TEXTS[0], "Je t'aime, she said.", TEXTS[1]]  # no English sentence begins with Je
    assert [s.is_shortened for s in read_sources(model, texts, "fr", shortlist=True)] == [1, 0, 1]
    found = rank_translations(model, texts, to="fr", shortlist=True)
    usual = rank_translations(model, texts, to="fr")
    assert found[1] == usual[1]
    assert gf.translate(model, texts[0], to="fr", shortlist=True) == found[0][0].text


def test_a_vocabulary_may_be_larger_than_that_of_the_tokenizer() -> None:
    """As where an embedding is padded."""
    model = gf.load("translator")
    whole = model.tokenizer.shortlist.targets["fr"]
    n = 7000
    stop = whole.offsets[n]
    few = TargetShortlist(
        always=whole.always[whole.always < n],
        offsets=whole.offsets[: n + 1],
        tokens=whole.tokens[:stop].clip(max=n - 1),
    )
    (usual,) = read_sources(model, TEXTS[:1], "fr", shortlist=True)
    model.tokenizer.shortlist = Shortlist(targets={"fr": few})
    (source,) = read_sources(model, TEXTS[:1], "fr", shortlist=True)
    assert max(source.tokens) < n and source.is_shortened
    assert usual.forbidden is not None and source.forbidden is not None
    assert torch.equal(source.forbidden[: n - 1], usual.forbidden[: n - 1])
    assert bool(source.forbidden[n:].all())
    assert gf.translate(model, TEXTS[0], to="fr", shortlist=True).endswith("?")


def test_a_shortlist_is_saved_with_its_model(tmp_path) -> None:
    model = gf.load("translator")
    gf.save(model, tmp_path / "saved")
    again = gf.load(tmp_path / "saved")
    assert again.tokenizer.shortlist.as_bytes() == model.tokenizer.shortlist.as_bytes()
    assert gf.translate(again, TEXTS, to="fr", shortlist=True) == gf.translate(
        model, TEXTS, to="fr", shortlist=True
    )


@pytest.mark.plain
def test_a_model_without_one_says_how_to_make_it() -> None:
    model = letter_model("encoder_decoder")
    with pytest.raises(ConfigError, match=r"shortlist.safetensors; this model has none.*make one"):
        gf.translate(model, "a b", shortlist=True)
