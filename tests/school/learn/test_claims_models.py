"""Claims about presets, about the models that ship, and about a library of models."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import glassformer as gf
from glassformer.languages import Language
from glassformer.models import PRESETS
from glassformer.models.config import Positions
from glassformer.models.description import describe
from glassformer.models.pretrained import card
from glassformer.school.learn import read_chapter
from glassformer.school.learn.blocks import Snippet


def run_snippets(chapter, first, last):
    """What the snippets of a chapter define, from one number to another."""
    snippets = [b for b in read_chapter(chapter, Language("en")).blocks if isinstance(b, Snippet)]
    namespace = {"print": lambda *_: None, "gf": gf, "torch": torch}
    for snippet in snippets[first - 1 : last]:
        exec(compile(snippet.code, chapter, "exec"), namespace)
    return namespace


def test_families_of_the_presets():
    families = {name.partition("-")[0]: config.family for name, config in PRESETS.items()}
    assert families == families | {
        "transformer": "encoder_decoder",
        "bert": "encoder",
        "gpt": "decoder",
        "llama": "decoder",
    }


def test_what_the_presets_share_and_what_each_changed():
    for name, config in PRESETS.items():
        places, norms, kind = config.positions.kind, config.norms, name.partition("-")[0]
        if kind == "transformer":
            assert (places, norms.place, config.activation) == ("sinusoidal", "post", "relu")
        if kind == "bert":
            assert (places, norms.place, config.activation) == ("learned", "post", "gelu")
        if kind == "gpt":
            assert places == "learned" and config.activation == "gelu_tanh" and not config.gated
            assert norms.place == ("post" if name == "gpt-1" else "pre")
            assert config.window is None
        if kind == "llama":
            assert (places, norms.place, norms.kind) == ("rotary", "pre", "rms")
            assert config.gated and config.activation == "silu" and config.n_kv_heads == 8
            biases = [n for n, _ in gf.build(name, device="meta").named_parameters() if "bias" in n]
            assert not biases
    assert PRESETS["gpt-1"].max_len == 512 and PRESETS["gpt-2"].max_len == 1024
    assert PRESETS["gpt-1"].n_layers == 12
    four = [name for name, config in PRESETS.items() if config.hidden_dim == 4 * config.dim]
    assert len(four) > 0.7 * len(PRESETS)


def test_gpt_3_is_over_a_hundred_times_gpt_2():
    assert describe("gpt-3-175b").parameters > 100 * describe("gpt-2-xl").parameters


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_made_smaller_runs(name):
    latent = PRESETS[name].latent
    heads = 2 if PRESETS[name].n_kv_heads < PRESETS[name].n_heads else 4
    small = PRESETS[name].replace(
        vocab_size=50,
        dim=32,
        n_layers=2,
        n_decoder_layers=None,
        n_heads=4,
        n_kv_heads=heads,
        head_dim=8,
        hidden_dim=64,
        latent=None if latent is None else replace(latent, kv_dim=16, rotary_dim=4, value_dim=8),
    )
    model = gf.build(small).eval()
    tokens = torch.randint(50, (1, 6))
    inputs = (tokens, tokens) if small.family == "encoder_decoder" else (tokens,)
    assert model(*inputs).shape[:2] == (1, 6)


def test_most_decoders_of_transformers_rotate():
    """Of the files that define a model `…ForCausalLM`, more than half speak of rotary positions."""
    transformers = pytest.importorskip("transformers")
    files = (Path(transformers.__file__).parent / "models").glob("*/modeling_*.py")
    texts = [text for file in files if "ForCausalLM(" in (text := file.read_text("utf-8"))]
    decoders = [text for text in texts if re.search(r"^class \w+ForCausalLM\(", text, re.MULTILINE)]
    assert len(decoders) > 50
    assert sum("rotary" in text.lower() for text in decoders) > len(decoders) / 2


@pytest.mark.parametrize("family", ["encoder", "decoder"])
def test_learned_positions_end_with_their_table(family):
    sizes = {"vocab_size": 13, "dim": 12, "n_layers": 1, "n_heads": 2, "max_len": 8}
    for kind in ("learned", "sinusoidal", "rotary", "alibi"):
        model = gf.build(gf.Config(family=family, positions=Positions(kind=kind), **sizes))
        assert model(torch.zeros(1, 8).long()).shape[1] == 8
        has_table = any("position" in name for name in model.state_dict())
        assert has_table is (kind == "learned")
        if has_table:
            with pytest.raises(gf.GlassformerError):
                model(torch.zeros(1, 9).long())


def test_a_translator_reads_its_source_once():
    model, calls = gf.load("translator"), []
    model.encoder.register_forward_hook(lambda *_: calls.append(1))
    text = gf.translate(model, "The cat sat on the mat.", to="fr", beams=1)
    assert len(str(text).split()) > 3 and len(calls) == 1


def test_what_chapter_13_says_of_the_reader():
    reader = gf.load("reader")
    assert reader.config.n_layers * reader.config.n_heads == 20
    text = card("reader")
    assert all(each in text for each in ("Tatoeba", "stories15M", "Eighteen English books"))


def test_no_verb_of_chapter_13_follows_its_noun():
    names = run_snippets("seeing", 4, 6)
    reader, encode, piece = names["reader"], names["encode"], names["piece"]
    for text, (noun, verb) in names["apart"].items():
        tokens = torch.tensor([encode(text)])
        words = [piece(token) for token in tokens[0].tolist()]
        i = words.index(noun)
        assert words.index(verb) > i + 1
        with torch.no_grad(), gf.watch(reader) as seen:
            reader(tokens)
        looked = int(seen["encoder.1.self"].weights(head=2)[i].argmax())
        assert looked == i + 1


TEXTS = (
    "The king sat upon his throne and said nothing.",
    "On the table lay a letter from her brother, and the dog slept.",
    "Never had the captain seen such a storm, he said.",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", ["reader", "writer"])
def test_sharp_heads_have_large_scores(name, text):
    """Spread of scores against sharpness, over all heads; at random the spread would be 1."""
    model = gf.load(name)
    spreads, sharpness = [], []
    with torch.no_grad(), gf.watch(model) as seen:
        model(torch.tensor([model.tokenizer.encode(text)]))
    for site in seen:
        for head in range(site.shape[1]):
            weights = site.weights(head=head)[1:].double()
            logs = [row[row > 0].log() for row in weights]  # scores, up to a number per row
            spreads.append(torch.stack([row.std() for row in logs]).mean())
            entropy = torch.stack([-(row.exp() * row).sum() for row in logs])
            sharpness.append((1 - entropy / torch.tensor([len(row) for row in logs]).log()).mean())
    spread, sharp = torch.stack(spreads), torch.stack(sharpness)
    assert torch.corrcoef(torch.stack([spread, sharp]))[0, 1] > 0.8
    assert spread[sharp.argmax()] > 1.5


def test_the_five_checks_of_chapter_15_catch_five_of_its_ten_mistakes():
    names = run_snippets("mistakes", 1, 2)
    check, sound = names["check"], names["sound"]

    def misnamed(q, k, v, mask):
        weights, _ = sound(q, k, v, mask)
        return weights, weights

    def not_a_number(q, k, v, mask):
        scores = q @ k.T / q.shape[-1] ** 0.5
        scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(-1) @ v, scores.softmax(-1)

    caught = [names["floored"], names["query_length"], not_a_number, names["inverted"], misnamed]
    assert all(check(wrong) != ["sound"] for wrong in caught)
    # Of the other five, one passes; four are not mistakes of this function.
    assert check(names["large_negative"]) == ["sound"]


def test_the_loss_of_the_writer_is_on_its_card():
    assert "loss 3.654 a token" in card("writer")
