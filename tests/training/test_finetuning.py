"""Fine-tuning: a run begins with what a saved model knows."""

import pytest
import torch

import glassformer as gf
from glassformer.errors import ConfigError
from glassformer.settings import as_plain
from glassformer.training import Recipe, train
from glassformer.training.data import open_data, prepare_data
from glassformer.training.display import SilentDisplay
from glassformer.training.finetuning import build_finetuned, load_base_model
from glassformer.training.model_building import build_model
from glassformer.training.tasks import TASKS
from training import small_runs


@pytest.fixture(scope="module")
def backwards(tmp_path_factory):
    """A model that has learned for a while to write words backwards."""
    folder = tmp_path_factory.mktemp("first")
    recipe = small_runs.translation(folder, until={"steps": 60})
    return recipe, train(recipe, out=folder / "run", show=SilentDisplay())


def further(recipe, model, *changes):
    values = {**as_plain(recipe), "model": {"from": str(model)}, "tokenizer": {}}
    return Recipe.from_dict(values, changes)


def first(recipe, folder):
    prepare_data(recipe, folder)
    data = open_data(folder)
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
        further(recipe, before.model, "until.steps=20"), out=tmp_path / "b", show=SilentDisplay()
    )
    scratch = Recipe.from_dict(as_plain(recipe), ["until.steps=20"])
    new = train(scratch, out=tmp_path / "a", show=SilentDisplay())
    assert again.scores["loss"] < before.scores["loss"] < new.scores["loss"]


def test_dropout_may_change_and_nothing_else(backwards, tmp_path):
    recipe, before = backwards
    changed = further(recipe, before.model, "model.dropout={residual=0.5}")
    assert first(changed, tmp_path).config.dropout.residual == 0.5
    typo = further(recipe, before.model, "model.dropout={residul=0.5}")
    with pytest.raises(ConfigError, match=r"no setting model\.dropout\.residul\. Did you mean"):
        first(typo, tmp_path)
    with pytest.raises(ConfigError, match=r"keeps the shape of the .*; got model\.dim\. Remove it"):
        first(further(recipe, before.model, "model.dim=64"), tmp_path / "other")


def test_a_relative_name_is_beside_the_recipe(backwards, tmp_path):
    recipe, _ = backwards
    (tmp_path / "mine").mkdir()
    assert further(recipe, "mine").resolve_paths(tmp_path).model["from"] == str(tmp_path / "mine")
    assert further(recipe, "reader").resolve_paths(tmp_path).model["from"] == "reader"


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
    result = train(Recipe.from_dict(values), out=tmp_path / "run", show=SilentDisplay())
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
    values = {**as_plain(small_runs.translation(tmp_path)), "model": changes, "tokenizer": {}}
    with pytest.raises(gf.errors.GlassformerError, match=sentence):
        first(Recipe.from_dict(values), tmp_path / "run")


@pytest.mark.plain
def test_tokens_that_it_does_not_know(backwards):
    recipe, before = backwards
    begun = further(recipe, before.model)
    origin = load_base_model(begun)
    with pytest.raises(ConfigError, match=r"knows 12 tokens, but the tokenizer has 6,000"):
        build_finetuned(begun, origin, vocab_size=6000, classes=())


@pytest.mark.plain
def test_a_model_of_several_languages_needs_to_know_which(tmp_path):
    values = as_plain(small_runs.translation(tmp_path, until={"steps": 1}))
    values["data"]["train"][0]["prefix"] = "<fr> "
    before = train(Recipe.from_dict(values), out=tmp_path / "run", show=SilentDisplay())
    values["data"]["train"][0]["prefix"] = ""
    with pytest.raises(ConfigError, match=r"translates into fr; say which\. Use --to fr"):
        load_base_model(further(Recipe.from_dict(values), before.model))


def test_adapters_alone_are_trained(backwards, tmp_path):
    recipe, before = backwards
    changes = ("model.lora.rank=3", 'model.lora.targets=["qkv", "kv"]', "until.steps=4")
    result = train(
        further(recipe, before.model, *changes), out=tmp_path / "run", show=SilentDisplay()
    )
    known, trained = gf.load(before.model), gf.load(result.model)
    assert trained.config == known.config
    changed = {
        name.rsplit(".", 2)[1]
        for name, tensor in trained.state_dict().items()
        if not torch.equal(tensor, known.state_dict()[name])
    }
    assert changed == {"qkv", "kv"}
    again = gf.load_lora(gf.load(before.model), tmp_path / "run" / "adapter.safetensors")
    tokens = torch.tensor([[3, 4, 5]])
    found, expected = (model(tokens, tokens) for model in (again, trained))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


@pytest.mark.plain
def test_adapters_need_a_saved_model(tmp_path):
    recipe = small_runs.translation(tmp_path)
    recipe = Recipe.from_dict(as_plain(recipe), ["model.lora.rank=2"])
    with pytest.raises(ConfigError, match=r"got model.lora without model.from"):
        first(recipe, tmp_path)
