import json

import pytest

from glassformer.models import PRESETS
from glassformer.models.description import describe


def test_every_preset_is_listed(run):
    code, out, _ = run("models", COLUMNS=100)
    assert code == 0
    for name in PRESETS:
        assert name in out
    assert "46.7/12.9G" in out  # all, and those that a token uses
    assert "124.4 M" in out and "8.0 G" in out and "36.0 KiB" in out
    assert "encoder-decoder" in out and "cache/token" in out and "…" not in out


def test_a_narrow_window_loses_columns_and_no_digits(run):
    code, out, _ = run("models", COLUMNS=60)
    assert code == 0
    assert "405.9 G" in out and "756.0 GiB" in out and "…" not in out


def test_in_chinese(run):
    code, out, _ = run("models", "--lang", "zh", COLUMNS=100)
    assert code == 0
    assert "编码器–解码器" in out and "参数" in out


def test_as_json(run):
    code, out, _ = run("models", "--json")
    assert code == 0
    listed = {each["name"]: each for each in json.loads(out)}
    assert list(listed) == list(PRESETS)
    assert listed["gpt-2"]["parameters"] == 124_439_808


@pytest.mark.parametrize("name", ["gpt-2", "llama-3.1-8b", "bert-base", "transformer-base"])
def test_the_numbers_follow_from_the_architecture(name):
    config, got = PRESETS[name], describe(name)
    dim, hidden, heads = config.dim, config.hidden_dim, config.n_heads * config.head_dim
    kv = config.n_kv_heads * config.head_dim
    block = dim * (heads + 2 * kv) + heads * dim + (3 if config.gated else 2) * dim * hidden
    cross = 4 * dim * dim * config.decoder_layers if config.family == "encoder_decoder" else 0
    layers = config.n_layers * (2 if config.family == "encoder_decoder" else 1)
    head = dim * dim if config.family == "encoder" else 0  # the masked-token head's own layer
    weights = layers * block + cross + head + config.vocab_size * dim
    assert got.flops_per_token == 2 * weights
    decoding = 0 if config.family == "encoder" else config.n_layers
    assert got.cache_bytes_per_token == 4 * decoding * kv
    assert got.weight_bytes == 2 * got.parameters


def test_what_comes_with_the_package(run):
    code, out, _ = run("models")
    assert code == 0 and out.index("reader") < out.index("gpt-2")
    code, out, _ = run("models", "reader")
    assert code == 0 and out.startswith("# reader") and "## Limits" in out
    code, _, err = run("models", "gpt-2")
    known = "Choose one of reader, storyteller, translator, writer."
    assert code == 2 and f"No model is called 'gpt-2'. {known}" in err


def test_gaps_are_filled_without_naming_a_model(run):
    code, out, _ = run("fill", "I am going to [MASK] my homework.", "--top", "1")
    assert code == 0 and out.split()[0] == "do"


def test_a_text_is_continued_without_naming_a_model(run):
    code, out, _ = run("generate", "Once upon a", "--max-new", "1", "--temperature", "0")
    assert (code, out) == (0, "Once upon a time\n")
    code, out, _ = run("generate", "Once upon a", "--max-new", "2")  # a sample
    assert code == 0 and out.startswith("Once upon a")


def test_a_draft_leaves_the_text_as_it_is(run):
    words = ("generate", "Once upon a time and a time and a", "--max-new", "30", "--seed", "4")
    code, plain, err = run(*words, "--draft", "none")
    assert code == 0 and "guessed" not in err
    for draft in ("lookup", "storyteller"):
        code, out, err = run(*words, "--draft", draft)
        assert (code, out) == (0, plain) and "guessed tokens held; the model ran" in err
    assert run(*words) == (0, plain, run(*words, "--draft", "none")[2])
    for draft, why in (
        ("writer", "which has 4096 tokens; got 6000"),
        ("reader", "--draft must be"),
        ("nosuch", "'nosuch' is not there"),
    ):
        code, out, err = run(*words, "--draft", draft)
        assert code == 2 and out == "" and why in err and err.count("\n") == 1


def test_a_sentence_is_translated_without_naming_a_model(run):
    code, out, _ = run("translate", "--to", "fr", "Where is the station?")
    assert (code, out) == (0, "Où se trouve la gare ?\n")
    code, _, err = run("translate", "Where is the station?")
    assert code == 2 and "into zh and fr; no target language" in err
