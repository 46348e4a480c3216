"""From a product with a softmax back to q, k, v, scale, mask and bias, or a reason why not.

Nothing is assumed. Replaying the module's own moves shows which q and k each cell of the scores
results from; what q, k and the scale do not explain is mask or bias; and the resulting weights are
compared, cell by cell, with those that the module multiplied with v.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.mask_rules import MaskRule, find_rule, read_mask
from glassformer.tracing.site_steps import Step
from glassformer.tracing.sources.operation_graph import (
    FUSED,
    KEEPS,
    MOVES,
    SCALES,
    Node,
    is_dropout,
    products_behind,
    softmax_behind,
)

_aten = torch.ops.aten
HIDDEN = -1e3  # an addend below this that leaves no weight is a mask
CELLS = 1 << 24  # compared at a time
_STILL = {_aten.view, _aten._unsafe_view, _aten._reshape_alias, _aten.clone, _aten.alias,
          _aten.detach, _aten.unsqueeze, _aten.squeeze}  # fmt: skip  # cells keep their order


def explain_product(node: Node, *, start: int, n_heads: int | None) -> Step:
    """The attention that ends in this product or kernel; `n_heads` where the module names it."""
    step = _read_kernel(node) if node.op in FUSED else _Attention(node, n_heads).step()
    return replace(step, stop=start + step.L)


class _Attention:
    """bmm(weights, v), or bmm(vᵀ, weightsᵀ), in the layout (N, L, S) that bmm has."""

    def __init__(self, product: Node, n_heads: int | None) -> None:
        *_, a, b = product.parents
        self.turned = softmax_behind(a) is None
        factor, values = (b, a) if self.turned else (a, b)
        way = softmax_behind(factor)
        assert way is not None
        self.softmax, self.way, self.product, self.named = way[0], way[1:], product, n_heads
        self.weights = self._turn_upright(factor.tensor.detach())  # (N, L, S)
        self.v = self._turn_upright(values.tensor.detach())
        self.out = self._turn_upright(product.tensor.detach())
        self.scores = self._move(self.softmax.parents[0].tensor.detach())

    def _turn_upright(self, t: Tensor) -> Tensor:
        return t.transpose(1, 2) if self.turned else t

    def _move(self, t: Tensor) -> Tensor:
        """Scores as the weights were moved before they met v."""
        return self._turn_upright(_replay_moves(t, self.way))

    def step(self) -> Step:
        q, k, scale, root = self._find_operands()
        L = self.weights.shape[1]
        B, H = self._count_sequences_and_heads(root)
        is_open, bias = self._find_mask_and_bias(q, k, scale)
        four = (B, H)

        def split(t: Tensor) -> Tensor:
            return t.unflatten(0, four)

        return Step(
            q=split(q),
            k=split(k),
            v=split(self.v),
            rule=find_rule(split(is_open)),
            bias=None if bias is None else split(bias),
            scale=scale,
            out=None if self._is_thinned() else split(self.out),
            stop=L,
        )

    def _is_thinned(self) -> bool:
        return any(map(is_dropout, self.way))

    def _find_operands(self) -> tuple[Tensor, Tensor, float, Node | None]:
        """q (N, L, D), k (N, S, D), the scale, and the product that they met in.

        Scores that are not one product, of several queries for one row say, have no q and k: these
        are zeros, and all of the scores is bias.
        """
        for root, way in products_behind(self.softmax.parents[0]):
            found = self._read_operands(root, way)
            if found is not None:
                return *found, root
        N, L, S = self.weights.shape
        q, k = (self.v.new_zeros(N, n, 1) for n in (L, S))
        return q, k, 1.0, None

    def _read_operands(self, root: Node, way: list[Node]) -> tuple[Tensor, Tensor, float] | None:
        left, right = (t.detach() for t in (root.parents[-2].tensor, root.parents[-1].tensor))
        right = right.transpose(1, 2)  # (N', S', D)
        factor = self._find_factor(root, way)
        if factor is None:
            return None
        cells = self._find_cells(root, way)
        if cells is None:
            q, k = left, right
        else:
            pairs = _gather_pairs(cells, left, right) or _gather_pairs(
                cells, right, left, turned=True
            )
            if pairs is None:
                return None
            q, k = pairs
        if factor.numel() == 1:
            return q, k, float(factor)
        per_row = factor.expand(self.weights.shape)
        if not bool((per_row == per_row[..., :1]).all()):
            return None
        return (q.double() * per_row[..., :1]).to(q.dtype), k, 1.0

    def _find_factor(self, root: Node, way: list[Node]) -> Tensor | None:
        """What the product is multiplied with on its way to the softmax."""
        alpha = root.options.get("alpha", 1) if root.op is _aten.baddbmm else 1
        factor = torch.tensor(float(alpha), dtype=torch.float64, device=root.tensor.device)
        before = root
        for node in way:
            if node.op in SCALES:
                if node.args[0] is not before.tensor and not _is_first(node, before):
                    if node.op in (_aten.div, _aten.div_):
                        return None
                    other = node.args[0]
                else:
                    other = node.args[1]
                if isinstance(other, Tensor):
                    other = other.detach().double()
                factor = factor / other if node.op in (_aten.div, _aten.div_) else factor * other
            elif node.op in (_aten.sub, _aten.sub_) and not _is_first(node, before):
                factor = -factor
            elif node.op in MOVES and factor.numel() > 1:
                factor = node.replay(factor.expand(before.tensor.shape))
            before = node
        if factor.numel() == 1:
            return factor.reshape(())
        if bool((factor == factor.flatten()[0]).all()):
            return factor.flatten()[0]
        return self._move(factor.expand(before.tensor.shape))

    def _find_cells(self, root: Node, way: list[Node]) -> Tensor | None:
        """Which cell of the product each cell of the scores is, (N, L, S); None: the same one."""
        moves = [node for node in [*way, *self.way] if node.op in MOVES]
        is_still = all(node.op in _STILL for node in moves) and not self.turned
        if is_still and root.tensor.shape == self.weights.shape:
            return None
        cells = torch.arange(root.tensor.numel(), device=root.tensor.device)
        cells = _replay_moves(cells.view(root.tensor.shape), way)
        cells = self._move(cells.expand(self.softmax.tensor.shape))
        same = torch.arange(cells.numel(), device=cells.device).view(cells.shape)
        if root.tensor.shape == self.weights.shape and torch.equal(cells, same):
            return None
        return cells

    def _count_sequences_and_heads(self, root: Node | None) -> tuple[int, int]:
        """How the N of bmm is made up: as the weights were before, else as q was."""
        N = len(self.weights)
        queries = () if root is None else _trace_back(root.parents[-2])
        for node in [*self.way[::-1], self.softmax, *queries]:
            shape = node.tensor.shape
            if len(shape) >= 4 and math.prod(shape[:-2]) == N:
                return N // shape[-3], shape[-3]
        heads = self.named if self.named and N % self.named == 0 else 1
        return N // heads, heads

    def _find_mask_and_bias(
        self, q: Tensor, k: Tensor, scale: float
    ) -> tuple[Tensor, Tensor | None]:
        """Open cells, and what is added to their scores; fails if the weights are other ones."""
        N, L, S = self.weights.shape
        is_open = torch.empty(N, L, S, dtype=torch.bool, device=q.device)
        rest = torch.empty(N, L, S, dtype=q.dtype, device=q.device)
        noise = largest = 0.0
        parts = list(torch.arange(N, device=q.device).split(max(CELLS // (L * S), 1)))
        for part in parts:
            raw = q[part].double() @ k[part].double().transpose(1, 2) * scale
            scores = self.scores[part].double()
            added = scores - raw
            hidden = added < HIDDEN
            empty = hidden.all(-1, keepdim=True) | (self.weights[part] == 0).all(-1, keepdim=True)
            hidden = empty | (hidden & (self.weights[part] == 0)) | scores.isneginf()
            is_open[part] = ~hidden
            added = added.masked_fill(hidden, 0.0)
            rest[part] = added.to(q.dtype)
            largest = max(largest, float(scores.masked_fill(hidden, 0.0).abs().max()))
            size = q[part].double().norm(dim=-1).amax() * k[part].double().norm(dim=-1).amax()
            noise = max(noise, float(size * abs(scale)))
        coarse = max(torch.finfo(t.dtype).eps for t in (q, self.scores, self.weights))
        bias = rest if float(rest.abs().max()) > 8 * coarse * max(noise, largest) else None
        for part in parts:
            scores = q[part].double() @ k[part].double().transpose(1, 2) * scale
            scores = scores if bias is None else scores + bias[part]
            scores = scores.masked_fill(~is_open[part], -math.inf)
            weights = scores.softmax(-1).nan_to_num(0.0)
            if self._is_thinned():
                theirs = self.softmax_weights(part)
            else:
                theirs = self.weights[part].double()
            filled = is_open[part].any(-1, keepdim=True)
            apart = float((weights - theirs).abs().where(filled, 0.0).max())
            if not apart <= 32 * coarse * (1 + largest):
                self._raise_difference(apart, theirs.sum(-1).masked_select(filled[..., 0]))
        return is_open, bias

    def _raise_difference(self, apart: float, sums: Tensor) -> None:
        least = float(sums.min())
        if abs(least - 1) > 1e-2:
            raise TraceError(
                "a row of its weights must meet all of its values at once; here rows of the "
                f"softmax are cut, and the weights of one sum to {least:.2g}."
            )
        raise TraceError(
            "the weights that follow from its queries and keys must be those that it multiplies "
            f"with its values; they differ by {apart:.2g}."
        )

    def softmax_weights(self, part: Tensor) -> Tensor:
        """Before they were thinned."""
        return self._move(self.softmax.tensor.detach())[part].double()


def _read_kernel(node: Node) -> Step:
    """A kernel that a module calls by itself: q, k, v and the mask are its arguments."""
    schema = node.function._schema
    names = [argument.name for argument in schema.arguments]
    given = dict(zip(names, node.args, strict=False)) | node.options
    q, k, v = (given[name].detach() for name in ("query", "key", "value"))
    L, S = q.shape[2], k.shape[2]
    mask = given.get("attn_mask", given.get("attn_bias"))
    bias = None
    if mask is not None:
        rule, bias = read_mask(mask, L, S, is_added=False)
    elif given.get("is_causal"):
        rule = find_rule(torch.ones(1, 1, L, S, dtype=torch.bool, device=q.device).tril())
    else:
        rule = MaskRule(L=L, S=S, device=q.device)
    scale = given.get("scale")
    out = node.tensor.detach()
    return Step(
        q=q,
        k=k,
        v=v,
        rule=rule,
        bias=bias,
        scale=None if scale is None else float(scale),
        out=None if given.get("dropout_p") or out.shape[:3] != q.shape[:3] else out,
        stop=L,
    )


def _replay_moves(t: Tensor, way: list[Node]) -> Tensor:
    """The moves of the way alone, made with another tensor."""
    for node in way:
        if node.op in MOVES:
            t = node.replay(t)
        elif t.shape != node.tensor.shape:
            t = t.expand(node.tensor.shape)
    return t


def _trace_back(node: Node) -> Iterator[Node]:
    while node.op in MOVES | KEEPS | SCALES and node.parents:
        yield node
        node = node.parents[0]
    yield node


def _is_first(node: Node, before: Node) -> bool:
    return bool(node.parents) and node.parents[0] is before


def _gather_pairs(
    cells: Tensor, rows: Tensor, cols: Tensor, *, turned: bool = False
) -> tuple[Tensor, Tensor] | None:
    """q and k of each cell, where each row of scores is one query and each column one key.

    Of the product, (N', L', S'), cell (n', l', s') has the number (n' · L' + l') · S' + s'.
    """
    n_rows, n_cols = (cols.shape[1], rows.shape[1]) if turned else (rows.shape[1], cols.shape[1])
    n = cells // (n_rows * n_cols)
    first, second = cells // n_cols % n_rows, cells % n_cols
    row, col = (second, first) if turned else (first, second)
    is_plain = (
        bool((n == n[:, :1, :1]).all())
        and bool((row == row[..., :1]).all())
        and bool((col == col[:, :1]).all())
    )
    if not is_plain:
        return None
    one = n[:, 0, 0]
    return rows[one[:, None], row[..., 0]], cols[one[:, None], col[:, 0]]
