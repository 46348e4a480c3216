"""Drafts change how many passes a text takes, never the text."""

import random
import warnings

import pytest
import torch

import glassformer as gf
from closeness import assert_same
from generation.step_models import CHANGES, V, make
from glassformer.errors import ConfigError
from glassformer.generation import Sampling, drafts, generate_tokens, native_stack
from glassformer.generation.direct import DirectSession
from glassformer.generation.drafts import Draft, LookupDraft, ModelDraft
from glassformer.generation.loop import stream_chosen
from glassformer.generation.native_step import MOST_ROWS
from glassformer.models import Config, Decoder, build

_library = native_stack.find_stack_library()
pytestmark = pytest.mark.skipif(
    _library is None or not _library.is_tuned(), reason="needs a C compiler, and NEON or AVX2"
)
DECODERS = [name for name in CHANGES if name != "translator"]
PROMPT = [3, 1, 4, 1, 5]
SAMPLINGS = {
    "greedy": {},
    "drawn": {"sampling": Sampling(temperature=0.9, top_p=0.9), "seed": 3},
    "drawn from all": {"sampling": Sampling(temperature=1.7), "seed": 8},
    "penalty": {"sampling": Sampling(temperature=0, repetition_penalty=1.4)},
}


class Oracle(Draft):
    """Knows the text, and errs where it is told to."""

    def __init__(self, text: list[int], wrong: float = 0.0) -> None:
        super().__init__()
        self.text, self.wrong = text, wrong
        self.random = random.Random(0)

    def guess(self, text, most):
        known = self.text[len(text) : len(text) + most]
        return [self.random.randrange(V) if self.random.random() < self.wrong else t for t in known]


class Nonsense(Draft):
    """Guesses more tokens than it may, and some that do not exist."""

    def guess(self, text, most):
        return [len(text) % V, -1, 10**12, *range(most), V]


def make_drafts(text: list[int]) -> list[Draft]:
    known = [Oracle(text), Oracle(text, 0.3), Oracle(text, 1.0)]
    models = [ModelDraft(make("learned", torch.float32)), ModelDraft(make("rotary", torch.float32))]
    return [LookupDraft(), Nonsense(), *known, *models]


@pytest.fixture(autouse=True)
def draft_models_are_cheap(monkeypatch) -> None:
    """So that they guess, though they are as large as the model."""
    monkeypatch.setattr(drafts, "_find_price", lambda *_: 0.0)


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("is_int8", [False, True])
@pytest.mark.parametrize("most", [1, 1 << 30], ids=["panels", "rows"])
def test_logits_read_ahead_have_the_same_bits(name, is_int8, most, monkeypatch) -> None:
    monkeypatch.setattr(native_stack, "_MANY", most)
    model = make(name, torch.float32)
    model = gf.quantize(model, "int8") if is_int8 else model
    tokens = torch.randint(V, (24,), generator=torch.Generator().manual_seed(1)).tolist()
    alone, ahead = (
        DirectSession(model, [PROMPT], source=None, max_new_tokens=40) for _ in range(2)
    )
    with torch.no_grad():
        expected = []
        for token in tokens:
            expected.append(alone.next_logits())
            alone.append(torch.tensor([token]))
        assert_same(ahead.next_logits(), expected[0])
        for n in (1, 2, 3, 4, 6, 7, 12, 20):
            found = ahead.read_ahead(len(PROMPT), tokens[:n])
            assert_same(found, torch.cat(expected[1 : n + 1]))


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("way", SAMPLINGS)
def test_every_draft_leaves_the_text_as_it_is(name: str, way: str) -> None:
    model = make(name, torch.float32)
    options = {"max_new_tokens": 60, "never": [7], **SAMPLINGS[way]}
    [written] = generate_tokens(model, [PROMPT], **options)
    assert len(written) == 60
    for draft in make_drafts([*PROMPT, *written]):
        assert generate_tokens(model, [PROMPT], draft=draft, **options) == [written]
        assert draft.n_passes + draft.n_held == 60


