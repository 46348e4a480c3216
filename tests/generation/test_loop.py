"""Generation: with a cache as without, batched as one by one, greedy and drawn."""

import pytest
import torch

from closeness import assert_close
from glassformer.errors import ConfigError, ShapeError
from glassformer.generation import Sampling, adjust, choose, generate_tokens, stream_tokens
from glassformer.models import Config, Output, Positions, build

V = 17
KINDS = ("sinusoidal", "learned", "rotary", "alibi", "relative")
kinds = pytest.mark.parametrize("kind", KINDS)


def model(family: str, kind: str, max_len: int = 32) -> torch.nn.Module:
    config = Config(
        family=family,
        vocab_size=V,
        dim=12,
        n_layers=2,
        n_heads=2,
        max_len=max_len,
        positions=Positions(kind=kind),
        output=Output(tied=False),  # a tied random model only repeats its last token
    )
    built = build(config).double().eval()
    for parameter in built.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.7)
    return built


PROMPTS = [[3, 1, 4, 1, 5], [9, 2], [6, 5, 3]]
SOURCES = [[2, 7, 1, 8], [2, 8], [1, 8, 2, 8, 4, 5]]


def without_cache(decoder, prompt: list[int], n: int, sampling: Sampling, seed: int) -> list[int]:
    """The plainest loop: the whole text anew for every token."""
    text, generator = list(prompt), torch.Generator().manual_seed(seed)
    for _ in range(n):
        logits = decoder(torch.tensor([text]))[:, -1]
        logits = adjust(logits, sampling, torch.tensor([text]))
        text.append(int(choose(logits, sampling, generator)))
    return text[len(prompt) :]


@kinds
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=0),
        Sampling(temperature=0.8, top_k=9, top_p=0.9, repetition_penalty=1.3),
    ],
)
def test_with_a_cache_as_without(kind: str, fixed: bool, sampling: Sampling) -> None:
    decoder = model("decoder", kind)
    prompt = PROMPTS[0]
    got = generate_tokens(
        decoder, [prompt], max_new_tokens=9, sampling=sampling, seed=5, fixed=fixed
    )
    with torch.no_grad():
        assert got == [without_cache(decoder, prompt, 9, sampling, 5)]


@kinds
@pytest.mark.parametrize("fixed", [False, True])
def test_unequal_prompts_as_one_by_one(kind: str, fixed: bool) -> None:
    decoder = model("decoder", kind)
    sampling = Sampling(temperature=0, repetition_penalty=1.5)
    options = {"max_new_tokens": 8, "sampling": sampling, "fixed": fixed}
    together = list(stream_tokens(decoder, PROMPTS, **options))
    for i, prompt in enumerate(PROMPTS):
        for ours, alone in zip(together, stream_tokens(decoder, [prompt], **options), strict=True):
            assert ours.tokens[i] == alone.tokens[0]
            assert_close(ours.log_probabilities[i], alone.log_probabilities[0], 1e-6)
    assert len({tuple(step.tokens.tolist()) for step in together}) > 2


@kinds
@pytest.mark.parametrize("fixed", [False, True])
def test_translation_of_unequal_sources(kind: str, fixed: bool) -> None:
    both = model("encoder_decoder", kind)
    starts = [[0], [0], [0]]
    together = generate_tokens(both, starts, source=SOURCES, max_new_tokens=7, fixed=fixed)
    alone = [generate_tokens(both, [[0]], source=[s], max_new_tokens=7)[0] for s in SOURCES]
    assert together == alone
    with torch.no_grad():
        text = [0]
        for _ in range(7):
            text.append(int(both(torch.tensor([SOURCES[0]]), torch.tensor([text]))[0, -1].argmax()))
    assert together[0] == text[1:]


def test_encoder_and_cross_keys_are_computed_once() -> None:
    both = model("encoder_decoder", "rotary")
    calls = {"encoder": 0, "kv": 0}
    both.encoder.register_forward_hook(
        lambda *_: calls.__setitem__("encoder", calls["encoder"] + 1)
    )
    both.decoder.blocks[0].cross.kv.register_forward_hook(
        lambda *_: calls.__setitem__("kv", calls["kv"] + 1)
    )
    generate_tokens(both, [[0]], source=[SOURCES[0]], max_new_tokens=6)
    assert calls == {"encoder": 1, "kv": 1}


