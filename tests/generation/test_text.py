"""Text in, text out: decoders continue it, encoder-decoders translate it, encoders read it."""

import dataclasses
import random

import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

import glassformer as gf
from closeness import assert_close
from glassformer.errors import CheckpointError, ConfigError, ShapeError
from glassformer.generation import Sampling, generate_tokens, rank_translations, translation
from glassformer.generation.text_stream import StopFilter, TextStream
from glassformer.models import EncoderDecoder, Output
from glassformer.models.baselines import RecurrentConfig, RecurrentLanguage
from glassformer.text import SpecialTokens
from glassformer.text.tokenizer import JsonTokenizer
from letter_models import WORDS, letters
from letter_models import letter_model as model


def test_text_is_the_text_of_the_tokens() -> None:
    decoder = model("decoder")
    prompt = decoder.tokenizer.encode("hello there")
    (tokens,) = generate_tokens(decoder, [prompt], max_new_tokens=20, stop=(2,), never=(0, 1, 3))
    text = gf.generate(decoder, "hello there", max_new_tokens=20)
    assert len(text) > 5
    assert text == decoder.tokenizer.decode(tokens)
    assert "".join(gf.stream(decoder, "hello there", max_new_tokens=20)) == text
    assert gf.generate(decoder, "hello there") == gf.generate(
        decoder, "hello there", max_new_tokens=29
    )


@pytest.mark.parametrize("options", [{}, {"stop": "r"}, {"repetition_penalty": 1.5}])
def test_a_list_in_gives_a_list_out(options: dict) -> None:
    decoder, texts = model("decoder"), ["hello there", "you", "abc"]
    alone = [gf.generate(decoder, text, max_new_tokens=12, **options) for text in texts]
    assert gf.generate(decoder, texts, max_new_tokens=12, **options) == alone
    pieces = list(gf.stream(decoder, texts, max_new_tokens=12, **options))
    assert ["".join(column) for column in zip(*pieces, strict=True)] == alone
    assert len(set(map(len, alone))) > 1 or "stop" not in options
    assert gf.generate(decoder, texts[:1], max_new_tokens=12, **options) == alone[:1]


def test_every_text_of_a_list_has_its_own_translation() -> None:
    both, texts = model("encoder_decoder"), ["hello there", "you", "abc"]
    alone = [gf.translate(both, text, max_new_tokens=8) for text in texts]
    assert gf.translate(both, texts, max_new_tokens=8) == alone
    assert len(set(alone)) > 1


def test_every_text_of_a_list_has_its_own_gaps() -> None:
    encoder, texts = model("encoder"), ["a[MASK]c", "[MASK]b[MASK]"]
    assert gf.fill(encoder, texts) == [gf.fill(encoder, text) for text in texts]


def test_one_text_gives_one_vector() -> None:
    encoder = model("encoder")
    assert gf.embed(encoder, "abc").shape == (16,)
    assert torch.equal(gf.embed(encoder, ["abc"])[0], gf.embed(encoder, "abc"))


def test_sampling_settings_are_keywords() -> None:
    decoder = model("decoder")
    sampling = Sampling(temperature=2, top_k=9, top_p=0.9, min_p=0.01, repetition_penalty=1.1)
    settings = dataclasses.asdict(sampling)
    (tokens,) = generate_tokens(
        decoder,
        [decoder.tokenizer.encode("hello")],
        max_new_tokens=20,
        sampling=sampling,
        seed=3,
        stop=(2,),
        never=(0, 1, 3),
    )
    text = gf.generate(decoder, "hello", max_new_tokens=20, seed=3, **settings)
    assert text == decoder.tokenizer.decode(tokens) != gf.generate(decoder, "hello")


def test_an_lstm_continues_texts_of_unequal_length() -> None:
    config = RecurrentConfig(family="lstm", vocab_size=len(WORDS), dim=8, n_layers=1)
    lstm = RecurrentLanguage(config).eval()
    lstm.tokenizer, lstm.special = letters(), SpecialTokens(never=(0, 1, 2, 3))
    texts = ["hello there", "you"]
    alone = [gf.generate(lstm, text, max_new_tokens=5) for text in texts]
    assert gf.generate(lstm, texts, max_new_tokens=5) == alone and all(map(len, alone))


@pytest.mark.plain
@pytest.mark.parametrize("call", [gf.generate, gf.stream, gf.translate, gf.fill, gf.embed])
@pytest.mark.parametrize(
    ("text", "got"),
    [
        (None, "got None"),
        (7, "got a value of type int"),
        (("a", "b"), "got a value of type tuple"),
        (["a", None], "got a list with None"),
        (["a", ["b"]], "got a list with a value of type list"),
    ],
)
def test_what_is_no_text_is_refused(call, text, got: str) -> None:
    families = {gf.translate: "encoder_decoder", gf.fill: "encoder", gf.embed: "encoder"}
    with pytest.raises(ConfigError, match=f"a string or a list of strings; {got}"):
        call(model(families.get(call, "decoder")), text)


