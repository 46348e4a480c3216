"""Fine-tuning: a run begins with what a saved model knows."""

import pytest
import torch

import glassformer as gf
from glassformer.errors import ConfigError
from glassformer.training import Recipe, train
from glassformer.training.data import prepare, prepared
from glassformer.training.display import Silence
from glassformer.training.finetuning import continued, origin_of
from glassformer.training.model_building import build_model
from glassformer.training.settings import plain
from glassformer.training.tasks import TASKS
from training import small_runs


@pytest.fixture(scope="module")
def backwards(tmp_path_factory):
    """A model that has learned for a while to write words backwards."""
    folder = tmp_path_factory.mktemp("first")
    recipe = small_runs.translation(folder, until={"steps": 60})
    return recipe, train(recipe, out=folder / "run", show=Silence())


def further(recipe, model, *changes):
    values = {**plain(recipe), "model": {"from": str(model)}, "tokenizer": {}}
    return Recipe.from_dict(values, changes)


def first(recipe, folder):
    prepare(recipe, folder)
    data = prepared(folder)
    return build_model(recipe, TASKS[recipe.task](recipe, data))


def test_it_begins_where_the_other_ended(backwards, tmp_path):
    recipe, before = backwards
    model = first(further(recipe, before.model), tmp_path)
    known = gf.load(before.model)
    for name, tensor in known.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor), name
    assert model.tokenizer.encode("a b c") == known.tokenizer.encode("a b c")
    assert model.special == known.special


def test_what_was_learned_is_not_learned_again(backwards, tmp_path):
    recipe, before = backwards
    again = train(
        further(recipe, before.model, "until.steps=20"), out=tmp_path / "b", show=Silence()
    )
    scratch = Recipe.from_dict(plain(recipe), ["until.steps=20"])
    new = train(scratch, out=tmp_path / "a", show=Silence())
    assert again.scores["loss"] < before.scores["loss"] < new.scores["loss"]


def test_dropout_may_change_and_nothing_else(backwards, tmp_path):
    recipe, before = backwards
    changed = further(recipe, before.model, "model.dropout={residual=0.5}")
    assert first(changed, tmp_path).config.dropout.residual == 0.5
    with pytest.raises(ConfigError, match=r"keeps its shape; got model\.dim\. Leave it out"):
        first(further(recipe, before.model, "model.dim=64"), tmp_path / "other")


def test_a_relative_name_is_beside_the_recipe(backwards, tmp_path):
    recipe, _ = backwards
    (tmp_path / "mine").mkdir()
    assert further(recipe, "mine").beside(tmp_path).model["from"] == str(tmp_path / "mine")
    assert further(recipe, "reader").beside(tmp_path).model["from"] == "reader"


def test_a_reader_becomes_a_classifier(tmp_path):
    rows = [f"The king is {word}.\t{word}" for word in ("glad", "dead") * 10]
    (tmp_path / "moods.tsv").write_text("\n".join(rows) + "\n")
    values = {
        "task": "classification",
        "data": {"train": [{"files": [str(tmp_path / "moods.tsv")]}]},
        "model": {"from": "reader"},
        "schedule": {"kind": "constant", "lr": 1e-3},
        "until": {"steps": 25},
    }
    result = train(Recipe.from_dict(values), out=tmp_path / "run", show=Silence())
    model = gf.load(result.model)
    assert model.config.output.classes == ("dead", "glad")
    for text in ("glad", "dead"):
        tokens = torch.tensor([model.tokenizer.encode(f"The king is {text}.")])
        scores = model.classify(model(tokens))[0]
        assert model.config.output.classes[int(scores.argmax())] == text


@pytest.mark.plain
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"from": 3}, "model.from must name a saved model; got 3"),
        ({"from": "reader"}, "family 'encoder_decoder'; reader is of 'encoder'"),
        ({"from": "nowhere"}, "'nowhere' is not there"),
    ],
)
def test_what_cannot_be_begun_with(tmp_path, changes, sentence):
    values = {**plain(small_runs.translation(tmp_path)), "model": changes, "tokenizer": {}}
    with pytest.raises(gf.errors.GlassformerError, match=sentence):
        first(Recipe.from_dict(values), tmp_path / "run")


@pytest.mark.plain
def test_tokens_that_it_does_not_know(backwards):
    recipe, before = backwards
    begun = further(recipe, before.model)
    origin = origin_of(begun)
    with pytest.raises(ConfigError, match=r"Tokens must be those that .* the tokenizer has 6,000"):
        continued(begun, origin, vocab_size=6000, classes=())


@pytest.mark.plain
def test_a_model_of_several_languages_is_told_which(tmp_path):
    values = plain(small_runs.translation(tmp_path, until={"steps": 1}))
    values["data"]["train"][0]["prefix"] = "<fr> "
    before = train(Recipe.from_dict(values), out=tmp_path / "run", show=Silence())
    values["data"]["train"][0]["prefix"] = ""
    with pytest.raises(ConfigError, match=r"writes fr; which one, must be told\. Use --to fr"):
        origin_of(further(Recipe.from_dict(values), before.model))
