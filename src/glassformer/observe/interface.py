"""Between a model of transformers and its attention: a function that sees what passes.

While a model is watched, its configs name our function, registered for attention and for masks.
It asks whoever watches to look, and leaves all computing to the function that the model would have
called. The name also answers to the old one: code that asks for "eager" takes the same branch.
"""

import inspect
import threading
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from glassformer.attention.overheard import Overheard
from glassformer.errors import TraceError

SEEN = ("eager", "sdpa")  # implementations whose arithmetic we know
REGISTERED = {"eager": "glassformer_watch", "sdpa": "glassformer_watch_fused"}


class Call(NamedTuple):
    """One call of attention: what the model handed over, and who computes it."""

    module: nn.Module
    function: Callable[..., Any]
    implementation: str
    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    options: dict[str, Any]
    lse: Tensor | None  # where the kernel told it


Watcher = Callable[[Call, Any], None]  # is told of a call, and of what came out of it

_watchers: WeakKeyDictionary[nn.Module, list[Watcher]] = WeakKeyDictionary()
# By thing and attribute: the thing, what the attribute was before, and how many watch.
_switched: dict[tuple[int, str], tuple[Any, Any, int]] = {}
_listeners: dict[int, tuple[Any, list[Callable[[Tensor], None]]]] = {}  # by cache
_lock = threading.Lock()


class _Name(str):
    """Our name, which a registry finds by its hash, and which is also equal to the old one."""

    previous: str

    @classmethod
    def of(cls, previous: str) -> "_Name":
        name = cls(REGISTERED[previous])
        name.previous = previous
        return name

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True or other == str(self.previous)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def enter(model: nn.Module, watcher: Watcher) -> Callable[[], None]:
    """From now on, `watcher` sees every call of attention in this model, until it leaves."""
    _register()
    modules = list(model.modules())
    switches = [(config, "_attn_implementation_internal") for config in _configs(model)]
    if (settings := getattr(model, "generation_config", None)) is not None:
        switches.append((settings, "disable_compile"))  # in compiled code nothing is seen
    with _lock:
        for thing, attribute in switches:
            was = getattr(thing, attribute)
            known, before, n = _switched.get((id(thing), attribute), (thing, was, 0))
            _switched[id(thing), attribute] = (known, before, n + 1)
            if not n:
                setattr(thing, attribute, _Name.of(was) if isinstance(was, str) else True)
        for module in modules:
            _watchers.setdefault(module, []).append(watcher)
    return partial(_leave, modules, switches, watcher)


def _leave(modules: list[nn.Module], switches: list[tuple[Any, str]], watcher: Watcher) -> None:
    """The last one to leave puts back what was there before."""
    with _lock:
        for module in modules:
            present = _watchers[module]
            present.remove(watcher)
            if not present:
                del _watchers[module]
        for thing, attribute in switches:
            known, before, n = _switched.pop((id(thing), attribute))
            if n > 1:
                _switched[id(thing), attribute] = (known, before, n - 1)
            else:
                setattr(thing, attribute, before)


def hear(cache: Any, listener: Callable[[Tensor], None]) -> Callable[[], None]:
    """From now on, `listener` is told which rows of a cache go on, whenever beams change places."""
    with _lock:
        _, present = _listeners.setdefault(id(cache), (cache, []))
        present.append(listener)
        cache.reorder_cache = MethodType(_reorder, cache)
    return partial(_stop_hearing, cache, listener)


def _stop_hearing(cache: Any, listener: Callable[[Tensor], None]) -> None:
    with _lock:
        _, present = _listeners[id(cache)]
        present.remove(listener)
        if not present:
            del _listeners[id(cache)]
            del cache.reorder_cache


def _reorder(cache: Any, beam_idx: Tensor) -> None:
    type(cache).reorder_cache(cache, beam_idx)
    for listener in _listeners.get(id(cache), (cache, []))[1]:
        listener(beam_idx)


def implementations(model: nn.Module) -> set[str]:
    """What the model's configs name for attention, as it was before anybody watched."""
    named = (config._attn_implementation_internal for config in _configs(model, every=True))
    return {str(getattr(name, "previous", name)) for name in named}


def _configs(model: nn.Module, *, every: bool = False) -> Iterator[Any]:
    """The configs of a model, of its parts and inside of those, each once."""
    from transformers import PreTrainedConfig

    waiting = [vars(module).get("config") for module in model.modules()]
    seen: set[int] = set()
    while waiting:
        config = waiting.pop(0)
        if not isinstance(config, PreTrainedConfig) or id(config) in seen:
            continue
        seen.add(id(config))
        waiting += list(vars(config).values())
        name = config._attn_implementation_internal
        if name is not None and (every or isinstance(name, _Name) or name in SEEN):
            yield config


def _register() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    for implementation, name in REGISTERED.items():
        AttentionInterface.register(name, partial(_attention, implementation))
        AttentionMaskInterface.register(name, ALL_MASK_ATTENTION_FUNCTIONS[implementation])


def _attention(
    implementation: str,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    *rest: Any,
    **options: Any,
) -> Any:
    function = _function(type(module), implementation)
    given = query, key, value, attention_mask
    present = _watchers.get(module)
    if not present:
        return function(module, *given, *rest, **options)
    with Overheard() as heard:
        out = function(module, *given, *rest, **options)
    options = {**dict(zip(parameters(function)[5:], rest, strict=False)), **options}
    call = Call(module, function, implementation, *given, options, heard.lse)
    for watcher in present:
        watcher(call, out)
    return out


@cache
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of what a function takes, in order."""
    return tuple(inspect.signature(function).parameters)


def _function(kind: type, implementation: str) -> Callable[..., Any]:
    """What a module of this class calls for attention when nobody watches."""
    registry, eager = _known(kind)
    if implementation == "eager" and eager is None:
        raise TraceError(
            f"{kind.__name__} must name one function of eager attention to be watched; it names "
            "none or several. Use model.set_attn_implementation('sdpa')."
        )
    return registry.get_interface(implementation, eager)


@cache
def _known(kind: type) -> tuple[Any, Callable[..., Any] | None]:
    """The registry that the code of a class asks, and the function it has for eager attention."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    for function in _methods(kind):
        names = [n for n in function.__code__.co_names if n.endswith("eager_attention_forward")]
        if len(names) == 1:
            known = function.__globals__
            registry = known.get("ALL_ATTENTION_FUNCTIONS", ALL_ATTENTION_FUNCTIONS)
            return registry, known[names[0]]
    return ALL_ATTENTION_FUNCTIONS, None


@cache
def uses_interface(kind: type) -> bool:
    """Whether modules of this class look up their attention in the registry of transformers."""
    from transformers import PreTrainedModel

    if issubclass(kind, PreTrainedModel):  # which only asks what is in it
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
