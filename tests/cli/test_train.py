"""`glassformer train` and `glassformer evaluate`: from files to a translated sentence."""

import json
import os
import signal

import pytest

from training import small_runs

SHORT = ("--set", "until.steps=3", "--set", "batches.max_tokens=300", "--device", "cpu")


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(small_runs.translation(tmp_path, until={"steps": 6}).as_toml())
    return path


def test_a_recipe_becomes_a_model(run, tmp_path, recipe):
    out = tmp_path / "run"
    code, said, told = run(
        "train", recipe, "--out", out, "--device", "cpu", "--set", "show.every=2"
    )
    assert code == 0
    assert f"6 steps. The model is in {out / 'model'}" in said and "loss" in said
    assert f"glassformer translate --model {out / 'model'}" in said
    assert "step 2/6" in told and "tokens_per_s" in told
    code, said, _ = run("translate", "--model", out / "model", "a b c", "--max-new", "5")
    assert code == 0 and said.strip()


def test_it_goes_on_by_the_folder_alone(run, tmp_path, recipe):
    out = tmp_path / "run"
    assert run("train", recipe, "--out", out, "--device", "cpu")[0] == 0
    code, said, _ = run(
        "train",
        "--resume",
        "--out",
        out,
        "--device",
        "cpu",
        "--set",
        "until.steps=8",
        "--lang",
        "zh",
    )
    assert code == 0 and "训练了 8 步" in said


def test_two_files_become_a_translator(run, tmp_path):
    source, target = small_runs.pairs(tmp_path, n=120)
    out = tmp_path / "run"
    words = ("train", "--source", source, "--target", target, "--out", out)
    code, said, _ = run(*words, *SHORT, "--set", "tokenizer.vocab_size=300")
    assert code == 0 and "accuracy" in said
    code, said, _ = run("translate", "-m", out / "model", "a b c", "--max-new", "5")
    assert code == 0


def test_a_text_becomes_a_writer(run, tmp_path):
    text = tmp_path / "book.txt"
    text.write_text("to be or not to be\n" * 200)
    out = tmp_path / "run"
    change = ("--set", "model.dim=32", "--set", "until.steps=3")
    code, said, _ = run("train", "--text", text, "--out", out, "--device", "cpu", *change)
    assert code == 0 and "glassformer generate" in said
    code, said, _ = run("generate", "to ", "-m", out / "model", "--max-new", "4")
    assert code == 0 and said.startswith("to ")


def test_evaluate_prints_scores(run, tmp_path, recipe):
    out = tmp_path / "run"
    run("train", recipe, "--out", out, "--device", "cpu")
    source, target = small_runs.pairs(tmp_path, n=12)
    words = ("evaluate", "-m", out / "model", "--source", source, "--target", target)
    code, said, _ = run(*words, "--beams", "2", "--tokenize", "none", "--write", tmp_path / "found")
    assert code == 0
    assert [line.split()[0] for line in said.splitlines()] == [
        "loss",
        "perplexity",
        "accuracy",
        "bleu",
        "chrf",
    ]
    assert len((tmp_path / "found").read_text().splitlines()) == 12
    code, _, err = run(*words, "--write", target)
    assert code == 2 and f"{target} exists already. Write the translations to another" in err
    scores = json.loads(run(*words, "--json", "--beams", "1")[1])
    assert scores["texts"] == 12 and scores["left_out"] == 0
    code, _, err = run(*words, "--to", "fr")
    assert code == 2 and "translates into one language only; got 'fr'" in err
    code, _, err = run(*words, "--shortlist")
    assert code == 2 and "--shortlist needs a list of the tokens" in err
    code, _, err = run(*words, "--write", source / "found")
    assert code == 2 and "found could not be written" in err


