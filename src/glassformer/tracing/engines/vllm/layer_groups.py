"""Layers of one shape keep what a step gives them in one tensor, layer below layer.

So a step costs one allocation for each operand, however many layers there are, and a request is
taken out of it for all layers at once.
"""

from dataclasses import dataclass, field

from jaxtyping import Float, Int
from torch import Tensor

from glassformer.tracing.engines.vllm.watched_model import WatchedModel
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.selection import Selection


@dataclass(eq=False)
class OperandStack:
    """What the N layers of a group were given; q and out only of the rows that are kept."""

    q: Float[Tensor, "N R H D"]
    k: Float[Tensor, "N T K D"]
    v: Float[Tensor, "N T K E"]
    out: Float[Tensor, "N R H E"] | None
    layers: set[str] = field(default_factory=set)  # those that are filled


@dataclass(eq=False)
class LayerGroup:
    """Selected layers of one shape."""

    heads: tuple[int, ...] | None  # those that are kept; None: all
    read: tuple[int, ...] | None  # the heads of k and v that they read; None: all
    n_heads: int  # that are kept
    n_kv_heads: int
    head_dim: int
    value_dim: int
    itemsize: int
    places: dict[str, int] = field(default_factory=dict)  # its layers, and where in a stack

    def count_bytes(self, n_rows: int, n_keys: int, *, outputs: bool) -> int:
        row = self.n_heads * (self.head_dim + outputs * self.value_dim)
        key = self.n_kv_heads * (self.head_dim + self.value_dim)
        return len(self.places) * (n_rows * row + n_keys * key) * self.itemsize

    def reserve(
        self, store: OperandStore, like: Tensor, n_rows: int, n_keys: int, *, outputs: bool
    ) -> OperandStack:
        """Room for as many rows of q and of k."""

        def make(n: int, n_heads: int, width: int) -> Tensor:
            return store.reserve((len(self.places), n, n_heads, width), like)

        return OperandStack(
            q=make(n_rows, self.n_heads, self.head_dim),
            k=make(n_keys, self.n_kv_heads, self.head_dim),
            v=make(n_keys, self.n_kv_heads, self.value_dim),
            out=make(n_rows, self.n_heads, self.value_dim) if outputs else None,
        )


def group_layers(model: WatchedModel, selection: Selection) -> dict[str, LayerGroup]:
    """The group of every selected layer that can be watched, by its name."""
    groups: dict[tuple[int, ...], LayerGroup] = {}
    found = {}
    for name, layer in model.select_layers(selection).items():
        if name not in model.obstacles:
            H, K, D, E = layer.num_heads, layer.num_kv_heads, layer.head_size, layer.head_size_v
            if (H, K, D, E) not in groups:
                heads = model.select_heads(selection, layer)
                groups[H, K, D, E] = LayerGroup(
                    heads=heads,
                    read=None if heads is None else tuple(h * K // H for h in heads),
                    n_heads=H if heads is None else len(heads),
                    n_kv_heads=K if heads is None else len(heads),
                    head_dim=D,
                    value_dim=E,
                    itemsize=layer.dtype.itemsize,
                )
            found[name] = group = groups[H, K, D, E]
            group.places[name] = len(group.places)
    return found


def copy_part(
    into: Float[Tensor, "R _H D"],
    operand: Float[Tensor, "T H D"],
    span: slice,
    heads: tuple[int, ...] | None,
    rows: Int[Tensor, " R"] | None = None,
) -> None:
    """Copy some rows and heads of an operand: the engine uses its buffers again."""
    if span.stop - span.start < operand.shape[0]:
        operand = operand[span]  # without other requests, and what fills a graph of a fixed size
    if rows is not None:
        operand = operand.index_select(0, rows)
    into.copy_(operand if heads is None else operand[:, list(heads)])
