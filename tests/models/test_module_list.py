"""Modules are listed once, and again when one was replaced."""

import gc
import weakref

import pytest
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
        lambda: model[1].append(model[0]._modules.pop("1")),
        lambda: model[1].add_module("renamed", model[1]._modules.pop("1")),
        lambda: setattr(model[0], "1", nn.GELU()),
        lambda: model[1].append(nn.Linear(3, 3)),
        lambda: model.add_module("last", nn.Identity()),
        lambda: delattr(model, "last"),
        lambda: setattr(model, "0", build()),
    ):
        change()
        check(model)
        check(model)


def know_by_hook(model: nn.Module) -> None:
    model[0][0].register_forward_hook(lambda *_: len(model))


def know_by_attribute(model: nn.Module) -> None:
    model[0][1].__dict__["owner"] = [model]


def know_as_a_part(model: nn.Module) -> None:
    model[1].append(model)


@pytest.mark.parametrize("know", [id, know_by_hook, know_by_attribute, know_as_a_part])
def test_a_model_is_not_kept_alive(know) -> None:
    """Not by its modules either, one of which may know it."""
    model = build()
    know(model)
    check(model)
    check(model)
    gone = [weakref.ref(each) for each in model.modules()]
    del model
    gc.collect()
    assert not any(each() for each in gone)


def test_a_module_is_gone_and_none_is_in_its_place() -> None:
    model = build()
    list_modules(model)
    model[1]._modules["1"] = None
    gc.collect()
    check(model)
    check(model)
    model[1]._modules["1"] = nn.Tanh()
    check(model)
