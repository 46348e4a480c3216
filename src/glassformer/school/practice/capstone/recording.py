"""What passes through the library's model, module by module, while it reads one text."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from glassformer.layers import Block
from glassformer.models.config import Config


class Recorder:
    """What goes into each module of a model, and what comes out, in the order of calls."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._seen: dict[nn.Module, list[tuple[tuple[Tensor, ...], Tensor]]] = {}
        self._hooks: list[Any] = []

    def __enter__(self) -> "Recorder":
        for module in self._model.modules():
            self._hooks.append(module.register_forward_hook(self._record))
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _record(self, module: nn.Module, given: tuple[Any, ...], out: Tensor) -> None:
        self._seen.setdefault(module, []).append((given, out))

    def out(self, module: nn.Module, call: int = 0) -> Tensor:
        return self._seen[module][call][1]

    def given(self, module: nn.Module) -> Tensor:
        return self._seen[module][0][0][0]

    def all_given(self, module: nn.Module) -> tuple[Tensor, ...]:
        return self._seen[module][0][0]


def record_pair(seen: Recorder, module: nn.Module) -> dict[str, Tensor]:
    return {"x": seen.given(module), "out": seen.out(module)}


def split_projection(qkv: Tensor, config: Config) -> Sequence[Tensor]:
    """Queries, keys and values of all heads, before they are split into heads: (B, L, H·D)."""
    q, kv = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    return qkv.split([q, kv, kv], dim=-1)


def as_heads(x: Tensor, config: Config) -> Tensor:
    return x.unflatten(-1, (-1, config.head_dim)).transpose(1, 2)  # (B, L, H·D) → (B, H, L, D)


def rotary_tensors(
    seen: Recorder, block: Block, q: Tensor, k: Tensor, config: Config
) -> dict[str, Tensor]:
    turned = seen.all_given(block.attention.core)
    return {
        "q": as_heads(q, config),
        "k": as_heads(k, config),
        "q_out": turned[0],
        "k_out": turned[1],
    }


def attention_tensors(
    site: str, seen: Recorder, core: nn.Module, mask: Tensor
) -> dict[str, Tensor]:
    """Heads as a batch, as the joined model calls attention."""
    q, k, v = seen.all_given(core)
    width = (*q.shape[:3], k.shape[2])
    named = {"q": q, "k": k, "v": v, "mask": mask.expand(width), "out": seen.out(core)}
    return {f"{site}.{name}": each.flatten(0, 1) for name, each in named.items()}