def test_what_must_never_be_written_is_not() -> None:
    decoder = model("decoder")
    decoder.special = SpecialTokens(never=tuple(range(5, len(WORDS))))
    assert set(gf.generate(decoder, "x", max_new_tokens=9)) <= {"a"}


def test_stop_strings_end_a_text_before_them() -> None:
    decoder = model("decoder")
    whole = gf.generate(decoder, "hello", max_new_tokens=20)
    for end in (whole[3:5], whole[6:9]):
        assert (
            gf.generate(decoder, "hello", max_new_tokens=20, stop=[end])
            == whole[: whole.index(end)]
        )
    assert gf.generate(decoder, "hello", max_new_tokens=20, stop=["THE END"]) == whole


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
    stops = StopFilter(stop)
    assert "".join([*map(stops.add, pieces), stops.finish()]) == text


def test_no_part_of_a_stop_string_is_passed_on() -> None:
    stops = StopFilter(["###"])
    passed = [stops.add(piece) for piece in ["a", "#", "#", "b", "#", "#", "#", "c"]]
    assert passed == ["a", "", "", "##b", "", "", "", ""]
    assert stops.is_stopped and stops.finish() == ""


def test_a_character_waits_for_all_its_bytes() -> None:
    backend = Backend(
        models.BPE({c: i for i, c in enumerate(pre_tokenizers.ByteLevel.alphabet())}, [])
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    bytewise = JsonTokenizer(backend)
    tokens = bytewise.encode("我 爱🙂")
    assert len(tokens) == 11
    stream = TextStream(bytewise)
    assert [piece for piece in map(stream.add, tokens) if piece] == ["我", " ", "爱", "🙂"]
    assert stream.finish() == ""
    stream = TextStream(bytewise)
    assert [piece for piece in map(stream.add, tokens[:-1]) if piece] == ["我", " ", "爱"]
    assert stream.finish() == "\N{REPLACEMENT CHARACTER}"


def test_chat_asks_in_the_models_form() -> None:
    decoder = model("decoder")
    assert gf.generate(decoder, "why", chat=True, max_new_tokens=9) == gf.generate(
        decoder, "q why a ", max_new_tokens=9
    )


def test_an_empty_prompt_begins_with_the_token_for_it() -> None:
    decoder = model("decoder")
    (tokens,) = generate_tokens(decoder, [[1]], max_new_tokens=9, stop=(2,), never=(0, 1, 3))
    assert gf.generate(decoder, "", max_new_tokens=9) == decoder.tokenizer.decode(tokens)


def stream_whole(tokenizer, prompt: list[int], tokens: list[int]) -> str:
    """All tokens are decoded anew for each one, and what was not there yet is new."""
    known, text, told = list(prompt), tokenizer.decode(prompt), []
    for i, token in enumerate(tokens):
        known.append(token)
        found = tokenizer.decode(known)
        is_last = i + 1 == len(tokens)
        if (is_last or not found.endswith("\N{REPLACEMENT CHARACTER}")) and found.startswith(text):
            told.append(found[len(text) :])
            text = found
    return "".join(told)


def make_metaspace():
    """As Llama 2 has it: a space before words is a letter, what is unknown is bytes."""
    pieces = ["<unk>", *(f"<0x{i:02X}>" for i in range(256)), "▁a", "▁dog", "s", "▁", "ran", "."]
    backend = Backend(models.BPE({p: i for i, p in enumerate(pieces)}, [], byte_fallback=True))
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    backend.decoder = decoders.Sequence([*parts, decoders.Strip(" ", 1, 0)])
    return JsonTokenizer(backend)


def make_word_pieces():
    """As BERT has it: `##` joins, and spaces before punctuation are taken away."""
    pieces = ["[UNK]", "do", "##n", "n", "'", "t", "not", "dog", "##s", ".", ",", "a", "##b"]
    words = models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]")
    backend = Backend(words)
    backend.decoder = decoders.WordPiece()
    return JsonTokenizer(backend)


@pytest.mark.parametrize("kind", ["writer", "storyteller", "reader", "metaspace", "word pieces"])
def test_a_long_text_is_streamed_as_if_it_were_decoded_whole(kind: str) -> None:
    makers = {"metaspace": make_metaspace, "word pieces": make_word_pieces}
    tokenizer = makers[kind]() if kind in makers else gf.load(kind).tokenizer
    rng = random.Random(0)
    size = tokenizer.vocab_size
    for n_prompt in (0, 3, 40):
        for n in (1, 17, 200):
            prompt, tokens = ([rng.randrange(size) for _ in range(k)] for k in (n_prompt, n))
            stream = TextStream(tokenizer, prompt=prompt)
            pieces = [stream.add(token) for token in tokens]
            assert "".join([*pieces, stream.finish()]) == stream_whole(tokenizer, prompt, tokens)