def test_evaluate_names_the_language_to_write(run, tmp_path):
    source, target = tmp_path / "a.en", tmp_path / "a.fr"
    source.write_text("I love you.\nI love you.\nWhere is the station?\n", "utf-8")
    target.write_text("Je vous aime.\nJe t'aime.\nOù se trouve la gare ?\n", "utf-8")
    words = ("evaluate", "-m", "translator", "--source", source, "--target", target, "--json")
    code, out, _ = run(*words, "--to", "fr")
    assert code == 0 and json.loads(out)["bleu"] == pytest.approx(100)
    code, out, _ = run(*words, "--to", "fr", "--shortlist")
    assert code == 0 and json.loads(out)["bleu"] == pytest.approx(100)
    code, _, err = run(*words)
    assert code == 2 and "into zh and fr; no target language" in err


@pytest.mark.plain
def test_ctrl_c_leaves_with_130(run, tmp_path, recipe, monkeypatch):
    from glassformer.training.display import LineDisplay

    usual = LineDisplay.step

    def ring(self, step, **values):
        usual(self, step, **values)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(LineDisplay, "step", ring)
    out = tmp_path / "run"
    code, _, told = run("train", recipe, "--out", out, "--device", "cpu", "--set", "show.every=2")
    assert code == 130
    assert "after step 2 of 6. The model is usable now" in told
    assert f"Continue with: glassformer train --resume --out {out}" in told
    code, said, told = run("translate", "--model", out, "a b c", "--max-new", "5")
    assert code == 0 and "a b c" not in said
    assert (
        told.strip() == f"{out} is a training run: using latest/, the weights when it was stopped."
    )


@pytest.mark.plain
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Nothing to train. Pass a recipe"),
        (("--source", "a"), "needs both --source and --target; only one"),
        (("--text", "a", "--source", "b"), "Train one thing at a time"),
        (("none.toml", "--out", "x"), "cannot be read: No such file"),
        (("RECIPE",), "needs a folder; set out, or --out"),
        (("RECIPE", "--out", "OUT", "--set", "schedul.lr=1"), "Did you mean schedule?"),
        (("RECIPE", "--out", "OUT", "--device", "moon"), "must be cpu, or cuda"),
        (("--source", "no.en", "--target", "no.de", "--out", "OUT"), "no.en"),
    ],
)
def test_refusals(run, tmp_path, recipe, words, sentence):
    named = {"RECIPE": str(recipe), "OUT": str(tmp_path / "out")}
    code, said, told = run("train", *(named.get(word, word) for word in words))
    assert (code, said) == (2, "")
    assert sentence in told and told.count("\n") == 1


@pytest.mark.plain
def test_unequal_files_are_told(run, tmp_path):
    source, target = small_runs.pairs(tmp_path, n=50)
    target.write_text("".join(target.read_text().splitlines(keepends=True)[:-3]))
    out = tmp_path / "run"
    code, _, told = run("train", "--source", source, "--target", target, "--out", out, *SHORT)
    assert code == 2
    assert "must have the same number of lines" in told and "50" in told and "47" in told


def test_a_saved_model_learns_more(run, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the king is dead. long live the king.\n" * 40)
    first, second = tmp_path / "first", tmp_path / "second"
    steps = ("--set", "until.steps=3", "--set", "model.dim=32", "--set", "model.n_layers=1")
    code, _, err = run("train", "--text", text, "--out", first, *steps)
    assert code == 0, err
    more = ("--from", f"{first}/model", "--set", "until.steps=2")
    code, out, err = run("train", "--text", text, "--out", second, *more)
    assert code == 0 and "2 steps" in out, err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--from", "reader"), "--from needs texts to fine-tune on"),
        (("--from", "reader", "--text", "x", "--to", "fr"), "--to needs --from"),
        (("--source", "a", "--target", "b", "--to", "fr"), "--to needs --from"),
        (("--source", "a", "--from", "reader"), "needs both --source and --target; only one"),
    ],
)
def test_what_does_not_go_together(run, tmp_path, words, sentence):
    code, _, err = run("train", *words, "--out", tmp_path / "run")
    assert code == 2 and sentence in err
    assert not (tmp_path / "run").exists()
