import pytest

from glassformer.errors import ConfigError
from glassformer.train import Recipe
from glassformer.train.beginning import origin_of
from glassformer.train.building import model_config
from glassformer.train.settings import as_toml, changed

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
        "film": {"every": 5, "text": 'a "quoted" line\nand 我'},
    }
    recipe = Recipe.from_dict(values).beside(tmp_path)
    (tmp_path / "again.toml").write_text(recipe.as_toml(), encoding="utf-8")
    assert Recipe.from_toml(tmp_path / "again.toml") == recipe


def test_names_are_beside_the_file(tmp_path):
    (tmp_path / "r.toml").write_text(as_toml(LEAST))
    recipe = Recipe.from_toml(tmp_path / "r.toml")
    assert recipe.data.train[0].files == (str(tmp_path / "book.txt"),)
    moved = Recipe.from_toml(tmp_path / "r.toml", ["data.folder=/far"])
    assert moved.data.train[0].files == ("/far/book.txt",)


def test_changes_from_the_command_line():
    recipe = Recipe.from_dict(
        LEAST, ["until.steps=7", "data.train.0.files=['a','b']", "schedule.kind=constant"]
    )
    assert recipe.until.steps == 7
    assert recipe.data.train[0].files == ("a", "b")
    assert recipe.schedule.kind == "constant"


def test_every_recipe_of_ours_is_valid():
    from pathlib import Path

    folder = Path(__file__).parents[2] / "recipes"
    for path in sorted(folder.glob("*.toml")):
        recipe = Recipe.from_toml(path)
        if origin_of(recipe) is None:
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
        (["schedul.lr=1"], "got schedul. Did you mean schedule?"),
        (["schedule.ls=1"], "got schedule.ls. Did you mean schedule.lr?"),
        (["zzzz=1"], "got zzzz. Known: task, data"),
        (["schedule.lr=fast"], "schedule.lr must be a number; got 'fast'"),
        (["until.steps=1.5"], "until.steps must be a whole number; got 1.5"),
        (["until.steps=true"], "until.steps must be a whole number; got True"),
        (["compute.compile=1"], "compute.compile must be true or false; got 1"),
        (["task=poetry"], "task must be one of language, masked, .*; got 'poetry'"),
        (["data.train=[]"], "at least one corpus in data.train; got none"),
        (["data.train.3.files=x"], "named by a number below 1; got 'data.train.3.files=x'"),
        (["schedule=3"], "schedule must be a table of settings; got 3"),
        (["until"], "form section.key=value; got 'until'"),
        (["task.x=1"], "task must be a table to change what is in it"),
        (["until.steps=0"], "until.steps must be at least 1; got 0"),
        (["seed=-1"], "seed must be at least 0; got -1"),
        (["label_smoothing=1.0"], "without 1; got 1.0"),
        (["consistency=-1.0"], "consistency must be at least 0; got -1.0"),
        (["batches.rows=0"], "batches.rows must be at least 1; got 0"),
        (["batches.masked=1.0"], "between 0 and 1; got 1.0"),
        (["save.keep=0"], "save.keep and save.average must be at least 1; got 0, 1"),
        (["save.ema=1.0"], "save.ema must be in 0 … 1, without 1; got 1.0"),
        (["save.ema=0.9", "save.average=2"], "one mean or the other; got ema=0.9, average=2"),
        (["data.valid_share=1.0"], "without 1; got 1.0"),
        (["data.train.0.repeat=0"], "repeat must be at least 1; got repeat=0"),
        (["data.train.0.files=[]"], "must name its files; got none"),
    ],
)
def test_refusals(changes, sentence):
    with pytest.raises(ConfigError, match=sentence):
        Recipe.from_dict(LEAST, changes)


@pytest.mark.plain
def test_what_must_be_said():
    with pytest.raises(ConfigError, match="must say until; it does not"):
        Recipe.from_dict({"task": "language", "data": LEAST["data"]})
    with pytest.raises(ConfigError, match=r"give until\.steps or until.epochs"):
        Recipe.from_dict({**LEAST, "until": {}})
    with pytest.raises(ConfigError, match=r"give schedule\.steps or until.steps"):
        Recipe.from_dict({**LEAST, "until": {"epochs": 2}, "schedule": {"kind": "cosine"}})


@pytest.mark.plain
def test_files_that_are_no_recipe(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Recipe.from_toml(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = ")
    with pytest.raises(ConfigError, match="is not TOML"):
        Recipe.from_toml(tmp_path / "bad.toml")


def test_models():
    recipe = Recipe.from_dict(LEAST, ["model.dim=64", "model.dropout={residual=0.5}"])
    config = model_config(recipe, vocab_size=99)
    assert (config.family, config.dim, config.vocab_size) == ("decoder", 64, 99)
    assert config.dropout.residual == 0.5 and config.dropout.embedding == 0.1  # the preset's
    with pytest.raises(ConfigError, match="must be one of transformer-base"):
        model_config(Recipe.from_dict(LEAST, ["model.preset=gpt-9"]), vocab_size=9)
    with pytest.raises(ConfigError, match=r"family 'decoder'; 'bert-base' is of 'encoder'"):
        model_config(Recipe.from_dict(LEAST, ["model.preset=bert-base"]), vocab_size=9)
    lstm = Recipe.from_dict({**LEAST, "task": "masked", "model": {"family": "lstm"}})
    with pytest.raises(ConfigError, match="language or translation; got the task 'masked'"):
        model_config(lstm, vocab_size=9)


def test_changing_does_not_touch_what_came():
    values = {"a": {"b": 1}}
    assert changed(values, ["a.b=2"]) == {"a": {"b": 2}}
    assert values == {"a": {"b": 1}}
