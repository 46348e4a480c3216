"""The commands on saved models: generate, translate, fill, embed."""

import io
import json
import re

import pytest
import torch

import glassformer as gf
from glassformer.generation import rank_translations
from letter_models import letter_model


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A saved model of each family."""
    root = tmp_path_factory.mktemp("models")
    for family in ("decoder", "encoder", "encoder_decoder"):
        gf.save(letter_model(family), root / family)
    return root


@pytest.fixture
def piped(monkeypatch):
    """What stands on standard input."""

    def put(text):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))

    return put


def test_generate_continues_the_text(run, folders):
    words = ("--max-new", "9", "--temperature", "0")
    code, out, err = run("generate", "hello", "--model", folders / "decoder", *words)
    expected = gf.generate(letter_model("decoder"), "hello", max_new_tokens=9)
    assert (code, out, err) == (0, f"hello{expected}\n", "")


def test_generate_reads_a_pipe_and_prints_json(run, folders, piped):
    piped("hello\n")
    words = ("--max-new", "9", "--temperature", "0", "--seed", "3", "--json")
    code, out, _ = run("generate", "-m", folders / "decoder", *words)
    assert code == 0
    expected = gf.generate(letter_model("decoder"), "hello", max_new_tokens=9)
    assert json.loads(out) == {"prompt": "hello", "text": expected, "seed": 3}


def test_generate_draws_by_seed_and_stops(run, folders):
    words = ("generate", "hello", "-m", folders / "decoder", "--max-new", "20")
    drawn = [run(*words, "--temperature", "2", "--seed", seed)[1] for seed in "112"]
    assert drawn[0] == drawn[1] != drawn[2]
    words += ("--temperature", "0")
    whole = run(*words)[1].strip("\n").removeprefix("hello")
    code, out, _ = run(*words, "--stop", "☂", "--stop", whole[4:6])
    assert (code, out) == (0, f"hello{whole[: whole.index(whole[4:6])]}\n")


def test_generate_samples_by_default_and_shows_the_seed(run):
    """Without options the storyteller is sampled from, and the text can be had again."""
    words = ("generate", "Mrs. Weston smiled, and", "--max-new", "30")
    code, out, err = run(*words)
    assert code == 0 and out.startswith(words[1])
    seed = re.search(r"--seed (\d+)", err)[1]
    assert run(*words, "--seed", seed)[1] == out
    written = gf.generate(
        gf.load("storyteller"),
        words[1],
        max_new_tokens=30,
        temperature=0.8,
        top_p=0.95,
        seed=int(seed),
    )
    assert out == f"{words[1]}{written}\n"


def test_without_options_a_story_is_written_to_its_end(run):
    code, out, _ = run("generate", "The robot", "--temperature", "0")
    assert code == 0 and out.endswith((".\n", '"\n'))
    written = gf.generate(gf.load("storyteller"), "The robot", max_new_tokens=400)
    assert out == f"The robot{written}\n" and len(written) > 500


def test_generate_never_loops(run):
    """Taking the likeliest token leads the writer into a loop, which is cut off."""
    words = ("generate", "Mrs. Weston smiled, and", "--temperature", "0", "--max-new", "200")
    code, out, err = run(*words, "--model", "writer")
    assert (code, err) == (0, "")
    assert not re.search(r"(.{8,}?)\1{4}", out, re.DOTALL)
    greedy = gf.generate(gf.load("writer"), words[1], max_new_tokens=200)
    assert greedy.startswith(out.removeprefix(words[1]).rstrip("\n"))


def test_generate_asks_in_a_chat(run, folders):
    words = ("--max-new", "7", "--temperature", "0")
    code, out, _ = run("generate", "why", "--chat", "-m", folders / "decoder", *words)
    assert code == 0
    assert out.strip("\n") == gf.generate(
        letter_model("decoder"), "why", chat=True, max_new_tokens=7
    )


def test_translate_each_text(run, folders, piped):
    model, texts = letter_model("encoder_decoder"), ["hello there", "abc"]
    expected = [gf.translate(model, text, max_new_tokens=9) for text in texts]
    words = ("translate", "-m", folders / "encoder_decoder", "--max-new", "9")
    assert run(*words, *texts)[:2] == (0, "".join(f"{each}\n" for each in expected))
    piped("\n".join(texts) + "\n\n")
    code, out, _ = run(*words, "--json", "--n-best", "2")
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["source"] for line in lines] == texts
    best = rank_translations(model, texts, n_best=2, max_new_tokens=9)
    for line, found in zip(lines, best, strict=True):
        assert [each["text"] for each in line["translations"]] == [each.text for each in found]
    code, out, _ = run(*words, "abc", "--n-best", "2")
    assert f"{best[1][0].score:.3f}  {best[1][0].text}" in out


def test_translate_with_a_shortlist(run, folders):
    text = "Where is the station?"
    expected = gf.translate(gf.load("translator"), text, to="fr", shortlist=True)
    assert run("translate", "--to", "fr", "--shortlist", text)[:2] == (0, f"{expected}\n")
    code, out, err = run("translate", "-m", folders / "encoder_decoder", "--shortlist", "abc")
    assert (code, out) == (2, "") and "--shortlist needs a list of the tokens" in err


def test_fill_shows_guesses(run, folders):
    words = ("fill", "a[MASK]c[MASK]", "-m", folders / "encoder", "--top", "3")
    gaps = gf.fill(letter_model("encoder"), "a[MASK]c[MASK]", k=3)
    code, out, _ = run(*words)
    assert code == 0
    assert "Mask 1" in out and "Mask 2" in out
    for guess in gaps[0] + gaps[1]:
        assert f"{guess.probability:6.1%}" in out
    assert "第 2 个掩码" in run(*words, "--lang", "zh")[1]
    plain = json.loads(run(*words, "--json")[1])
    assert [[g["token"] for g in gap] for gap in plain["gaps"]] == [
        [guess.token for guess in guesses] for guesses in gaps
    ]


def test_embed_shows_how_alike_texts_are(run, folders):
    texts = ["hello there", "hello you", "xyz"]
    vectors = gf.embed(letter_model("encoder"), texts)
    code, out, _ = run("embed", "-m", folders / "encoder", *texts)
    assert code == 0
    assert f"{float(vectors[0] @ vectors[1]):.2f}" in out and "16 components" in out
    code, out, _ = run("embed", "-m", folders / "encoder", "hello", "--lang", "zh")
    assert code == 0
    assert "…" in out and "16 个分量" in out
    lines = run("embed", "-m", folders / "encoder", *texts, "--json")[1].splitlines()
    assert json.loads(lines[2])["vector"] == pytest.approx(vectors[2].tolist(), abs=1e-6)


def test_convert_there_and_back(run, folders, tmp_path):
    """Our letters become a GPT-2 and come back the same."""
    source, theirs, ours = folders / "decoder", tmp_path / "theirs", tmp_path / "ours"
    code, out, _ = run("convert", source, theirs, "--layout", "huggingface")
    assert (code, out.count("\n")) == (0, 1)
    assert "parameters, float32, format huggingface" in out
    assert json.loads((theirs / "config.json").read_text())["model_type"] == "gpt2"
    assert run("convert", theirs, ours, "--lang", "zh")[1].startswith("已保存")
    words = ("generate", "hello", "--max-new", "9", "--temperature", "0", "-m")
    assert run(*words, ours)[1] == run(*words, source)[1]
    code, _, err = run("convert", theirs, ours)
    assert code == 2 and "exists already" in err
    assert run("convert", theirs, ours, "--overwrite", "--dtype", "float16")[0] == 0
    assert gf.load(ours).embedding.weight.dtype == torch.float16


@pytest.mark.parametrize("kind", ["int8", "fp8"])
def test_quantized_by_dtype_and_from_a_folder(run, folders, tmp_path, kind):
    words = ("generate", "hello", "--max-new", "9", "--temperature", "0", "-m")
    code, out, _ = run("convert", folders / "decoder", tmp_path / "small", "--dtype", kind)
    assert code == 0 and f"parameters, {kind}, format glassformer" in out
    small = gf.quantize(letter_model("decoder"), kind)
    expected = f"hello{gf.generate(small, 'hello', max_new_tokens=9)}\n"
    assert run(*words, tmp_path / "small")[1] == expected
    assert run(*words, folders / "decoder", "--dtype", kind)[1] == expected
    code, _, err = run(
        "convert", folders / "decoder", tmp_path / "no", "--dtype", kind, "--layout", "gpt2"
    )
    assert code == 2 and "saved in the layout glassformer" in err


def test_convert_to_gguf_and_back(run, tmp_path):
    pytest.importorskip("gguf")
    path, ours = tmp_path / "writer.gguf", tmp_path / "ours"
    code, out, _ = run("convert", "writer", path, "--layout", "gguf", "--dtype", "float16")
    assert code == 0 and "float16, format gguf" in out
    assert run("convert", path, ours, "--dtype", "float16")[0] == 0
    words = ("generate", "Mrs. Weston", "--max-new", "9", "--temperature", "0", "-m")
    assert run(*words, ours)[1] == run(*words, path)[1] == run(*words, "writer")[1]


@pytest.mark.plain
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("convert", "nowhere", "x", "--layout", "onnx"), "or one of bert, roberta"),
        (("convert", "nowhere", "x", "--layout", "gguf"), "must end in .gguf; got 'x'"),
        (("convert", "nowhere", "DIR/encoder"), "Save under another name, or with --overwrite."),
        (("generate", "a", "-m", "nowhere", "--top-p", "2"), "at most 1; got --top-p 2.0"),
        (("generate", "a", "-m", "nowhere", "--top-k", "0"), "--top-k must be a whole number"),
        (("generate", "a", "-m", "nowhere", "--max-new", "0"), "--max-new must be at least 1"),
        (("generate", "a", "-m", "nowhere", "--stop", ""), "must have at least one character"),
        (("translate", "a", "-m", "nowhere", "--n-best", "9"), "got --beams 4, --n-best 9."),
        (("translate", "a", "-m", "nowhere", "--max-new", "0"), "--max-new must be at least 1"),
        (
            ("fill", "[MASK]", "-m", "nowhere", "--top", "0"),
            "--top must be at least 1; got --top 0",
        ),
        (("look", "a", "-m", "nowhere", "--pool", "sum"), "--pool must be max or mean; got 'sum'"),
        (
            ("evaluate", "--source", "x", "--target", "y", "--tokenize", "words"),
            "--tokenize must be one of",
        ),
        (("evaluate", "--source", "x", "--target", "y", "--beams", "0"), "got --beams 0"),
        (("convert", "reader", "DIR/x.gguf", "--layout", "gguf"), "this model is an encoder"),
        (("generate", "a", "-m", "nowhere"), "'nowhere' is not there"),
        (("generate", "a", "-m", "DIR/encoder"), "Only a decoder continues a text; got Encoder"),
        (("translate", "a", "-m", "DIR/decoder"), "Only an encoder-decoder translates"),
        (
            ("translate", "a", "-m", "DIR/encoder_decoder", "--beams", "0"),
            "--beams must be at least 1 and --n-best in 1 … beams; got --beams 0",
        ),
        (("fill", "abc", "-m", "DIR/encoder"), "must have a gap, written [MASK]; got 'abc'"),
        (("embed", "a", "-m", "DIR/decoder"), "Only an encoder fills gaps and embeds texts"),
        (
            ("generate", "a", "-m", "DIR/decoder", "--temperature", "-1"),
            "--temperature must be at least 0 and finite; got --temperature -1",
        ),
        (("generate", "a", "-m", "DIR/decoder", "--dtype", "int4"), "--dtype must be one of"),
        (("generate", "a", "-m", "DIR/decoder", "--device", "moon"), "--device must be cpu"),
        (("generate", "a" * 40, "-m", "DIR/decoder"), "shorter than max_len=40"),
        (("generate", "a", "-m", "gpt-2"), "'gpt-2' is a preset, which has no weights"),
    ],
)
def test_refusals(run, folders, words, sentence):
    code, out, err = run(*(word.replace("DIR", str(folders)) for word in words))
    assert (code, out) == (2, "")
    assert sentence in err and err.count("\n") == 1


@pytest.mark.plain
def test_only_a_translator_is_evaluated(run, folders, tmp_path):
    pytest.importorskip("sacrebleu")
    (tmp_path / "a.txt").write_text("abc\n")
    files = ("--source", tmp_path / "a.txt", "--target", tmp_path / "a.txt")
    code, out, err = run("evaluate", *files, "-m", folders / "decoder")
    assert (code, out) == (2, "") and "Only an encoder-decoder translates; got Decoder" in err


@pytest.mark.plain
@pytest.mark.parametrize("command", ["generate", "translate", "fill", "embed"])
def test_no_text_at_all(run, folders, piped, monkeypatch, command):
    import sys

    if command in ("translate", "embed"):
        piped("\n \n")
    else:
        monkeypatch.setattr(sys, "stdin", None)
    code, _, err = run(command, "-m", folders / "decoder")
    assert code == 2
    assert "No text given. Pass one as an argument or pipe it in." in err
    assert "没有给出文本" in run(command, "-m", folders / "decoder", "--lang", "zh")[2]
