"""Finding the model that is meant, and walking its modules once."""

from typing import Any

import pytest
import torch
from torch import nn

from glassformer.tracing import watch
from glassformer.tracing.model_lookup import ModuleTree
from letter_models import letter_model
from tiny_models import tiny


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
    model, usual, walks = make(), nn.Module.named_modules, []

    def counted(self: nn.Module, memo: Any = None, *args: Any, **options: Any) -> Any:
        if memo is None:  # a walk that begins here, not the recursion of another
            walks.append(type(self).__name__)
        return usual(self, memo, *args, **options)

    with torch.no_grad():
        model(given)
        monkeypatch.setattr(nn.Module, "named_modules", counted)
        with watch(model) as trace:
            monkeypatch.undo()
            model(given)
    assert walks == [type(model).__name__]
    assert len(trace) > 0
