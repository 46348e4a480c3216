"""What jaxtyping's import hook checks, with less work for each call.

The hook decorates every function and dataclass with `jaxtyping.jaxtyped`, which binds the arguments
of each call to the signature and checks them twice, and which writes its checks anew whenever a
function within a function is defined. Here the arguments are checked once before a call and the
result once after it; sizes are remembered from one to the other where a signature names any; where
none does, beartype alone checks; and the checks of a function are written once, at its first call.
"""

import functools
import inspect
import types
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import jaxtyping
import torch
from beartype import beartype
from beartype.roar import BeartypeCallHintViolation

_sizes = jaxtyping.jaxtyped  # as the package has it; "context" begins a call's own sizes


class Checks(NamedTuple):
    """The checks of one function, and the annotations they were written for."""

    hints: dict[str, Any]
    arguments: Callable[..., Any] | None
    result: Callable[[Any], Any] | None


_checks: dict[types.CodeType, Checks] = {}
_MADE_BY_GENERATORS = (Iterator, Iterable, Generator)  # which return nothing else
# Their bodies run later than the call, which is what is checked.
_DELAYED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def check_signature(fn: Any = None, *, typechecker: Any = None) -> Any:
    """Stand in for `jaxtyping.jaxtyped` as the import hook calls it; beartype always decides."""
    if fn is None:
        return check_signature
    if inspect.isclass(fn):
        own = vars(fn).get("__init__")
        if "__dataclass_fields__" in vars(fn) and own and not hasattr(own, "__wrapped__"):
            fn.__init__ = check_signature(own)  # type: ignore[misc]
        return fn
    return _wrap(fn) if fn.__annotations__ else fn


def _wrap(fn: types.FunctionType) -> Callable[..., Any]:
    hints = {name: _resolve(hint, fn.__globals__) for name, hint in fn.__annotations__.items()}
    checked: Callable[..., Any] | None = None

    @functools.wraps(fn)
    def call_checked(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        nonlocal checked
        if checked is None:
            checked = _write(fn, hints)
        try:
            return checked(*args, **kwargs)
        except BeartypeCallHintViolation as error:
            raise jaxtyping.TypeCheckError(str(error)) from error

    return call_checked


def _write(fn: types.FunctionType, hints: dict[str, Any]) -> Callable[..., Any]:
    """A function with its checks, as fast as they allow."""
    if any(map(_names_shapes, hints.values())):
        return _check_shapes(fn, _find_checks(fn, hints))
    if "<locals>" in fn.__qualname__ or fn.__code__.co_flags & _DELAYED:
        return _check_in_parts(fn, _find_checks(fn, hints))
    same = types.FunctionType(
        fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )
    same.__kwdefaults__, same.__annotations__ = fn.__kwdefaults__, hints
    same.__qualname__, same.__module__ = fn.__qualname__, fn.__module__
    return beartype(same)


def _check_in_parts(fn: types.FunctionType, checks: Checks) -> Callable[..., Any]:
    arguments, result = checks.arguments, checks.result

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if arguments is not None:
            arguments(*args, **kwargs)
        returned = fn(*args, **kwargs)
        if result is not None:
            result(returned)
        return returned

    return call


def _check_shapes(fn: types.FunctionType, checks: Checks) -> Callable[..., Any]:
    arguments, result = checks.arguments, checks.result
    unheard = torch._C.DisableTorchFunction  # no recorder hears how shapes are read

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with _sizes("context"):
            if arguments is not None:
                with unheard():
                    arguments(*args, **kwargs)
            returned = fn(*args, **kwargs)
            if result is not None:
                with unheard():
                    result(returned)
            return returned

    return call


def _find_checks(fn: types.FunctionType, hints: dict[str, Any]) -> Checks:
    """The checks of a function; one within a function shares those of its earlier definitions."""
    found = _checks.get(fn.__code__)
    if found is None or found.hints != hints:
        found = _checks[fn.__code__] = _write_checks(fn, hints)
    return found


def _write_checks(fn: types.FunctionType, hints: dict[str, Any]) -> Checks:
    taken = {name: hint for name, hint in hints.items() if name != "return"}
    returned = hints.get("return", Any)
    parameters = inspect.signature(fn).parameters.values()
    bare = [
        p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else None)
        for p in parameters
    ]
    scope: dict[str, Any] = {}
    exec(f"def arguments{inspect.Signature(bare)}: pass\ndef result(value): return value", scope)
    arguments, result = scope["arguments"], scope["result"]
    arguments.__defaults__, arguments.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
    arguments.__annotations__, result.__annotations__ = taken, {"return": returned}
    for each in (arguments, result):
        each.__name__, each.__qualname__ = fn.__name__, fn.__qualname__
        each.__module__ = fn.__module__
    is_generator = fn.__code__.co_flags & inspect.CO_GENERATOR
    is_sure = returned is Any or (is_generator and get_origin(returned) in _MADE_BY_GENERATORS)
    return Checks(
        hints,
        beartype(arguments) if any(hint is not Any for hint in taken.values()) else None,
        None if is_sure else beartype(result),
    )


def _resolve(hint: Any, names: dict[str, Any]) -> Any:
    """An annotation with its quoted names looked up; one that is not known yet is Any."""
    if isinstance(hint, type) and not get_args(hint):
        return hint
    holder = types.SimpleNamespace(__annotations__={"hint": hint})
    try:
        return get_type_hints(holder, names, include_extras=True)["hint"]
    except NameError:
        return Any


def _names_shapes(hint: Any) -> bool:
    if inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return any(map(_names_shapes, hint if isinstance(hint, list) else get_args(hint)))
