import os
import tomllib
from datetime import date
from pathlib import Path

import pytest

from glassformer.errors import ConfigError
from glassformer.training import Recipe, train
from glassformer.training.finetuning import load_base_model
from glassformer.training.model_building import model_config
from glassformer.training.overrides import apply_overrides

LEAST = {
    "task": "language",
    "data": {"train": [{"files": ["book.txt"]}]},
    "until": {"steps": 10},
}


def test_a_recipe_survives_its_file(tmp_path):
    values = {
        **LEAST,
        "model": {"dim": 8, "dropout": {"residual": 0.1}},
        "schedule": {"kind": "cosine", "lr": 1e-3, "least": 1e-5},
        "snapshots": {"every": 5, "text": 'a "quoted" line\nand 我'},
    }
    recipe = Recipe.from_dict(values).resolve_paths(tmp_path)
    (tmp_path / "again.toml").write_text(recipe.as_toml(), encoding="utf-8")
    assert Recipe.from_toml(tmp_path / "again.toml") == recipe


def test_any_value_survives_a_file():
    values = {
        "a b": {},
        "t": {"u": {}},
        "mixed": [{"x": 1}, 2],
        "date": date(2026, 1, 2),
        "odd": '\U000e0001 \0 "',
    }
    recipe = Recipe.from_dict({**LEAST, "model": values})
    assert tomllib.loads(recipe.as_toml())["model"] == values


def test_names_are_beside_the_file(tmp_path):
    (tmp_path / "r.toml").write_text(Recipe.from_dict(LEAST).as_toml())
    recipe = Recipe.from_toml(tmp_path / "r.toml")
    assert recipe.data.train[0].files == (str(tmp_path / "book.txt"),)
    moved = Recipe.from_toml(tmp_path / "r.toml", ["data.folder=/far"])
    assert moved.data.train[0].files == ("/far/book.txt",)


def test_overrides_from_the_command_line():
    recipe = Recipe.from_dict(
        LEAST, ["until.steps=7", "data.train.0.files=['a','b']", "schedule.kind=constant"]
    )
    assert recipe.until.steps == 7
    assert recipe.data.train[0].files == ("a", "b")
    assert recipe.schedule.kind == "constant"


def test_every_recipe_of_ours_is_valid():
    folder = Path(__file__).parents[2] / "recipes"
    for path in sorted(folder.glob("*.toml")):
        recipe = Recipe.from_toml(path)
        if load_base_model(recipe) is None:
            model_config(recipe, vocab_size=1000)


def test_what_decides_about_the_weights():
    base = Recipe.from_dict(LEAST)
    for change in ("until.steps=99", "evaluate.every_steps=3", "show.every=7", "out=x"):
        assert Recipe.from_dict(LEAST, [change]).essence() == base.essence()
    for change in ("seed=5", "schedule.lr=0.1", "model.dim=3", "batches.rows=2", "save.ema=0.9"):
        assert Recipe.from_dict(LEAST, [change]).essence() != base.essence()
    cosine = [Recipe.from_dict(LEAST, ["schedule.kind=cosine", f"until.steps={n}"]) for n in (5, 9)]
    assert cosine[0].essence() != cosine[1].essence()  # its way down ends elsewhere


@pytest.mark.plain
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["schedul.lr=1"], "no setting schedul. Did you mean schedule?"),
        (["schedule.ls=1"], "no setting schedule.ls. Did you mean schedule.lr?"),
        (["zzzz=1"], "no setting zzzz. Known: task, data"),
        (["schedule.lr=fast"], "schedule.lr must be a number; got 'fast'"),
        (["until.steps=1.5"], "until.steps must be a whole number; got 1.5"),
        (["until.steps=true"], "until.steps must be a whole number; got True"),
        (["compute.compile=1"], "compute.compile must be true or false; got 1"),
        (["task=poetry"], "task must be one of language, masked, .*; got 'poetry'"),
        (["data.train=[]"], "at least one corpus in data.train; got none"),
        (["data.train.3.files=x"], "addressed by an index below 1; got 'data.train.3.files=x'"),
        (["schedule=3"], "schedule must be a table of settings; got 3"),
        (["until"], "form section.key=value; got 'until'"),
        (["task.x=1"], "task is not a section; got 'task.x=1'"),
        (["until.steps=0"], "until.steps must be at least 1; got 0"),
        (["seed=-1"], "seed must be at least 0; got -1"),
        (["label_smoothing=1.0"], "label_smoothing must be at least 0 and less than 1; got 1.0"),
        (["consistency=-1.0"], "consistency must be at least 0; got -1.0"),
        (["batches.rows=0"], "batches.rows must be at least 1; got 0"),
        (["batches.masked=1.0"], "batches.masked must be greater than 0 and less than 1; got 1.0"),
        (["save.keep=0"], "save.keep must be at least 1; got 0"),
        (["save.ema=1.0"], "save.ema must be at least 0 and less than 1; got 1.0"),
        (["save.ema=0.9", "save.average=2"], "exclude each other; got ema=0.9, average=2"),
        (["data.valid_share=1.0"], "data.valid_share must be .* less than 1; got 1.0"),
        (["data.train.0.repeat=0"], "data.train.0.repeat must be at least 1; got 0"),
        (["data.train.0.files=[]"], "must name its files; got none"),
        (["batches.pool=0"], "batches.pool must be at least 1; got 0"),
        (["show.every=0"], "show.every must be at least 1; got 0"),
        (["save.every_steps=-5"], "save.every_steps must be at least 1; got -5"),
        (["until.steps=3000000000"], "until.steps must be at most 2,147,483,647; got 3000000000"),
        (["seed=99999999999999999999"], "seed must be a whole number of 64 bits"),
        (["schedule.lr=nan"], "schedule.lr must be a finite number; got nan"),
        (["schedule.kind=cosin"], "got 'cosin'. Did you mean 'cosine'?"),
        (["data.folder=~nosuchuser/x"], "home folder of a user who does not exist"),
        ([f"data.folder={'x' * 5000}"], "cannot be a path: File name too long"),
        (['data.train.0.files="a\\u0000b"'], "must not contain null characters"),
    ],
)
def test_refusals(changes, sentence):
    with pytest.raises(ConfigError, match=sentence):
        Recipe.from_dict(LEAST, changes).resolve_paths(Path("/"))


