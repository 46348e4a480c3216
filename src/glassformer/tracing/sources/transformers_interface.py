"""Between a model of transformers and its attention: a function that reports its calls.

While anything is watched, the registries of attention functions return each function wrapped in one
of ours, which lets it compute and then reports the call, if someone listens to the module. Models
and configs stay as they are.
"""

import inspect
from collections.abc import Callable, Iterator
from functools import cache, wraps
from types import FunctionType
from typing import Any, NamedTuple

from torch import Tensor, nn

from glassformer.functional.statistics.kernel_lse import KernelLse
from glassformer.tracing.model_lookup import ModuleTree
from glassformer.tracing.patches import Tap, find_taps, listen_to_all, replace_method, surround

KNOWN = ("eager", "sdpa")  # implementations whose arithmetic we know
ATTENTION = "<attention>"  # what taps on modules listen to; no method has this name
_NAMES = ("module", "query", "key", "value", "attention_mask")


class Call(NamedTuple):
    """One call of attention: what the model passed, and the function that computes it."""

    module: nn.Module
    function: Callable[..., Any]
    implementation: str
    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    options: dict[str, Any]
    lse: Tensor | None  # where the kernel returned it


class Computed(NamedTuple):
    """The function that computed a call of attention, and its result."""

    function: Callable[..., Any]
    implementation: str
    out: Any
    lse: Tensor | None

    def call(self, args: tuple, options: dict[str, Any]) -> Call:
        names = (*_NAMES, *parameters(self.function)[len(_NAMES) :])
        given = {**dict(zip(names, args, strict=False)), **options}
        module, q, k, v, mask = (given.pop(name, None) for name in _NAMES)
        assert isinstance(module, nn.Module)
        return Call(module, self.function, self.implementation, q, k, v, mask, given, self.lse)


class _ReportingFunction:
    """An attention function that reports its calls."""

    def __init__(self, function: Callable[..., Any], implementation: str) -> None:
        self.function, self.implementation = function, implementation
        wraps(function)(self)

    def __call__(self, *args: Any, **options: Any) -> Any:
        taps = find_taps(args[0], ATTENTION) if args else []
        if not taps:
            return self.function(*args, **options)

        def compute(*args: Any, **options: Any) -> Computed:
            with KernelLse() as heard:
                out = self.function(*args, **options)
            return Computed(self.function, self.implementation, out, heard.lse)

        call: Callable[..., Computed] = compute
        for tap in taps:
            if tap.around is not None:
                call = surround(call, args[0], tap.around)
        computed = call(*args, **options)
        for tap in taps:
            tap.notify(tap.after, args[0], args, options, computed)
        return computed.out


def enter_interface(tree: ModuleTree, tap: Tap, undo: list[Callable[[], None]]) -> None:
    """Report every call of attention in this model to `tap`, until `undo` is called."""
    from transformers import AttentionInterface, PreTrainedModel

    undo.append(replace_method(AttentionInterface, "get_interface", _wrap_get_interface))
    undo.append(replace_method(AttentionInterface, "__getitem__", _wrap_getitem))
    undo.append(replace_method(PreTrainedModel, "get_compiled_call", _wrap_get_compiled_call))
    undo.append(listen_to_all(tree.paths, ATTENTION, tap))


def _wrap_get_interface(original: Any) -> Any:
    @wraps(original)
    def get_interface(self: Any, attn_implementation: Any, default: Any) -> Any:
        function = original(self, attn_implementation, default)
        if isinstance(function, _ReportingFunction):  # __getitem__ has wrapped it
            return function
        return _ReportingFunction(function, str(attn_implementation or "eager"))

    return get_interface


def _wrap_getitem(original: Any) -> Any:
    @wraps(original)
    def getitem(self: Any, key: str) -> Any:
        return _ReportingFunction(original(self, key), str(key))

    return getitem


def _wrap_get_compiled_call(original: Any) -> Any:
    """Nothing can be recorded inside compiled code: generation does not compile a watched model."""

    @wraps(original)
    def get_compiled_call(self: Any, *args: Any, **options: Any) -> Any:
        if find_taps(self, ATTENTION):
            return self.__call__
        return original(self, *args, **options)

    return get_compiled_call


def find_implementations(tree: ModuleTree) -> set[str]:
    """The implementations of attention that the model's configs name."""
    return {str(config._attn_implementation_internal) for config in find_configs(tree)}


def find_configs(tree: ModuleTree) -> Iterator[Any]:
    """The configs of a model, of its parts and inside of those, each once."""
    from transformers import PreTrainedConfig

    of_modules = [own["config"] for each in tree.paths if "config" in (own := each.__dict__)]
    waiting = [*{id(config): config for config in of_modules}.values()]
    seen: set[int] = set()
    while waiting:
        config = waiting.pop(0)
        if not isinstance(config, PreTrainedConfig) or id(config) in seen:
            continue
        seen.add(id(config))
        waiting += vars(config).values()
        if config._attn_implementation_internal is not None:
            yield config


@cache
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters, in order."""
    return tuple(inspect.signature(function).parameters)


@cache
def uses_interface(kind: type) -> bool:
    """Whether modules of this class look up their attention in the registry of transformers."""
    from transformers import PreTrainedModel

    if issubclass(kind, PreTrainedModel):  # which only checks what the registry holds
        return False
    return any("ALL_ATTENTION_FUNCTIONS" in f.__code__.co_names for f in _methods(kind))


def _methods(kind: type) -> Iterator[FunctionType]:
    """The functions of a class as its instances find them, what decorators wrap included."""
    seen: set[str] = set()
    for parent in kind.__mro__:
        for name, function in vars(parent).items():
            plain = inspect.unwrap(function) if callable(function) else None
            if isinstance(plain, FunctionType) and name not in seen:
                seen.add(name)
                yield plain
