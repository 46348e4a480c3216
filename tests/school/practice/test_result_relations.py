"""Near misses: what relates a wrong result to the right one, in any exercise."""

import numpy as np
import pytest
import torch

from glassformer.school.practice.cases import Case
from glassformer.school.practice.error_causes import explain_error
from glassformer.school.practice.outcome import Outcome
from glassformer.school.practice.plain_values import to_plain
from glassformer.school.practice.result_relations import find_relation


def relate(right, change, n_cases=2, **inputs):
    """The relation that holds when every right result is changed in the same way."""
    cases, expected, got = [], [], []
    for i in range(n_cases):
        x = torch.from_numpy(np.random.default_rng(i).normal(size=(3 + i, 5, 7)))
        given = {"x": x, **inputs}
        cases.append(Case("values", lambda m: None, given, ("out",)))
        expected.append(Outcome(to_plain(right(x))))
        got.append(Outcome(to_plain(change(right(x), x))))
    found = find_relation(cases, expected, got, range(n_cases))
    return None if found is None else (found.key.rsplit(".", 1)[1], dict(found.values))


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda out, x: -out, "negated"),
        (lambda out, x: out.exp(), "exponential"),
        (lambda out, x: out.transpose(1, 2), "permuted"),
        (lambda out, x: out.flatten(1), "reshaped"),
        (lambda out, x: out.float(), "dtype"),
        (lambda out, x: out.numpy(), "kind"),
        (lambda out, x: (out, x), "toomany"),
        (lambda out, x: out + x, "added"),
        (lambda out, x: out + 3, "offset"),
        (lambda out, x: out.flip(1), "reversed"),
        (lambda out, x: out.roll(1, 2), "rolled"),
        (lambda out, x: out[:, [1, 0, 2, 4, 3]], "mixed"),
        (lambda out, x: out[:, :-1], "endmissing"),
        (lambda out, x: out.sum(1), "summed"),
        (lambda out, x: out.mean(1, keepdim=True), "averaged"),
        (lambda out, x: x, "unchanged"),
        (lambda out, x: out / np.log(2), "bits"),
    ],
)
def test_a_relation_is_found(change, key):
    assert relate(lambda x: 2 * x.sin() + 1, change)[0] == key


def test_a_factor_is_called_by_the_size_that_it_is():
    right = lambda x: x.cos()  # noqa: E731
    found = relate(right, lambda out, x: out * x.shape[-1] ** 0.5)
    assert found == ("factor", {"name": "out", "factor": "√(x.shape[-1])"})
    assert relate(right, lambda out, x: out * 1.7)[1]["factor"] == "1.7"


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_factor_that_another_case_lacks_is_not_told(factor):
    """√D for a rounded root: alike at widths 2 and 3, not at 4 or 6."""
    cases, expected, got = [], [], []
    for width in (2, 3, 6):
        x = torch.ones(4, width)
        name = "values" if width < 4 else "float32"
        cases.append(Case(name, relate, {"x": x}, ("out",)))
        expected.append(Outcome(to_plain(x)))
        got.append(Outcome(to_plain(x * (width**0.5 if width < 4 else factor))))
    wrong = [0, 1] if factor == 1 else [0, 1, 2]
    assert find_relation(cases, expected, got, wrong) is None
    found = find_relation(cases[:2], expected[:2], got[:2], [0, 1])
    assert found is not None and found.values["factor"] == "√(x.shape[-1])"


def test_what_holds_in_one_case_alone_is_not_told():
    def change(out, x):
        return 2 * out if len(x) == 3 else out + 1

    assert relate(lambda x: x.cos(), change) is None


def test_nan_and_unrelated_numbers_have_no_relation():
    assert relate(lambda x: x.cos(), lambda out, x: out * torch.nan) is None
    assert relate(lambda x: x.cos(), lambda out, x: x.tan() - out) is None


def test_what_becomes_infinite_is_like_no_number():
    """log 0 = −∞ is infinitely far from any number, however large the tolerance."""
    assert relate(lambda x: x * 0, lambda out, x: x.cos()) is None


@pytest.mark.parametrize("value", [torch.zeros(0), torch.tensor(True), 3, "text", [], {"a": 1}])
def test_results_of_any_kind_are_looked_at_without_harm(value):
    relate(lambda x: x.cos(), lambda out, x: value)
    relate(lambda x: value, lambda out, x: x)


@pytest.mark.parametrize(
    ("run", "key", "values"),
    [
        (lambda q, k: q @ k, "product", {"one": "7 (q.shape[-1])", "other": "5 (k.shape[-2])"}),
        (lambda q, k: q + k, "broadcast", {"one": "3 (q.shape[-2])", "axis": "1"}),
        (lambda q, k: q.transpose(1, 2).view(2, 21), "view", {}),
        (lambda q, k: q.view(2, 4), "reshape", {"one": "2, 4"}),
        (lambda q, k: torch.sqrt(3), "tensor", {"name": "sqrt", "type": "int"}),
        (lambda q, k: q.softmax(5), "dimension", {"axis": "5"}),
        (lambda q, k: nothing_of_the_kind, "name", {"name": "nothing_of_the_kind"}),
        (lambda q, k: torch.cat([q, k], 0), "concatenate", {"axis": "0"}),
    ],
)
def test_an_error_is_explained(run, key, values):
    q, k = torch.zeros(2, 3, 7), torch.zeros(2, 5, 7)
    with pytest.raises(Exception) as caught:
        run(q, k)
    kind, message = type(caught.value).__name__, str(caught.value)
    found = explain_error(kind, " ".join(message.split()), {"q": q, "k": k})
    assert found.key == f"practice.cause.{key}"
    assert values.items() <= dict(found.values).items()


def test_an_unknown_error_is_left_as_it_is():
    assert explain_error("ValueError", "no such flavour", {}) is None