def test_int8_weights() -> None:
    model = gf.quantize(make("rotary", torch.float32), "int8")
    [written] = generate_tokens(model, [PROMPT], max_new_tokens=60)
    for draft in make_drafts([*PROMPT, *written]):
        assert generate_tokens(model, [PROMPT], max_new_tokens=60, draft=draft) == [written]


@pytest.mark.parametrize("way", SAMPLINGS)
def test_stop_tokens_and_masks(way: str) -> None:
    model = make("rotary", torch.float32)
    forbidden = torch.zeros(1, V, dtype=torch.bool)
    forbidden[0, ::3] = True
    options = {"max_new_tokens": 40, "forbidden": forbidden, **SAMPLINGS[way]}
    [whole] = generate_tokens(model, [PROMPT], **options)
    for stop in {whole[0], whole[5], whole[17], whole[-1]}:
        [written] = generate_tokens(model, [PROMPT], stop=[stop], **options)
        assert written == whole[: whole.index(stop)]
        for draft in make_drafts([*PROMPT, *whole]):
            assert generate_tokens(model, [PROMPT], stop=[stop], draft=draft, **options) == [
                written
            ]
        steps = list(stream_chosen(model, [PROMPT], stop=[stop], draft=Oracle([]), **options))
        assert [done for _, [done] in steps] == [False] * len(written) + [True]


