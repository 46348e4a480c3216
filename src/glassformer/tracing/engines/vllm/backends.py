"""vLLM's attention backends, with implementations that can be listened to.

vLLM asks for a backend by the path of its class: `backends.CPU_ATTN` is the class that CPU_ATTN
named before, whose implementation tells its listeners of every call. Attention is one operation to
torch.compile, so all this runs with compiled graphs as well.
"""

from functools import cache
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

WRAPPED: dict[str, str] = {}  # the paths of the classes that ours stand for


@runtime_checkable
class Listener(Protocol):
    """Someone who wants to know of every call of attention; must not raise."""

    def hear(
        self,
        layer: Any,
        operands: tuple[Tensor, Tensor, Tensor],
        kv_cache: Tensor,
        metadata: Any,
        out: Tensor,
    ) -> None:
        """The operands of all requests, packed, and what attention made of them."""
        ...


class Heard:
    """An implementation of attention, in front of the one that computes."""

    listeners: tuple[Listener, ...] = ()

    def forward(
        self,
        layer: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        kv_cache: Tensor,
        attn_metadata: Any,
        *args: Any,
        **options: Any,
    ) -> Any:
        compute: Any = super()
        result = compute.forward(
            layer, query, key, value, kv_cache, attn_metadata, *args, **options
        )
        if attn_metadata is not None:  # None: vLLM warms up
            out = args[0] if args else options["output"]
            for listener in self.listeners:
                listener.hear(layer, (query, key, value), kv_cache, attn_metadata, out)
        return result


def __getattr__(name: str) -> type:
    if name in WRAPPED:
        return wrap_backend(WRAPPED[name])
    raise AttributeError(name)


@cache
def wrap_backend(path: str) -> type:
    """The backend of this path, with an implementation that can be listened to."""
    module, _, name = path.rpartition(".")
    backend: Any = getattr(import_module(module), name)
    inner: Any = backend.get_impl_cls()

    class Implementation(Heard, inner):
        pass

    class Backend(backend):
        @staticmethod
        def get_impl_cls() -> type:
            return Implementation

    for ours, theirs in ((Implementation, inner), (Backend, backend)):
        ours.__name__ = ours.__qualname__ = theirs.__name__
    return Backend
