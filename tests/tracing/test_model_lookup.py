"""Finding the model that is meant, and walking its modules once."""

import gc
import weakref
from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn

from glassformer.tracing import watch
from glassformer.tracing.model_lookup import ModuleTree
from letter_models import letter_model
from tiny_models import tiny


def test_paths_are_those_of_pytorch_and_in_its_order() -> None:
    shared = nn.Linear(2, 2)
    model = nn.Sequential(nn.Sequential(shared, nn.ReLU()), shared, nn.ModuleList([shared]), None)
    for each in (model, tiny("bart"), letter_model("decoder")):
        tree = ModuleTree(each)
        named = list(each.named_modules())
        assert [(path, module) for module, path in tree.paths.items()] == named
        assert {kind: len(found) for kind, found in tree.kinds.items()} == Counter(
            type(module) for _, module in named
        )


def test_parts_and_wholes_also_where_a_module_is_shared() -> None:
    shared = nn.Linear(2, 2)
    model = nn.ModuleDict({"a": nn.Sequential(shared, nn.ReLU()), "b": nn.Sequential(shared)})
    tree = ModuleTree(model)
    assert set(tree.below([model["b"]])) == {model["b"], shared}
    assert set(tree.above([shared])) == {shared, model["a"], model["b"], model}
    assert tree.of(model) is tree
    assert list(tree.of(model["a"]).paths.values()) == ["", "0", "1"]


def nested() -> nn.Sequential:
    shared = nn.Linear(2, 2)
    return nn.Sequential(nn.Sequential(shared, nn.ReLU()), nn.Sequential(nn.Tanh(), shared))


def set_class(model: nn.Sequential) -> None:
    model[1][0].__class__ = type("Sharded", (nn.Tanh,), {})


CHANGES = {
    "nothing": lambda _: None,
    "replaced": lambda model: model[0].__setitem__(1, nn.GELU()),
    "replaced at the top": lambda model: model.__setitem__(1, nn.GELU()),
    "added": lambda model: model[1].append(nn.Dropout()),
    "added at the top": lambda model: model.append(nn.Dropout()),
    "removed": lambda model: model[1].__delitem__(0),
    "left out": lambda model: setattr(model[0], "1", None),
    "renamed": lambda model: model[1].add_module("last", model[1]._modules.pop("1")),
    "renamed at the top": lambda model: model.add_module("last", model._modules.pop("1")),
    "moved": lambda model: model[1].append(model[0]._modules.pop("1")),
    "of another class": set_class,
    "parametrized": lambda model: nn.utils.parametrizations.weight_norm(model[0][0]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_tree_is_that_of_the_model_as_it_is(name: str) -> None:
    model, other = nested(), nested()
    ModuleTree(model)
    for each in (model, other):
        CHANGES[name](each)
    again, fresh = ModuleTree(model), ModuleTree(other)
    expected = dict(model.named_modules())
    assert list(again.paths.values()) == list(expected) == list(fresh.paths.values())
    assert list(again.paths) == list(expected.values())
    for kind, modules in again.kinds.items():
        assert modules == [module for module in expected.values() if type(module) is kind]
    assert sum(map(len, again.kinds.values())) == len(expected)
    for module in expected.values():
        assert set(again.below([module])) == {*module.modules()}
        above = {each for each in expected.values() if module in {*each.modules()}}
        assert set(again.above([module])) == above


def test_a_tree_keeps_no_model_alive() -> None:
    model = nested()
    inside = nn.Sequential(nn.Identity())
    inside.append(model)
    ModuleTree(model)
    ModuleTree(inside)
    around = nn.Sequential(nn.Linear(2, 2))
    around[0].add_module("owner", around)  # a part that knows its model
    ModuleTree(around)
    around[0].register_forward_hook(lambda *_: around)
    gone = [weakref.ref(each) for each in (model, inside, around)]
    del model, inside, around
    gc.collect()
    assert not any(each() for each in gone)


MODELS = {
    "ours": (lambda: letter_model("decoder"), torch.tensor([[4, 5, 6]])),
    "transformers": (lambda: tiny("bart"), torch.tensor([[4, 5, 6]])),
    "torch": (
        lambda: nn.TransformerEncoderLayer(12, 3, 16, batch_first=True).eval(),
        torch.randn(1, 4, 12),
    ),
}


@pytest.mark.parametrize("kind", MODELS)
def test_entering_walks_the_modules_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, given = MODELS[kind]
    model, walks = make(), []
    usual, listed = ModuleTree.__init__, nn.Module.named_modules

    def walk(self: ModuleTree, model: nn.Module) -> None:
        walks.append(type(model).__name__)
        usual(self, model)

    def name(self: nn.Module, *args: Any, **options: Any) -> Any:
        walks.append(type(self).__name__)
        return listed(self, *args, **options)

    with torch.no_grad():
        model(given)
        monkeypatch.setattr(ModuleTree, "__init__", walk)
        monkeypatch.setattr(nn.Module, "named_modules", name)
        with watch(model) as trace:
            monkeypatch.undo()
            model(given)
    assert walks == [type(model).__name__]
    assert len(trace) > 0