def test_stop_tokens_end_each_sequence_by_itself() -> None:
    decoder = model("decoder", "rotary")
    free = generate_tokens(decoder, PROMPTS, max_new_tokens=10)
    stop = free[0][3]
    stopped = generate_tokens(decoder, PROMPTS, max_new_tokens=10, stop=[stop])
    for full, short in zip(free, stopped, strict=True):
        assert short == (full[: full.index(stop)] if stop in full else full)


def test_seeds() -> None:
    decoder = model("decoder", "rotary")
    sampling = Sampling(temperature=1.5)
    runs = [
        generate_tokens(decoder, PROMPTS, max_new_tokens=10, sampling=sampling, seed=seed)
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]


def test_a_step_holds_the_logits_from_which_its_token_was_chosen() -> None:
    decoder = model("decoder", "rotary")
    sampling = Sampling(temperature=0.7, top_k=5)
    written = [1, 2, 3]
    steps = stream_tokens(
        decoder, [written], max_new_tokens=4, sampling=sampling, never=[6], seed=3
    )
    generator = torch.Generator().manual_seed(3)
    for step in steps:
        with torch.no_grad():
            assert_close(step.logits, decoder(torch.tensor([written]))[:, -1], atol=1e-12)
        excluded = step.logits.clone()
        excluded[:, 6] = -torch.inf
        assert torch.equal(step.adjusted, adjust(excluded, sampling))
        assert int((step.adjusted > -torch.inf).sum()) == 5
        assert torch.equal(step.tokens, choose(step.adjusted, sampling, generator))
        written = [*written, int(step.tokens[0])]


def test_a_stream_can_be_left_and_the_model_used_again() -> None:
    decoder = model("decoder", "rotary")
    expected = generate_tokens(decoder, PROMPTS, max_new_tokens=6)
    steps = stream_tokens(decoder, PROMPTS, max_new_tokens=6)
    first = next(steps)
    assert first.tokens.tolist() == [text[0] for text in expected]
    assert (first.log_probabilities <= 0).all()
    steps.close()
    assert generate_tokens(decoder, PROMPTS, max_new_tokens=6) == expected


@pytest.mark.plain
@pytest.mark.parametrize(
    ("family", "change", "error", "sentence"),
    [
        (
            "decoder",
            {"max_new_tokens": 0},
            ConfigError,
            r"max_new_tokens must be at least 1; got 0",
        ),
        (
            "decoder",
            {"max_new_tokens": 30},
            ShapeError,
            r"max_len=32; got 5 \+ 30. Generate at most 27",
        ),
        ("decoder", {"prompts": [[1], []]}, ShapeError, r"at least one token.*\[1, 0\]"),
        ("decoder", {"prompts": []}, ShapeError, r"got lengths \[\]"),
        ("decoder", {"prompts": [[17]]}, ShapeError, r"0 … 16; got 17 to 17"),
        ("decoder", {"source": SOURCES}, ConfigError, r"source=given for Decoder"),
        ("encoder_decoder", {}, ConfigError, r"source=None for EncoderDecoder"),
        ("encoder_decoder", {"source": [[1]]}, ShapeError, r"lengths \[1\] for 3 prompts"),
    ],
)
def test_refusals(family: str, change: dict, error: type[Exception], sentence: str) -> None:
    options = {"prompts": PROMPTS, "max_new_tokens": 3} | change
    with pytest.raises(error, match=sentence):
        generate_tokens(model(family, "rotary"), options.pop("prompts"), **options)


def test_nan_logits_are_named() -> None:
    decoder = model("decoder", "rotary")
    torch.nn.init.constant_(decoder.embedding.weight, torch.nan)
    with pytest.raises(ConfigError, match="NaN"):
        generate_tokens(decoder, [[1]], max_new_tokens=2)


@pytest.mark.plain
@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_compiled_steps_write_the_same_and_compile_once(family: str) -> None:
    """By the real compiler: one graph for a hundred steps, and none more for the next text."""
    from torch._dynamo.utils import counters

    written = model(family, "rotary", max_len=120)
    options = {
        "max_new_tokens": 100,
        "source": SOURCES[:2] if family == "encoder_decoder" else None,
    }
    prompts = [[1, 2, 3], [4]]
    expected = generate_tokens(written, prompts, **options)
    torch._dynamo.reset()
    counters.clear()
    for _ in range(2):
        assert generate_tokens(written, prompts, compiled=True, **options) == expected
        assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
