"""Text in, text out: decoders continue it, encoder-decoders translate it, encoders read it."""

import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

import glassformer as gf
from closeness import assert_close
from glassformer.errors import CheckpointError, ConfigError, ShapeError
from glassformer.generation import generate_tokens, translation, translations
from glassformer.generation.continuation import texts, until
from glassformer.models import EncoderDecoder, Output
from glassformer.text import SpecialTokens
from glassformer.text.tokenizer import JsonTokenizer
from letter_models import WORDS
from letter_models import letter_model as model


def test_text_is_the_text_of_the_tokens() -> None:
    decoder = model("decoder")
    prompt = decoder.tokenizer.encode("hello there")
    (tokens,) = generate_tokens(decoder, [prompt], max_new=20, stop=(2,), never=(0, 1, 3))
    text = gf.generate(decoder, "hello there", max_new=20)
    assert len(text) > 5
    assert text == decoder.tokenizer.decode(tokens)
    assert "".join(gf.stream(decoder, "hello there", max_new=20)) == text
    assert gf.generate(decoder, "hello there") == gf.generate(decoder, "hello there", max_new=29)


def test_what_must_never_be_written_is_not() -> None:
    decoder = model("decoder")
    decoder.special = SpecialTokens(never=tuple(range(5, len(WORDS))))
    assert set(gf.generate(decoder, "x", max_new=9)) <= {"a"}


def test_stop_strings_end_a_text_before_them() -> None:
    decoder = model("decoder")
    whole = gf.generate(decoder, "hello", max_new=20)
    for end in (whole[3:5], whole[6:9]):
        assert gf.generate(decoder, "hello", max_new=20, stop=[end]) == whole[: whole.index(end)]
    assert gf.generate(decoder, "hello", max_new=20, stop=["THE END"]) == whole


@pytest.mark.parametrize(
    ("pieces", "stop", "text"),
    [
        (["a", "b", "c"], [], "abc"),
        (["a", "b", "c"], ["c"], "ab"),
        (["ab", "ab", "ac"], ["abac"], "ab"),
        (["x", "<", "/", "s", "y"], ["</s>"], "x</sy"),
        (["x", "<", "/"], ["</s>"], "x</"),
        (["one two"], ["two", "one"], ""),
        (["aaa"], ["aa"], ""),
    ],
)
def test_a_stop_string_may_lie_across_pieces(pieces: list, stop: list, text: str) -> None:
    assert "".join(until(iter(pieces), stop)) == text


def test_nothing_of_a_stop_string_is_told_before_it_is_certain() -> None:
    told = []
    for piece in until(iter(["a", "#", "#", "b", "#", "#", "#", "c"]), ["###"]):
        told.append(piece)
    assert told == ["a", "##b", ""] or told == ["a", "##b"]


