"""A translator writes its target language alone, and copies what it cannot read."""

import re

import pytest
import torch

import glassformer as gf
from glassformer.errors import ShapeError
from glassformer.generation import (
    Sampling,
    beam_search,
    generate_tokens,
    rank_translations,
    read_source,
    stream_tokens,
)
from glassformer.generation.sampling import exclude_tokens

# Words that the Chinese half of its training lacks, or has once: some came out in French.
RARE = [
    "spider",
    "broom",
    "forehead",
    "sunscreen",
    "seagull",
    "owl",
    "hedgehog",
    "squirrel",
    "lobster",
    "oyster",
    "trumpet",
    "violin",
    "flute",
    "anchor",
    "lighthouse",
    "harbor",
    "volcano",
    "glacier",
    "avalanche",
    "meadow",
    "thistle",
    "acorn",
    "walnut",
    "almond",
    "raspberry",
    "spinach",
    "parsley",
    "cinnamon",
    "vinegar",
    "mustard",
    "ladle",
    "kettle",
    "corkscrew",
    "chisel",
    "plumber",
    "blacksmith",
    "carpenter",
    "tailor",
    "beekeeper",
    "juggler",
    "acrobat",
    "puppet",
    "scarecrow",
    "wheelbarrow",
    "stroller",
    "crutch",
    "bandage",
    "thermometer",
    "stethoscope",
    "telescope",
    "compass",
    "parachute",
    "glider",
    "canoe",
    "kayak",
    "paddle",
    "snorkel",
    "trampoline",
    "hammock",
    "saddle",
    "bridle",
]
PLAIN = [
    "The cat sat on the mat.",
    "Where is the station?",
    "I love you.",
    "Tom has a new TV.",
    "My brother lives in London.",
    "It costs 12% more than in 2019.",
]
COPIED = [
    ("I saw three spiders 🕷️ in the garden.", ["🕷️"]),
    ("🎉 Happy birthday!", ["🎉"]),
    ("See you tomorrow 👋", ["👋"]),
    ("I live in 北京.", ["北京"]),
    ("He said «да» and left.", ["«да»"]),
    ("The word سلام means peace.", ["سلام"]),
    ("A family 👨‍👩‍👧 came to Łódź today.", ["👨‍👩‍👧", "Łódź"]),
    ("Write to tom@mail.com now.", ["tom@mail.com"]),
    ("👍", ["👍"]),
]


@pytest.fixture(scope="module")
def translator():
    return gf.load("translator")


def test_no_word_of_another_language_comes_into_chinese(translator) -> None:
    texts = [f"The {word} is mine." for word in RARE]
    assert len(texts) >= 60
    free = rank_translations(translator, texts, to="zh", beams=1, restricted=False)
    assert any(re.search("[A-Za-zÀ-ÿ]", best.text) for (best,) in free)  # else nothing is tested
    for text, (best,) in zip(texts, rank_translations(translator, texts, to="zh"), strict=True):
        for word in re.findall("[A-Za-zÀ-ÿ]+", best.text):
            assert word.casefold() in text.casefold(), (text, best.text)


def test_french_has_no_chinese(translator) -> None:
    source = read_source(translator, "Where is the station?", "fr")
    assert source.forbidden is not None
    allowed = (~source.forbidden).nonzero().flatten().tolist()
    pieces = [translator.tokenizer.decode([token]) for token in allowed]
    assert not [piece for piece in pieces if re.search("[\u3400-\u9fff]", piece)]


def test_names_of_the_source_may_be_written(translator) -> None:
    allowed = read_source(translator, "Tom met Schmidt.", "zh").forbidden
    other = read_source(translator, "He met her.", "zh").forbidden
    assert allowed is not None and other is not None
    for name in ("Tom", "Schmidt", " Schmidt"):
        tokens = translator.tokenizer.encode(name, add_special=False)
        assert not allowed[tokens].any() and other[tokens].any()


@pytest.mark.parametrize("to", ["zh", "fr"])
def test_what_needs_no_restriction_is_as_it_was(translator, to: str) -> None:
    for beams in (1, 4):
        ours = rank_translations(translator, PLAIN, to=to, beams=beams)
        free = rank_translations(translator, PLAIN, to=to, beams=beams, restricted=False)
        assert ours == free  # tokens and scores, to the bit