@pytest.mark.plain
def test_what_must_be_said():
    with pytest.raises(ConfigError, match="must have the setting until; it is missing"):
        Recipe.from_dict({"task": "language", "data": LEAST["data"]})
    with pytest.raises(ConfigError, match=r"set until\.steps or until.epochs"):
        Recipe.from_dict({**LEAST, "until": {}})
    with pytest.raises(ConfigError, match=r"set schedule\.steps or until.steps"):
        Recipe.from_dict({**LEAST, "until": {"epochs": 2}, "schedule": {"kind": "cosine"}})


@pytest.mark.plain
def test_a_wrong_model_fails_before_anything_is_written(tmp_path):
    recipe = Recipe.from_dict(LEAST, ["model.dmi=64"])
    with pytest.raises(ConfigError, match=r"no setting model\.dmi"):
        train(recipe, out=tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


@pytest.mark.plain
def test_files_that_are_no_recipe(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Recipe.from_toml(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = ")
    with pytest.raises(ConfigError, match="is not TOML"):
        Recipe.from_toml(tmp_path / "bad.toml")
    for name, text, sentence in (
        ("deep", "a = " + "[" * 50_000, "nested too deeply"),
        ("levels", "a = " + "[" * 100 + "]" * 100, "nested more than 64 levels"),
        ("digits", "seed = " + "9" * 5000, "is not TOML: Exceeds the limit"),
        ("large", "# " + "x" * (1 << 20), "must have at most 1,048,576 bytes"),
    ):
        (tmp_path / f"{name}.toml").write_text(text)
        with pytest.raises(ConfigError, match=sentence):
            Recipe.from_toml(tmp_path / f"{name}.toml")


@pytest.mark.plain
def test_a_path_that_no_recipe_can_have(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")  # nobody writes into it
    with pytest.raises(ConfigError, match="it is not a regular file"):
        Recipe.from_toml(tmp_path / "pipe.toml")
    with pytest.raises(ConfigError, match="home folder of a user who does not exist"):
        Recipe.from_toml("~nosuchuser/r.toml")
    with pytest.raises(ConfigError, match="cannot be a path: File name too long"):
        Recipe.from_toml("x" * 5000)


def test_models():
    recipe = Recipe.from_dict(LEAST, ["model.dim=64", "model.dropout={residual=0.5}"])
    config = model_config(recipe, vocab_size=99)
    assert (config.family, config.dim, config.vocab_size) == ("decoder", 64, 99)
    assert config.dropout.residual == 0.5 and config.dropout.embedding == 0.1  # the preset's
    with pytest.raises(ConfigError, match="must be one of transformer-base"):
        model_config(Recipe.from_dict(LEAST, ["model.preset=gpt-9"]), vocab_size=9)
    with pytest.raises(ConfigError, match=r"family 'decoder'; 'bert-base' is of 'encoder'"):
        model_config(Recipe.from_dict(LEAST, ["model.preset=bert-base"]), vocab_size=9)
    for change, sentence in (
        ("model.dmi=64", r"The recipe has no setting model\.dmi\. Did you mean model\.dim\?"),
        ("model.prest=gpt-2", r"has no setting model\.prest\. Did you mean model\.preset\?"),
        ("model.n_heads=many", r"model\.n_heads must be a whole number; got 'many'"),
        ("model.dropout={residul=0.5}", r"no setting model\.dropout\.residul\. Did you mean"),
        ("model.initial=xaver", r"model\.initial must be one of .*; got 'xaver'\. Did you mean"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            model_config(Recipe.from_dict(LEAST, [change]), vocab_size=9)
    lstm = Recipe.from_dict({**LEAST, "task": "masked", "model": {"family": "lstm"}})
    with pytest.raises(ConfigError, match="language and translation; got task 'masked'"):
        model_config(lstm, vocab_size=9)


def test_overrides_leave_the_values_given_alone():
    values = {"a": {"b": 1}}
    assert apply_overrides(values, ["a.b=2"]) == {"a": {"b": 2}}
    assert values == {"a": {"b": 1}}
