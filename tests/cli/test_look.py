"""`glassformer look`: on a text, on a saved trace, in both languages, and what it refuses."""

import json
from itertools import pairwise

import pytest
from rich.cells import cell_len

import glassformer as gf
from glassformer.analysis.traced_text import trace_text
from glassformer.render.focus import choose_focus
from letter_models import letter_model


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    for family in ("decoder", "encoder", "encoder_decoder"):
        gf.save(letter_model(family), root / family)
    return root


def test_a_text_is_shown_with_its_numbers(run, folders):
    code, out, err = run("look", "hello", "-m", folders / "encoder", "--layer", "1", "--head", "0")
    assert (code, err) == (0, "")
    site = trace_text(letter_model("encoder"), "hello", None)["encoder.1.self"]
    assert "encoder · self" in out and "encoder.1.self, head 0: 5 queries by 5 keys" in out
    for weight in site.weights(head=0).flatten().tolist():
        assert f"{weight:.2f}" in out or weight < 0.01
    assert "What each token attends to most" in out and "role" in out
    assert max(map(cell_len, out.splitlines())) <= 80


def test_the_most_telling_head_unless_told(run, folders):
    plain = json.loads(run("look", "hello", "-m", folders / "decoder", "--json")[1])
    trace = trace_text(letter_model("decoder"), "hello", None)
    site, head, *_ = choose_focus(trace)
    assert (plain["site"], plain["head"]) == (site.name, head)
    assert plain["queries"] == [*"hello"]
    expected = trace[plain["site"]].weights(head=plain["head"]).flatten().tolist()
    shown = [weight for row in plain["weights"] for weight in row]
    assert shown == pytest.approx(expected, abs=1e-6)


def test_a_translation_is_written_and_looked_at(run, folders):
    words = ("look", "hello", "-m", folders / "encoder_decoder", "--json")
    plain = json.loads(run(*words)[1])
    text = gf.translate(letter_model("encoder_decoder"), "hello")
    assert plain["site"].endswith(".cross")
    assert plain["keys"] == [*"hello"]
    written = ["<s>", *text.replace(" ", "␣")]
    assert plain["queries"] == written
    assert plain["rows"][:-1] == [f"{a} → {b}" for a, b in pairwise(written)]
    given = json.loads(run(*words, "--target", "abc")[1])
    assert given["queries"] == ["<s>", *"abc"]


def test_a_word_step_by_step(run, folders):
    words = ("look", "hello", "-m", folders / "decoder", "--site", "decoder.0.self", "--head", "1")
    code, out, _ = run(*words, "--word", "o")
    assert code == 0
    row = trace_text(letter_model("decoder"), "hello", None)["decoder.0.self"].row(1, 4)
    assert "1 q · k" in out and f"{float(row.weights.max()):.2f}" in out
    assert run(*words, "--word", "4")[1] == out
    assert "加权求和" in run(*words, "--word", "o", "--lang", "zh")[1]


def test_a_trace_is_saved_and_shown_again(run, folders, tmp_path):
    words = ("--layer", "0", "--head", "1")
    first = run("look", "hello", "-m", folders / "decoder", "--trace", tmp_path / "a.trace", *words)
    again = run("look", "--trace", tmp_path / "a.trace", *words)
    assert first == again and first[0] == 0


def test_runs_are_added_and_chosen(run, folders, tmp_path):
    path = tmp_path / "a.trace"
    for text in ("hello", "you"):
        words = ("look", text, "-m", folders / "decoder", "--trace", path, "--append")
        assert run(*words)[0] == 0
    labels = [
        json.loads(run("look", "--trace", path, *chosen, "--json")[1])["queries"]
        for chosen in ((), ("--run", "0"), ("--run", "1"))
    ]
    assert labels == [[*"you"], [*"hello"], [*"you"]]