def test_a_character_waits_for_all_its_bytes() -> None:
    backend = Backend(
        models.BPE({c: i for i, c in enumerate(pre_tokenizers.ByteLevel.alphabet())}, [])
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    bytewise = JsonTokenizer(backend)
    tokens = bytewise.encode("我 爱🙂")
    assert len(tokens) == 11
    assert list(texts(bytewise, [], iter(tokens))) == ["我", " ", "爱", "🙂"]
    assert list(texts(bytewise, [], iter(tokens[:-1])))[:3] == ["我", " ", "爱"]


def test_chat_asks_in_the_models_form() -> None:
    decoder = model("decoder")
    assert gf.generate(decoder, "why", chat=True, max_new=9) == gf.generate(
        decoder, "q why a ", max_new=9
    )


def test_an_empty_prompt_begins_with_the_token_for_it() -> None:
    decoder = model("decoder")
    (tokens,) = generate_tokens(decoder, [[1]], max_new=9, stop=(2,), never=(0, 1, 3))
    assert gf.generate(decoder, "", max_new=9) == decoder.tokenizer.decode(tokens)


def test_an_interrupted_stream_leaves_the_model_as_it_was() -> None:
    decoder = model("decoder")
    before = gf.generate(decoder, "hello", max_new=12)
    stream = gf.stream(decoder, "hello", max_new=12)
    assert next(stream) == before[0]
    with pytest.raises(KeyboardInterrupt):
        stream.throw(KeyboardInterrupt)
    assert gf.generate(decoder, "hello", max_new=12) == before


def test_translations_are_those_of_beam_search() -> None:
    both = model("encoder_decoder")
    text = gf.translate(both, "hello there", max_new=12)
    assert text and set(text) <= set(WORDS[4:])
    first, second = translations(both, ["hello there", "abc"], n_best=2, max_new=12)
    assert first[0].text == text and first[0].score >= first[1].score
    assert translations(both, ["abc"], n_best=2, max_new=12)[0][0].text == second[0].text


def test_gaps_are_filled_with_the_likeliest() -> None:
    encoder = model("encoder")
    gaps = gf.fill(encoder, "a[MASK]c[MASK]", k=3)
    tokens = torch.tensor([encoder.tokenizer.encode("a[MASK]c[MASK]")])
    assert tokens.tolist() == [[4, 3, 6, 3]]
    with torch.no_grad():
        probabilities = encoder.fill(encoder(tokens))[0].softmax(-1)
    for place, guesses in zip((1, 3), gaps, strict=True):
        best = probabilities[place].topk(3)
        assert [g.token for g in guesses] == best.indices.tolist()
        assert [g.probability for g in guesses] == pytest.approx(best.values.tolist())
        assert [g.piece for g in guesses] == [WORDS[t].strip() or WORDS[t] for t in best.indices]


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_embeddings_do_not_depend_on_their_batch(pooling: str) -> None:
    encoder = model("encoder", output=Output(pooling=pooling))
    several = ["a", "hello there", "abc", "zz top", "q"]
    together = gf.embed(encoder, several)
    alone = torch.cat([gf.embed(encoder, [each]) for each in several])
    assert_close(together, alone, 1e-5)
    assert_close(together.norm(dim=-1), torch.ones(5), 1e-5)
    from glassformer.generation.encoder_tasks import embed

    assert_close(embed(encoder, several, batch=2), together, 1e-5)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: gf.generate(model("encoder"), "a"), ConfigError, r"Only a decoder.*got Encoder"),
        (
            lambda: gf.translate(model("decoder"), "a"),
            ConfigError,
            r"Only an encoder-decoder.*Decoder",
        ),
        (
            lambda: gf.fill(model("decoder"), "a"),
            ConfigError,
            r"Only an encoder fills.*got Decoder",
        ),
        (lambda: gf.embed(model("decoder"), ["a"]), ConfigError, r"Only an encoder fills"),
        (lambda: gf.fill(model("encoder"), "abc"), ConfigError, r"must have a gap.*got 'abc'"),
        (lambda: gf.fill(model("encoder"), "[MASK]", k=0), ConfigError, r"k must be.*got k=0"),
        (lambda: gf.embed(model("encoder"), []), ConfigError, r"at least one token; got an empty"),
        (lambda: gf.embed(model("encoder"), ["a", ""]), ConfigError, r"at least one token"),
        (lambda: gf.embed(model("encoder"), ["a" * 41]), ShapeError, r"max_len=40 tokens; got 41"),
        (lambda: gf.translate(model("encoder_decoder"), ""), ConfigError, r"got an empty one"),
        (
            lambda: gf.generate(model("decoder"), "a" * 40),
            ShapeError,
            r"shorter than max_len=40.*got 40",
        ),
        (
            lambda: gf.generate(model("decoder"), "a", max_new=40),
            ShapeError,
            r"got 1 \+ 40. Use max_new=39",
        ),
        (
            lambda: gf.generate(model("decoder"), "a", stop=[""]),
            ConfigError,
            r"at least one character",
        ),
    ],
)
def test_refusals(call, kind: type, sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        call()


@pytest.mark.plain
def test_models_that_lack_something() -> None:
    decoder, both, encoder = model("decoder"), model("encoder_decoder"), model("encoder")
    decoder.special = both.special = encoder.special = SpecialTokens()
    with pytest.raises(ConfigError, match=r"at least one token; got an empty text"):
        gf.generate(decoder, "")
    with pytest.raises(ConfigError, match=r"must begin with a token; this model names none"):
        gf.translate(both, "a")
    with pytest.raises(ConfigError, match=r"Only a model with a mask token fills gaps"):
        gf.fill(encoder, "a[MASK]")
    decoder.tokenizer = None
    with pytest.raises(CheckpointError, match=r"must have a tokenizer; this one has none"):
        gf.generate(decoder, "a")
    decoder = model("decoder")
    decoder.special = SpecialTokens(never=(99,))
    with pytest.raises(ConfigError, match=r"never must hold token ids from 0 to 30; got \(99,\)"):
        gf.generate(decoder, "a")


def two_languages() -> EncoderDecoder:
    translator = model("encoder_decoder", vocab_size=len(WORDS) + 2)
    translator.tokenizer.backend.add_special_tokens(["<zh>", "<fr>"])
    return translator


def test_a_translator_of_several_languages_is_asked_for_one() -> None:
    translator = two_languages()
    tokenizer = translator.tokenizer
    assert tokenizer is not None and tokenizer.languages == ("zh", "fr")
    asked = gf.translate(translator, "abc", to="fr", max_new=6)
    assert asked == gf.translate(translator, "<fr> abc", max_new=6)
    assert tokenizer.encode("<fr> abc")[0] == tokenizer.id_of("<fr>")


@pytest.mark.plain
def test_languages_that_a_translator_does_not_write() -> None:
    with pytest.raises(ConfigError, match=r"writes zh and fr; none was named. Use to='zh'"):
        gf.translate(two_languages(), "abc")
    with pytest.raises(ConfigError, match=r"writes zh and fr; got to='de'. Use to='zh'"):
        gf.translate(two_languages(), "abc", to="de")
    with pytest.raises(ConfigError, match=r"writes one language; got to='fr'. Leave it out"):
        gf.translate(model("encoder_decoder"), "abc", to="fr")
    with pytest.raises(ConfigError, match="at least one token; got an empty one"):
        gf.translate(two_languages(), "", to="fr")


def test_many_texts_go_in_batches_of_like_length(monkeypatch) -> None:
    both = model("encoder_decoder")
    texts = ["hello there", "a", "abc abc", "b", "hello", "there abc"]
    alone = [translations(both, [text], beams=2, max_new=7)[0][0].text for text in texts]
    sizes = []

    def counted(model, prompts, **options):
        sizes.append(len(prompts))
        return beam_search(model, prompts, **options)

    beam_search = translation.beam_search
    monkeypatch.setattr(translation, "beam_search", counted)
    monkeypatch.setitem(translation.TOGETHER, "cpu", 24)
    together = translations(both, texts, beams=2, max_new=7)
    assert [best[0].text for best in together] == alone
    assert len(sizes) > 1 and max(sizes) > 1 and sum(sizes) == len(texts)
