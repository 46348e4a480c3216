import json

import pytest
from rich.cells import cell_len

import glassformer as gf
from glassformer.languages import CODES
from glassformer.models.shapes import shapes
from letter_models import letter_model

OPERATIONS = (
    "look up embedding",
    "× √512",
    "sinusoidal encoding",
    "+ positions",
    "linear qkv",
    "linear q",
    "linear kv",
    "split into heads",
    "q · kᵀ, scaled",
    "mask Causal()",
    "softmax",
    "weights · v",
    "merge heads",
    "linear out",
    "+ residual",
    "LayerNorm",
    "linear up",
    "relu",
    "linear down",
    "linear embedding",
)


def test_every_step_of_the_paper_is_printed(run):
    code, out, err = run("shapes", "transformer-base")
    assert (code, err) == (0, "")
    for operation in OPERATIONS:
        assert f"  → {operation} " in out, operation
    for site in ("encoder.0.self", "decoder.0.self", "decoder.0.cross", "decoder.0.feed_forward"):
        assert f" · {site}\n" in out
    assert "encoder · blocks 0 … 5 (6 ×)" in out and "decoder · blocks 0 … 5 (6 ×)" in out
    assert "[B,H,L,S]       [2,8,10,14]" in out and "logits" in out
    # A block is printed once, and no step of it is left out.
    trace = shapes("transformer-base")
    printed = sum(len(section.steps) for section in trace.sections())
    assert out.count("→ ") == printed + 1  # and once in the introduction


@pytest.mark.parametrize("name", ["gpt-2", "bert-base", "llama-3.1-8b", "laptop-translator"])
@pytest.mark.parametrize("lang", CODES)
def test_it_fits_the_terminal(run, name, lang):
    code, out, _ = run("shapes", name, "--lang", lang, COLUMNS=80)
    assert code == 0
    assert max(map(cell_len, out.splitlines())) <= 80
    assert "[(H+2K)·D,C]" in out  # no column is lost


def test_sizes(run):
    _, out, _ = run("shapes", "transformer-base", "--batch", "3", "--length", "5", "--context", "7")
    assert "B = 3 " in out and "L = 5 " in out and "S = 7 " in out
    assert "[3,8,5,7]" in out


def test_as_json(run):
    code, out, err = run("shapes", "transformer-base", "--json", "--batch", "3")
    assert (code, err) == (0, "")
    trace = json.loads(out)
    assert (trace["name"], trace["family"]) == ("transformer-base", "encoder_decoder")
    assert trace["sizes"]["B"] == 3
    sites = {step["site"] for step in trace["steps"]}
    for i in range(6):
        assert {f"encoder.{i}.self", f"decoder.{i}.self", f"decoder.{i}.cross"} <= sites
    (scores,) = (
        step
        for step in trace["steps"]
        if step["site"] == "decoder.3.cross" and step["operation"] == "scores"
    )
    assert scores["module"] == "decoder.blocks.3.cross.core"
    assert scores["outputs"][0]["letters"] == ["B", "H", "L", "S"]
    assert scores["outputs"][0]["numbers"] == [3, 8, 10, 14]
    assert scores["held"] is False


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["gpt-9"],
            "Pass a folder, a GGUF file, hf://ORG/NAME, or one of reader, storyteller, ",
        ),
        (["gpt-9"], "No model is called 'gpt-9'."),
        (["gpt-9", "--lang", "zh"], "没有名为 'gpt-9' 的模型。"),
        (["gpt-2", "--batch", "0"], "--batch must be at least 1; got --batch 0."),
        (["gpt-2", "--length", "-1"], "--length must be at least 1; got --length -1."),
        (["transformer-base", "--context", "0"], "--context must be at least 1; got --context 0."),
        (["gpt-2", "--context", "5"], "got --context 5 for --family decoder. Leave it out."),
        (["bert-base", "--length", "513"], "At most max_len=512 tokens have a place; got 513."),
        ([], "No model given. Name one, such as translator or gpt-2"),
        (["gpt-2", "--family", "encoder"], "a named model has one already"),
        (
            ["--family", "rnn"],
            "--family must be one of decoder, encoder, encoder_decoder; got 'rnn'",
        ),
        (["--dim", "10", "--heads", "3"], "got --dim 10, --heads 3"),
        (["gpt-2", "--batch", "9" * 30], "A tensor has fewer than 2⁶³ bytes; got --batch 999"),
    ],
)
def test_what_does_not_fit_is_one_sentence(run, words, sentence):
    code, out, err = run("shapes", *words)
    assert (code, out) == (2, "")
    assert err.startswith("glassformer: ") and sentence in err and err.count("\n") == 1


def test_an_included_model(run):
    code, out, _ = run("shapes", "translator", "--json")
    assert code == 0
    expected = shapes(gf.load("translator").config, name="translator")
    found = json.loads(out)
    assert found.pop("totals")["active_parameters"] > 0
    assert found == json.loads(json.dumps(expected.as_dict()))


def test_a_configuration_of_ones_own(run):
    words = ("--dim", "96", "--heads", "6", "--kv-heads", "2", "--layers", "3", "--json")
    code, out, _ = run("shapes", *words)
    assert code == 0
    plain = json.loads(out)
    assert (plain["family"], plain["name"]) == ("decoder", "decoder")
    assert {k: plain["sizes"][k] for k in "CHKD"} == {"C": 96, "H": 6, "K": 2, "D": 16}
    assert {s["site"] for s in plain["steps"]} >= {"decoder.2.self"}
    assert not any(s["site"].startswith("decoder.3") for s in plain["steps"])
    # A preset with other sizes.
    changed = json.loads(run("shapes", "gpt-2", "--heads", "6", "--json")[1])
    assert (changed["sizes"]["H"], changed["sizes"]["D"]) == (6, 128)


def test_a_saved_model(run, tmp_path):
    gf.save(letter_model("encoder_decoder"), tmp_path / "model")
    code, out, _ = run("shapes", tmp_path / "model", "--json")
    assert code == 0
    expected = shapes(letter_model("encoder_decoder").config, name=str(tmp_path / "model"))
    found = json.loads(out)
    assert found.pop("totals")["active_parameters"] > 0
    assert found == json.loads(json.dumps(expected.as_dict()))


@pytest.mark.plain
def test_what_is_neither_a_preset_nor_saved(run, tmp_path):
    code, out, err = run("shapes", tmp_path / "nowhere")
    assert (code, out) == (2, "")
    assert "Pass a folder, a GGUF file" in err and "nowhere" in err
    code, _, err = run("shapes", tmp_path)
    assert code == 2
    assert "A model's folder must hold config.json" in err