@pytest.mark.parametrize("to", ["zh", "fr"])
def test_what_cannot_be_read_is_copied_once(translator, to: str) -> None:
    texts = [text for text, _ in COPIED]
    together = rank_translations(translator, texts, to=to, n_best=2)
    for (text, spans), ranked in zip(COPIED, together, strict=True):
        for best in ranked:
            assert list(best.copied) == spans
            assert [best.text.count(span) for span in spans] == [1] * len(spans), (text, best.text)
        alone = rank_translations(translator, [text], to=to, n_best=2)[0]
        assert [each.text for each in alone] == [each.text for each in ranked]


def test_spans_go_where_their_neighbours_go(translator) -> None:
    text = "I saw three spiders 🕷️ in the kitchen."
    assert gf.translate(translator, text, to="zh").endswith("蜘蛛🕷️。")  # the kitchen came first
    assert "araignées 🕷️ dans" in gf.translate(translator, text, to="fr")
    assert gf.translate(translator, "Привет, my friend!", to="fr").startswith("Привет, ")
    assert gf.translate(translator, "See you tomorrow 👋", to="zh").endswith("👋")


def test_quotes_and_accents_are_read_as_in_training(translator) -> None:
    for to in ("zh", "fr"):
        plain = gf.translate(translator, "I don't know.", to=to)
        assert gf.translate(translator, "I don’t know.", to=to) == plain


def test_watched_is_as_unwatched(translator) -> None:
    text = "I saw three spiders 🕷️ in the kitchen."
    plain = rank_translations(translator, [text], to="zh")
    with gf.watch(translator) as trace:
        watched = rank_translations(translator, [text], to="zh")
    assert watched[0][0].tokens == plain[0][0].tokens and watched[0][0].text == plain[0][0].text
    read = list(read_source(translator, text, "zh").tokens)
    assert len(trace.runs) == 1  # finding the place of the spider is no run
    assert trace.run.texts["source"].tokens[0].tolist() == read


def test_every_way_to_decode_writes_the_same(translator) -> None:
    texts = ["The spider is eating a fly.", "I can't find the broom."]
    sources = [read_source(translator, text, "zh") for text in texts]
    special = translator.special
    options = {
        "source": [source.tokens for source in sources],
        "forbidden": torch.stack([source.forbidden for source in sources]),
        "stop": special.end,
        "never": special.never,
        "max_new_tokens": 30,
    }
    prompts = [[special.begin]] * 2
    greedy = generate_tokens(translator, prompts, **options)
    searched = beam_search(translator, prompts, beams=1, **options)
    assert greedy == [list(best.tokens) for (best,) in searched]
    assert greedy == generate_tokens(translator, prompts, fixed=True, **options)
    with gf.watch(translator):
        assert greedy == generate_tokens(translator, prompts, **options)
    sampling = Sampling(temperature=2.0)
    for step in stream_tokens(translator, prompts, sampling=sampling, seed=1, **options):
        assert not options["forbidden"].gather(1, step.tokens[:, None]).any()
        expected = exclude_tokens(step.logits, special.never, options["forbidden"])
        assert torch.equal(step.allowed, expected)


def test_a_mask_has_a_row_for_each_prompt(translator) -> None:
    with pytest.raises(ShapeError, match=r"here \(1, 8000\); got \(2, 8000\)"):
        beam_search(
            translator,
            [[1]],
            source=[[5]],
            max_new_tokens=2,
            beams=2,
            forbidden=torch.zeros(2, 8000, dtype=torch.bool),
        )


def test_a_copy_of_the_model_keeps_its_coverage(translator, tmp_path) -> None:
    gf.save(translator, tmp_path / "copy")
    copy = gf.load(tmp_path / "copy")
    assert copy.tokenizer.coverage == translator.tokenizer.coverage is not None
    text = "The spider is eating a fly."
    assert gf.translate(copy, text, to="zh") == gf.translate(translator, text, to="zh")
