"""Modules are listed once, and again when one was replaced."""

import gc
import weakref

from torch import nn

from glassformer.models.module_list import list_modules


def build() -> nn.Module:
    shared = nn.Linear(2, 2)
    return nn.Sequential(nn.Sequential(shared, nn.ReLU()), nn.ModuleList([shared, nn.Tanh()]))


def check(model: nn.Module) -> None:
    assert list_modules(model) == [*model.named_modules()]


def test_a_module_that_was_replaced_added_or_removed_is_noticed() -> None:
    model = build()
    for change in (
        lambda: None,
        lambda: setattr(model[0], "1", nn.GELU()),
        lambda: model[1].append(nn.Linear(3, 3)),
        lambda: model.add_module("last", nn.Identity()),
        lambda: delattr(model, "last"),
        lambda: setattr(model, "0", build()),
    ):
        change()
        check(model)
        check(model)


def test_a_model_is_not_kept_alive() -> None:
    model = build()
    list_modules(model)
    seen = weakref.ref(model)
    del model
    gc.collect()
    assert seen() is None