@pytest.mark.parametrize("n", [1, 2, 12, 13, 25])
def test_right_guesses_take_few_passes(n: int) -> None:
    model = make("learned", torch.float32)
    [written] = generate_tokens(model, [PROMPT], max_new_tokens=n)
    draft = Oracle([*PROMPT, *written])
    assert generate_tokens(model, [PROMPT], max_new_tokens=n, draft=draft) == [written]
    assert draft.n_passes == 1 + -(-(n - 1) // 12)  # the prompt's, and one for 12 tokens each
    assert draft.n_held == draft.n_guesses == n - draft.n_passes


def test_a_text_that_repeats_itself_is_looked_up() -> None:
    model = make("no positions, scale", torch.float32)
    prompt = [1, 2, 3, 4, 5, 6, 7, 8] * 4
    [written] = generate_tokens(model, [prompt], max_new_tokens=100)
    draft = LookupDraft()
    assert generate_tokens(model, [prompt], max_new_tokens=100, draft=draft) == [written]
    assert draft.n_passes < 60 and draft.n_held > 40


def test_the_last_pass_does_not_read_past_the_end() -> None:
    model = make("learned", torch.float32)
    n = model.config.max_len - len(PROMPT)
    [written] = generate_tokens(model, [PROMPT], max_new_tokens=n)
    for draft in make_drafts([*PROMPT, *written, *range(9)]):
        assert generate_tokens(model, [PROMPT], max_new_tokens=n, draft=draft) == [written]


def test_a_long_prompt_and_a_draft_that_was_silent_for_long() -> None:
    sizes = {"family": "decoder", "vocab_size": V, "dim": 16, "n_layers": 1, "n_heads": 2}
    torch.manual_seed(0)
    model, small = (build(Config(**sizes, max_len=n)).eval() for n in (1000, 900))
    prompt = [i % V for i in range(MOST_ROWS + 50)]
    [written] = generate_tokens(model, [prompt], max_new_tokens=650)
    draft = ModelDraft(small)
    silent = range(len(prompt) + 20, len(prompt) + 20 + MOST_ROWS + 9)
    ask = draft.guess
    draft.guess = lambda text, most: [] if len(text) in silent else ask(text, most)
    assert generate_tokens(model, [prompt], max_new_tokens=650, draft=draft) == [written]
    assert draft.n_guesses > 0


def test_pace_follows_experience_and_recovers() -> None:
    pace = drafts.Pace()
    for _ in range(20):
        pace.learn(3, 0)
    assert pace.count(11) == 0
    assert any(pace.count(11) for _ in range(60))
    for _ in range(20):
        pace.learn(3, 3)
    assert pace.count(11) == 11
    assert drafts.Pace(price=1.0, held=0.7).count(11) == 0  # as dear as the model itself


def test_who_watches_gets_the_same_text() -> None:
    model = make("rotary", torch.float32)
    [written] = generate_tokens(model, [PROMPT], max_new_tokens=20)
    seen = []
    handle = model.decoder.register_forward_hook(lambda *_: seen.append(1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert generate_tokens(model, [PROMPT], max_new_tokens=20, draft="lookup") == [written]
        assert not caught
        assert generate_tokens(model, [PROMPT], max_new_tokens=20, draft=model) == [written]
    assert len(seen) == 40
    assert "draft is not used" in str(caught[0].message)
    handle.remove()
    small = make("learned", torch.float64)
    with pytest.warns(UserWarning, match="The draft model is not used: weights are not float32"):
        assert generate_tokens(model, [PROMPT], max_new_tokens=20, draft=small) == [written]


def test_texts_are_the_same_with_any_draft() -> None:
    writer = gf.load("writer")
    assert isinstance(writer, Decoder)
    texts = ["And it came to pass", "The king said unto the king"]
    options = {"max_new_tokens": 60}
    plain = [gf.generate(writer, text, draft=None, **options) for text in texts]
    assert [gf.generate(writer, text, **options) for text in texts] == plain
    assert gf.generate(writer, texts, draft=writer, **options) == plain
    assert gf.generate(writer, texts, draft="lookup", **options) == plain  # one by one
    drawn = {"temperature": 0.8, "top_p": 0.95, "seed": 2, **options}
    assert gf.generate(writer, texts[0], **drawn) == gf.generate(
        writer, texts[0], draft=None, **drawn
    )
    draft = LookupDraft()
    assert "".join(gf.stream(writer, texts[0], draft=draft, **options)) == plain[0]
    assert draft.n_passes > 0 and draft.n_held <= draft.n_guesses


def test_bad_drafts_are_refused() -> None:
    model, translator = make("learned", torch.float32), make("translator", torch.float32)
    with pytest.raises(ConfigError, match=r"or None; got 'ngram'\. A model is given itself"):
        generate_tokens(model, [PROMPT], max_new_tokens=2, draft="ngram")
    with pytest.raises(ConfigError, match="one text at a time; got 2 prompts"):
        generate_tokens(model, [PROMPT, PROMPT], max_new_tokens=2, draft="lookup")
    with pytest.raises(ConfigError, match="for a decoder; got EncoderDecoder"):
        generate_tokens(translator, [PROMPT], source=[[1]], max_new_tokens=2, draft="lookup")
    sizes = {"family": "decoder", "dim": 8, "n_layers": 1, "n_heads": 2, "max_len": 16}
    with pytest.raises(ConfigError, match="which has 37 tokens; got 38"):
        other = build(Config(vocab_size=38, **sizes))
        generate_tokens(model, [PROMPT], max_new_tokens=2, draft=other)
    writer = gf.load("writer")
    like = build(Config(vocab_size=writer.config.vocab_size, **sizes)).eval()
    like.tokenizer = gf.load("storyteller").tokenizer
    with pytest.raises(ConfigError, match="must have the model's tokenizer"):
        gf.generate(writer, "And", draft=like)


def test_nan_is_named_once_it_is_reached() -> None:
    model = make("learned", torch.float32)
    [written] = generate_tokens(model, [PROMPT], max_new_tokens=12)
    with torch.no_grad():
        model.decoder.positions.weight[len(PROMPT) + 6] = torch.nan
    for draft in (None, Oracle([*PROMPT, *written])):
        tokens = []
        with pytest.raises(ConfigError, match="got NaN in row 0"):
            steps = stream_chosen(model, [PROMPT], max_new_tokens=12, draft=draft)
            for [token], _ in steps:
                tokens.append(token)
        assert tokens == written[: len(tokens)]