def test_long_texts_are_pooled(run, folders, tmp_path):
    built = letter_model("decoder", max_len=400)
    gf.save(built, tmp_path / "long")
    code, out, _ = run("look", "ab cd " * 50, "-m", tmp_path / "long", "--layer", "0")
    assert code == 0
    assert "Too long to show every weight: 32 × 78 blocks, each showing its largest" in out
    assert "Blank: hidden by the mask." in " ".join(out.split())
    assert max(map(cell_len, out.splitlines())) <= 80
    options = ("--pool", "mean", "--scale", "row", "--no-first-key")
    flat = " ".join(
        run("look", "ab cd " * 50, "-m", tmp_path / "long", "--layer", "0", *options)[1].split()
    )
    assert "each showing its mean weight" in flat
    assert "Share of the row's largest weight: ░ < 0.25" in flat
    assert "The first key is not drawn" in flat


def test_pictures(run, folders, tmp_path):
    words = ("look", "hello", "-m", folders / "decoder", "--layer", "0", "--head", "1")
    pytest.importorskip("matplotlib")
    files = [arg for form in ("png", "svg", "pdf") for arg in (f"--{form}", tmp_path / f"a.{form}")]
    code, _, err = run(*words, *files)
    assert (code, err) == (0, "")
    assert (tmp_path / "a.pdf").read_bytes()[:4] == b"%PDF"
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize("kind", ["head", "heads", "alignment", "entropy", "flow"])
def test_every_kind_of_figure(run, folders, tmp_path, kind):
    pytest.importorskip("matplotlib")
    words = ("look", "hello", "-m", folders / "encoder_decoder", "--png", tmp_path / "a.png")
    code, _, err = run(*words, "--figure", kind, "--lang", "zh")
    assert (code, err) == (0, "")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_help_tells_of_figures_and_runs_in_both_languages(run):
    for code, words in (("en", "how spread out attention"), ("zh", "每一层的注意力有多分散")):
        out = run("look", "--help", "--lang", code)[1]
        assert "".join(words.split()) in "".join(out.split())
        assert "--figure head|heads|alignment|entropy|flow" in out and "--run N" in out


def test_the_model_and_the_text_are_named(run, folders):
    code, out, _ = run("look", "hello", "-m", folders / "decoder")
    assert code == 0 and out.startswith("decoder: “hello”\n")
    assert "Rows: token read → next token (query)." in out and "h → e" in out
    out = run("look", "hello", "-m", folders / "encoder", "--lang", "zh")[1]
    assert out.startswith("encoder：“hello”\n")
    assert "行：词元（查询）。" in out and "→" not in out


def test_the_difference_is_stated(run, folders):
    words = ("look", "hello", "-m", folders / "decoder", "--site", "decoder.1.self")
    site = trace_text(letter_model("decoder"), "hello", None)["decoder.1.self"]
    value = site.difference_from_output()
    assert f"by at most {value:.1e}" in " ".join(run(*words)[1].split())
    assert json.loads(run(*words, "--json")[1])["difference"] == value


def test_without_a_model_one_that_comes_with_the_package(run):
    code, out, _ = run("look", "The cat sat on the mat.", "--json")
    assert code == 0 and json.loads(out)["site"].startswith("encoder.")
    code, out, _ = run("look", "The cat sat on the mat.", "--to", "fr", "--json")
    assert code == 0 and "␣chat" in json.loads(out)["queries"]


def test_a_page(run, folders, tmp_path):
    words = ("look", "hello", "-m", folders / "decoder", "--html", tmp_path / "a.html")
    code, _, err = run(*words, "--lang", "zh")
    assert (code, err) == (0, "")
    html = (tmp_path / "a.html").read_text("utf-8")
    assert html.startswith("<!doctype html>") and '"language":"zh"' in html


