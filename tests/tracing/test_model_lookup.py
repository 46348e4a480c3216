"""Finding the model that is meant, and walking its modules once."""

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
