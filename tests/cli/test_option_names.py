"""Errors of the library, in the words of the command line."""

import math

import pytest
import torch
from safetensors.torch import load_file, save_file

import glassformer as gf
from glassformer.cli.app import build
from glassformer.cli.option_names import name_options
from glassformer.languages import Language
from glassformer.text import SpecialTokens
from letter_models import letter_model


def named(command: str, sentence: str) -> str:
    return name_options(sentence, build(Language("en")).commands[command].params)


@pytest.mark.parametrize(
    ("command", "python", "shell"),
    [
        ("translate", "Use to='zh'.", "Use --to zh."),
        ("translate", "got beams=0, n_best=-3.", "got --beams 0, --n-best -3."),
        ("generate", "top_p must be 0.5; got top_p=1.5.", "--top-p must be 0.5; got --top-p 1.5."),
        ("generate", "got temperature=nan. Use 0.", "got --temperature nan. Use 0."),
        ("generate", "max_new_tokens must be 1", "--max-new must be 1"),
        ("generate", "The temperature is high", "The temperature is high"),
        ("shapes", "got n_heads=5, dim=12.", "got --heads 5, --dim 12."),
        ("shapes", "got batch=3, context=None.", "got --batch 3, no --context."),
        ("convert", "Save with overwrite=True.", "Save with --overwrite."),
        ("convert", "save with layout='glassformer'.", "save with --layout glassformer."),
        ("look", "Layers are 0 … 4; got layer=9.", "Layers are 0 … 4; got --layer 9."),
        ("fill", "got max_len=40", "got max_len=40"),  # no option of the command
        ("generate", "--dtype must be one of", "--dtype must be one of"),
    ],
)
def test_arguments_become_options(command, python, shell):
    assert named(command, python) == shell


@pytest.mark.plain
def test_advice_for_python_is_left_out(run, tmp_path):
    """Each is an error that a saved model can cause."""
    model = letter_model("encoder_decoder")
    model.special = SpecialTokens(end=(2,), pad=0)
    gf.save(model, tmp_path / "without_start")
    code, _, err = run("translate", "a", "-m", tmp_path / "without_start")
    assert code == 2 and err.endswith("needs a start token; this model has none.\n")
    model = letter_model("decoder")
    model.tokenizer = None
    gf.save(model, tmp_path / "without_tokenizer")
    code, _, err = run("generate", "a", "-m", tmp_path / "without_tokenizer")
    assert code == 2 and err.endswith("Load it from a folder that contains one.\n")
    gf.save(letter_model("decoder"), tmp_path / "nan", layout="huggingface")
    weights = load_file(tmp_path / "nan" / "model.safetensors")
    weights["transformer.wte.weight"][1, 2] = torch.tensor(math.nan)
    save_file(weights, tmp_path / "nan" / "model.safetensors", metadata={"format": "pt"})
    code, _, err = run("generate", "a", "-m", tmp_path / "nan")
    assert code == 2 and err.endswith("The file is damaged, or its training diverged.\n")
    with pytest.raises(gf.GlassformerError, match=r"load\(…, allow_non_finite=True\)"):
        gf.load(tmp_path / "nan")


@pytest.mark.plain
def test_a_mask_is_named_as_it_was_typed(run):
    code, _, err = run("mask", "window(-1)")
    assert code == 2
    assert err == "glassformer: window(left=…) counts keys and must be at least 0; got -1.\n"


@pytest.mark.plain
def test_a_page_that_is_too_large_names_no_python(run, tmp_path, monkeypatch):
    from glassformer.render.page import document

    monkeypatch.setattr(document, "MOST_BYTES", 10)
    code, _, err = run("look", "The cat sat.", "--html", tmp_path / "page.html")
    assert code == 2 and err.endswith("Record a shorter text.\n")
