"""The checks of signatures find what they should, and let pass what is right."""

import contextlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from jaxtyping import Float, Int, TypeCheckError
from torch import Tensor
from torch.overrides import TorchFunctionMode

import glassformer as gf
from signatures import check_signature


@check_signature
def add(x: Float[Tensor, "B C"], y: Float[Tensor, "B C"], *, n: int = 1) -> Float[Tensor, "B C"]:
    return (x + n * y)[: len(x) if n < 9 else 1]


@check_signature
def count(name: str, *names: str, start: "int | None" = None) -> int:
    return str(start) if name == "wrong" else len(names)  # type: ignore[return-value]


X = torch.zeros(2, 3)


def test_right_calls_pass() -> None:
    assert add(X, X, n=2).shape == (2, 3)
    assert add(torch.zeros(5, 7), torch.zeros(5, 7)).shape == (5, 7)  # sizes begin anew
    assert count("a", "b", start=3) == 1
    assert inspect.signature(count) == inspect.signature(inspect.unwrap(count))


@pytest.mark.parametrize(
    "call",
    [
        lambda: add(X, torch.zeros(2, 4)),  # another size under the same letter
        lambda: add(X, torch.zeros(2, 3, 1)),
        lambda: add(X, X.long()),
        lambda: add(X, X, n=1.5),
        lambda: add(X, X, n=9),  # the result is (1, 3)
        lambda: count(3),
        lambda: count("a", 3),
        lambda: count("a", start="quoted"),
        lambda: count("wrong"),
    ],
)
def test_wrong_calls_are_found(call) -> None:
    with pytest.raises(TypeCheckError):
        call()


def test_wrong_sizes_are_named() -> None:
    with pytest.raises(TypeCheckError, match=r"size of dimension C is 4 .* existing value of 3"):
        add(X, torch.zeros(2, 4))


def test_arguments_that_do_not_fit_are_python_s_to_name() -> None:
    with pytest.raises(TypeError, match=r"count\(\) missing 1 required positional argument"):
        count()  # type: ignore[call-arg]


def test_a_function_within_a_function_is_checked_at_every_definition() -> None:
    def define(kind: type):
        @check_signature
        def inner(x: kind) -> kind:  # type: ignore[valid-type]
            return x

        return inner

    assert define(int)(3) == 3 and define(str)("a") == "a"
    for kind, wrong in ((int, "a"), (str, 3)):
        with pytest.raises(TypeCheckError):
            define(kind)(wrong)


def test_a_call_within_a_call_has_sizes_of_its_own() -> None:
    @check_signature
    def outer(x: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        add(torch.zeros(7, 5), torch.zeros(7, 5))
        return x

    assert outer(X) is X


def test_dataclasses_and_generators_are_checked() -> None:
    @check_signature
    @dataclass(frozen=True)
    class Pair:
        a: Float[Tensor, "B"]
        b: Int[Tensor, "B"]

    Pair(torch.zeros(2), torch.ones(2).long())
    with pytest.raises(TypeCheckError):
        Pair(torch.zeros(2), torch.ones(3).long())

    @contextlib.contextmanager
    @check_signature
    def opened(name: str) -> Iterator[str]:
        yield name

    with opened("a") as name:
        assert name == "a"
    with pytest.raises(TypeCheckError):
        opened(3)  # type: ignore[arg-type]


def test_a_recorder_does_not_hear_the_checks() -> None:
    heard = []

    class Recorder(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            heard.append(func)
            return func(*args, **(kwargs or {}))

    @check_signature
    def same(x: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        return x

    with Recorder():
        same(X)
    assert heard == []


def test_the_hook_checks_the_package(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("jaxtyping_packages", None):
        pytest.skip("runs with jaxtyping's hook")
    q = torch.zeros(1, 2, 3, 4)
    assert gf.attention(q, q, q).shape == q.shape
    with pytest.raises(TypeCheckError, match="attention"):
        gf.attention(q[0], q, q)