def test_a_token_takes_as_long_after_a_long_text(monkeypatch) -> None:
    tokenizer = gf.load("writer").tokenizer
    lengths, decode = [], type(tokenizer).decode

    def note(self, tokens):
        lengths.append(len(tokens))
        return decode(self, tokens)

    monkeypatch.setattr(type(tokenizer), "decode", note)
    words = tokenizer.encode("the cat sat on the mat and the dog ran away from the house")
    stream = TextStream(tokenizer, prompt=words * 100)
    for token in words * 50:
        assert stream.add(token)
    assert max(lengths) <= 50


def test_an_interrupted_stream_leaves_the_model_as_it_was() -> None:
    decoder = model("decoder")
    before = gf.generate(decoder, "hello", max_new_tokens=12)
    stream = gf.stream(decoder, "hello", max_new_tokens=12)
    assert next(stream) == before[0]
    with pytest.raises(KeyboardInterrupt):
        stream.throw(KeyboardInterrupt)
    assert gf.generate(decoder, "hello", max_new_tokens=12) == before


def test_translations_are_those_of_beam_search() -> None:
    both = model("encoder_decoder")
    text = gf.translate(both, "hello there", max_new_tokens=12)
    assert text and set(text) <= set(WORDS[4:])
    first, second = rank_translations(both, ["hello there", "abc"], n_best=2, max_new_tokens=12)
    assert first[0].text == text and first[0].score >= first[1].score
    assert (
        rank_translations(both, ["abc"], n_best=2, max_new_tokens=12)[0][0].text == second[0].text
    )


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
    alone = torch.stack([gf.embed(encoder, each) for each in several])
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
        (
            lambda: gf.embed(model("encoder"), []),
            ConfigError,
            r"At least one text.*got an empty list",
        ),
        (lambda: gf.embed(model("encoder"), ["a", ""]), ConfigError, r"at least one token"),
        (lambda: gf.embed(model("encoder"), ["a" * 41]), ShapeError, r"max_len=40 tokens; got 41"),
        (lambda: gf.translate(model("encoder_decoder"), ""), ConfigError, r"got an empty one"),
        (
            lambda: gf.generate(model("decoder"), "a" * 40),
            ShapeError,
            r"shorter than max_len=40.*got 40",
        ),
        (
            lambda: gf.generate(model("decoder"), "a", max_new_tokens=40),
            ShapeError,
            r"got 1 \+ 40. Generate at most 39 new tokens",
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
    with pytest.raises(ConfigError, match=r"needs a start token; this model has none"):
        gf.translate(both, "a")
    with pytest.raises(ConfigError, match=r"needs a mask token; this model has none"):
        gf.fill(encoder, "a[MASK]")
    decoder.tokenizer = None
    with pytest.raises(CheckpointError, match=r"needs a tokenizer to read text; this one has none"):
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
    asked = gf.translate(translator, "abc", to="fr", max_new_tokens=6)
    assert asked == gf.translate(translator, "<fr> abc", max_new_tokens=6)
    assert tokenizer.encode("<fr> abc")[0] == tokenizer.id_of("<fr>")


@pytest.mark.plain
def test_languages_that_a_translator_does_not_write() -> None:
    with pytest.raises(ConfigError, match=r"into zh and fr; no target language was given"):
        gf.translate(two_languages(), "abc")
    with pytest.raises(ConfigError, match=r"into zh and fr; got 'de'. Choose one"):
        gf.translate(two_languages(), "abc", to="de")
    with pytest.raises(ConfigError, match=r"into one language only; got 'fr'. Leave it out"):
        gf.translate(model("encoder_decoder"), "abc", to="fr")
    with pytest.raises(ConfigError, match="at least one token; got an empty one"):
        gf.translate(two_languages(), "", to="fr")


def test_many_texts_go_in_batches_of_like_length(monkeypatch) -> None:
    both = model("encoder_decoder")
    texts = ["hello there", "a", "abc abc", "b", "hello", "there abc"]
    alone = [
        rank_translations(both, [text], beams=2, max_new_tokens=7)[0][0].text for text in texts
    ]
    sizes = []

    def counted(model, prompts, **options):
        sizes.append(len(prompts))
        return beam_search(model, prompts, **options)

    beam_search = translation.beam_search
    monkeypatch.setattr(translation, "beam_search", counted)
    monkeypatch.setitem(translation.BATCH_TOKENS, "cpu", 24)
    together = rank_translations(both, texts, beams=2, max_new_tokens=7)
    assert [best[0].text for best in together] == alone
    assert len(sizes) > 1 and max(sizes) > 1 and sum(sizes) == len(texts)
