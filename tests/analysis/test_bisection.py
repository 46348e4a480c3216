"""Two runs bisected: planted faults are named by place, operand and kind."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from analysis.held_out_faults import HELD_OUT
from analysis.planted_faults import FAULTS, make_model, tokens, trace_model
from glassformer.analysis import bisect
from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.tracing import Run, Trace, watch


@cache
def healthy(model: str) -> Trace:
    return trace_model(make_model(model))


@pytest.mark.parametrize("name", [*FAULTS, *HELD_OUT])
def test_a_planted_fault_is_named(name: str) -> None:
    fault = {**FAULTS, **HELD_OUT}[name]
    found = bisect(healthy(fault.model), fault.run())
    origin = found.origin
    assert origin is not None
    assert (origin.name, origin.operands) == (fault.where, fault.operands)
    if fault.kind is not None:
        kinds = {operand: kind.name for operand, kind in origin.kinds.items()}
        assert kinds == dict.fromkeys(fault.operands, fault.kind)
        for operand in fault.operands:
            check_values(origin.kinds[operand].values, fault.values)
    for code in ("en", "zh"):
        assert fault.where in found.verdict(Language(code))


def check_values(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for key, value in expected.items():
        if isinstance(value, float):
            assert found[key] == pytest.approx(value, rel=0.02)
        else:
            assert found[key] == value


def test_the_same_model_twice() -> None:
    found = bisect(healthy("llama"), trace_model(make_model("llama")))
    assert (found.origin, found.token, found.cell) == (None, None, None)
    assert found.largest == 0
    assert "rounding in float32" in str(found)


def test_bfloat16_against_float32_is_rounding() -> None:
    """A whole model in another type differs everywhere, by what that type rounds."""
    first = healthy("llama")
    second = trace_model(make_model("llama").bfloat16())
    for pair in ((first, second), (second, first)):
        found = bisect(*pair)
        assert found.origin is None and found.largest > 0
        assert "bfloat16" in str(found)
        assert all(layer.kernel is not None and layer.kernel < 2**-7 for layer in found.layers[1:])


def test_operands_and_kernel_add_up() -> None:
    """out_b − out_a = (exact_b − exact_a) + (out_b − exact_b) + (exact_a − out_a)."""
    fault = FAULTS["a kernel with another scale"]
    found = bisect(healthy(fault.model), fault.run())
    for layer in found.layers[1:]:
        assert layer.kernel is not None and layer.operands is not None
        assert layer.apart["out"] <= layer.kernel + layer.operands + 1e-5
    first = found.layers[1]
    assert first.operands == 0 and first.kernel == pytest.approx(first.apart["out"], rel=1e-4)


def test_the_cell_that_changes_most() -> None:
    fault = FAULTS["a head without queries"]
    first, second = healthy(fault.model), fault.run()
    cell = bisect(first, second).cell
    assert cell is not None and (cell.site, cell.head) == ("decoder.2.self", 1)
    a, b = (t[cell.site].weights().double() for t in (first, second))
    apart = (a - b).abs()
    assert float(apart.max()) == pytest.approx(abs(cell.first.weight - cell.second.weight))
    assert cell.second.dot == 0


def test_files_carry_the_best_tokens(tmp_path: Path) -> None:
    """A trace from a file has no readout; the margin of the first changed token is in it."""
    fault = FAULTS["a wrong scale"]
    traces = healthy(fault.model), fault.run()
    files = [tmp_path / "a.trace", tmp_path / "b.trace"]
    for trace, file in zip(traces, files, strict=True):
        trace.save(file)
    token = bisect(*map(Trace.load, files)).token
    assert token is not None and token == bisect(*traces).token
    a, b = (trace.logits()[0, token.position] for trace in traces)
    assert [str(int(x.argmax())) for x in (a, b)] == [token.first, token.second]
    i, j = int(token.first), int(token.second)
    assert token.margin == pytest.approx(float(a[i] - a[j]), abs=1e-5)
    assert token.other_margin == pytest.approx(float(b[j] - b[i]), abs=1e-5)
    before = [(t.logits()[0, : token.position].argmax(-1)) for t in traces]
    assert torch.equal(*before)


def test_texts_that_part_are_compared_up_to_there() -> None:
    model, other = make_model("llama"), make_model("llama")
    with torch.no_grad():
        other.lm_head.weight[5] += 0.3  # nothing before the logits differs
    traces = []
    for each in (model, other):
        with watch(each, residual=True) as trace:
            each.generate(tokens()[:, :7], max_new_tokens=8, do_sample=False, eos_token_id=None)
        traces.append(trace)
    found = bisect(*traces)
    assert found.origin is None and found.token is not None and found.n_tokens is not None
    texts = [trace.run.texts["tokens"].tokens[0] for trace in traces]
    n = found.n_tokens
    assert 7 <= n < len(texts[0]) and torch.equal(texts[0][:n], texts[1][:n])
    assert found.token.is_written and found.token.position == n - 1
    assert [found.token.first, found.token.second] == [str(int(t[n])) for t in texts]
    assert "outputs=True" in str(found)


def test_selected_rows_and_no_stream() -> None:
    fault = FAULTS["a wrong scale"]
    planted = make_model(fault.model)
    fault.plant(planted)
    traces = []
    for model in (make_model(fault.model), planted):
        with watch(model, rows=[3, 50, 95]) as trace, torch.no_grad():
            model(tokens())
        traces.append(trace)
    origin = bisect(*traces).origin
    assert origin is not None and (origin.name, origin.operands) == (fault.where, fault.operands)


@pytest.mark.plain
def test_other_texts_are_refused() -> None:
    model = make_model("llama")
    with watch(model) as other, torch.no_grad():
        model(tokens().flip(1))
    with pytest.raises(TraceError, match="no token at their beginning"):
        bisect(healthy("llama"), other)
    with pytest.raises(TraceError, match="no site of one size"):
        bisect(healthy("llama"), Trace([Run()]))
