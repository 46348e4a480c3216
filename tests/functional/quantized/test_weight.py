"""A matrix of one byte a number where modules expect one of floats."""

import copy
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from closeness import assert_same
from glassformer.errors import ConfigError
from glassformer.functional.quantized import (
    KINDS,
    QuantizedWeight,
    as_parameter,
    dequantize_rows,
    quantized_linear,
)


@pytest.fixture(params=KINDS)
def weight(request) -> QuantizedWeight:
    floats = torch.randn(7, 13, generator=torch.Generator().manual_seed(0))
    return QuantizedWeight.of(floats, request.param)


def test_products_and_lookups_read_the_numbers(weight: QuantizedWeight) -> None:
    x, bias = torch.randn(3, 13), torch.randn(7)
    assert_same(F.linear(x, weight, bias), quantized_linear(x, weight.numbers, weight.scale, bias))
    assert_same(F.linear(x, weight), quantized_linear(x, weight.numbers, weight.scale))
    tokens = torch.tensor([[6, 0, 2]])
    assert_same(F.embedding(tokens, weight), weight.float_values()[tokens])


def test_everything_else_gets_floats(weight: QuantizedWeight) -> None:
    floats = dequantize_rows(weight.numbers, weight.scale)
    for found, expected in (
        (weight + 1, floats + 1),
        (weight.T @ weight, floats.T @ floats),
        (weight[2:4], floats[2:4]),
        (torch.cat([weight, weight]), torch.cat([floats, floats])),
        (torch.empty(7, 13).copy_(weight), floats),
        (weight.new_zeros(2, 3), torch.zeros(2, 3)),
    ):
        assert type(found) is torch.Tensor
        assert_same(found, expected)


def test_it_moves_and_is_copied_as_a_parameter(weight: QuantizedWeight) -> None:
    layer = nn.Linear(13, 7)
    layer.weight = as_parameter(weight)
    twin = copy.deepcopy(layer)
    assert isinstance(twin.weight, QuantizedWeight) and isinstance(twin.weight, nn.Parameter)
    assert twin.weight.numbers.data_ptr() != weight.numbers.data_ptr()
    layer.to(torch.bfloat16)
    assert isinstance(layer.weight, QuantizedWeight)
    assert (layer.weight.dtype, layer.weight.scale.dtype) == (torch.bfloat16, torch.float32)
    assert layer(torch.randn(2, 13).bfloat16()).dtype == torch.bfloat16
    layer.to("meta")
    assert layer.weight.is_meta and layer.weight.numbers.is_meta
    assert twin.state_dict()["weight"].numbers.dtype == KINDS[weight.kind]
    assert re.fullmatch(
        rf"QuantizedWeight\(\(7, 13\), {weight.kind}, torch.float32, cpu\)", repr(twin.weight)
    )


@pytest.mark.plain
def test_it_cannot_be_changed_in_place(weight: QuantizedWeight) -> None:
    with pytest.raises(ConfigError, match=rf"{weight.kind} weights .* got mul_ on \(7, 13\)"):
        weight.mul_(2)
    with pytest.raises(ConfigError, match=r"got copy_ on \(7, 13\)"):
        weight.copy_(torch.zeros(7, 13))


@pytest.mark.plain
def test_compiled_code_follows_the_definition(weight: QuantizedWeight) -> None:
    x = torch.randn(3, 13)
    compiled = torch.compile(F.linear, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, weight), F.linear(x, weight.float_values()))