@pytest.mark.plain
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("look", "abc", "-m", "DIR/decoder", "--layer", "9"), "Layers are 0 … 1; got --layer 9"),
        (("look", "abc", "-m", "DIR/decoder", "--head", "9"), "has heads 0 … 1; got --head 9"),
        (("look", "abc", "-m", "DIR/decoder", "--site", "x"), "A site must be one of decoder.0"),
        (("look", "abc", "-m", "DIR/decoder", "--word", "z"), "--word must be one of the tokens"),
        (("look", "abc", "-m", "DIR/decoder", "--png", "a.jpg"), "must end in .png; got 'a.jpg'"),
        (("look", "abc", "-m", "DIR/decoder", "--html", "a.htm"), "must end in .html; got"),
        (("look", "abc", "-m", "DIR/decoder", "--pdf", "a.ps"), "must end in .pdf; got 'a.ps'"),
        (("look", "abc", "-m", "DIR/decoder", "--pool", "sum"), "pool must be max or mean"),
        (("look", "abc", "-m", "DIR/decoder", "--scale", "log"), "scale must be quantile or row"),
        (("look", "", "-m", "DIR/decoder"), "must have at least one token"),
        (("look", "--trace", "nowhere"), "nowhere is not there"),
        (("look", "ab", "-m", "DIR/decoder", "--append"), "pass both a text and --trace"),
        (("look", "--trace", "a.trace", "--append"), "pass both a text and --trace"),
        (("look", "ab", "-m", "DIR/decoder", "--run", "0"), "but a text was given too"),
        (("look", "ab", "-m", "DIR/decoder", "--png", "a.png", "--figure", "x"), "got 'x'"),
        (
            ("look", "ab", "-m", "DIR/decoder", "--png", "a.png", "--figure", "alignment"),
            "An alignment needs attention from one text to another",
        ),
    ],
)
def test_refusals(run, folders, words, sentence):
    code, out, err = run(*(word.replace("DIR", str(folders)) for word in words))
    assert (code, out) == (2, "")
    assert sentence in err and err.count("\n") == 1


@pytest.mark.plain
@pytest.mark.parametrize("option", ["--png x/a.png", "--html x/a.html", "--trace x/a.trace"])
def test_a_folder_that_does_not_exist_is_refused_before_any_work(run, tmp_path, option):
    name, path = option.split()
    code, out, err = run("look", "hello", name, tmp_path / path, "-m", "no-such-model")
    assert (code, out) == (2, "")
    assert f"The folder {tmp_path / 'x'} does not exist" in err and "no-such-model" not in err


def test_a_change_is_applied_and_named(run):
    cut = " & ".join(f"knockout(decoder.{i}.cross, keys=2)" for i in range(4))
    code, out, err = run("look", "The cat sat on the mat.", "--to", "fr", "--change", cut, "--json")
    assert code == 0, err
    _, plain, _ = run("look", "The cat sat on the mat.", "--to", "fr", "--json")
    assert "chat" not in out and "chat" in plain
    _, shown, _ = run("look", "The cat sat.", "--change", "skip(encoder.1)")
    assert "The model was changed: skip(encoder.1)" in shown
    code, out, err = run("look", "The cat sat.", "--change", "ablate(encoder.9.self)")
    assert code == 2 and "encoder.0 … encoder.4" in err
    code, _, err = run("look", "The cat sat.", "--change", "abl(encoder.1.self)")
    assert code == 2 and "An intervention is one of ablate" in err


def test_a_change_may_be_a_file(run, tmp_path):
    import glassformer as gf

    file = str(tmp_path / "quiet.changes")
    gf.save_changes(gf.Skip("encoder.1"), file)
    _, shown, _ = run("look", "The cat sat.", "--change", file)
    assert "The model was changed: skip(encoder.1)" in shown
    code, out, err = run("look", "The cat sat.", "--change", str(tmp_path / "none"))
    assert (code, out) == (2, "") and "or a file that gf.save_changes wrote; got" in err


def test_a_saved_trace_cannot_be_changed(run, tmp_path):
    file = tmp_path / "a.trace"
    assert run("look", "The cat sat.", "--trace", file)[0] == 0
    code, _, err = run("look", "--trace", file, "--change", "skip(encoder.1)", "--lang", "zh")
    assert code == 2 and "不能再改动" in err
