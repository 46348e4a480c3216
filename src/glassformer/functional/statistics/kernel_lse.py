"""The log-sum-exp that PyTorch's fused kernels compute anyway, captured on request.

`F.scaled_dot_product_attention` calls a kernel and drops its `lse`. While `KernelLse` is active,
the same kernel is called directly and `lse` is kept; the output is bitwise the same. Both claims
are verified once for every kind of call; if either fails, PyTorch's own call is used.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend
from torch.overrides import TorchFunctionMode

from glassformer.functional.cells import Tile
from glassformer.functional.checks import check_scoring
from glassformer.functional.masks import Causal
from glassformer.functional.tiles import tile_scores

LEAST = 1 << 20  # cells: below this, recomputing lse costs little
_NEAR = 1e-5  # relative if lse exceeds 1; PyTorch's bfloat16 CPU kernel exceeds it

_trusted: dict[tuple[Any, ...], bool] = {}


class KernelLse(TorchFunctionMode):
    """While this is active, `lse` is that of the last fused attention, or None.

    >>> q, k, v = torch.randn(3, 1, 2, 1024, 8).unbind(0)
    >>> with KernelLse() as heard:
    ...     out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    >>> heard.lse.shape
    torch.Size([1, 2, 1024])
    """

    lse: Float[Tensor, "B H L"] | None = None

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        del types
        options = kwargs or {}
        if func is not F.scaled_dot_product_attention:
            return func(*args, **options)
        self.lse = None
        try:
            call = _Call.of(*args, **options)
            if call is not None and _is_trusted(call):
                out, self.lse = call.attend()
                return out
        except Exception:  # capturing must never fail: PyTorch answers, or raises its own error
            self.lse = None
        return func(*args, **options)


class _Call(NamedTuple):
    """Attention without a dense mask and dropout, and the kernel that PyTorch chooses."""

    q: Tensor
    k: Tensor
    v: Tensor
    is_causal: bool
    scale: float | None
    enable_gqa: bool
    kernel: str

    @classmethod
    def of(
        cls,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> "_Call | None":
        """The call, or None if its lse is not available or not worth capturing."""
        is_plain = attn_mask is None and not dropout_p and query.ndim == 4 and not query.is_meta
        if not is_plain or query.shape[2] * key.shape[2] < LEAST or query.shape[3] % 8:
            return None
        options = {"is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
        choice = torch._fused_sdp_choice(query, key, value, **options)  # pyright: ignore
        kernel = _KERNELS.get((choice, query.device.type))
        if kernel is None:
            return None
        return cls(query, key, value, is_causal, scale, enable_gqa, kernel)

    def attend(self) -> tuple[Tensor, Float[Tensor, "B H L"]]:
        """The results of the kernel: the weighted sum, and the log-sum-exp of each row."""
        op = getattr(torch.ops.aten, self.kernel)
        before = (None, True) if self.kernel in _TAKE_BIAS else ()
        operands = self.q, self.k, self.v, *before
        out, lse, *_ = op(*operands, 0.0, self.is_causal, scale=self.scale)
        return out, lse.reshape(*self.q.shape[:2], -1)[..., : self.q.shape[2]]

    @property
    def kind(self) -> tuple[Any, ...]:
        layout = tuple((tuple(x.shape), x.stride(), x.requires_grad) for x in self[:3])
        return layout, self.q.dtype, self.q.device, *self[3:], torch.is_grad_enabled()


_KERNELS = {
    (SDPBackend.FLASH_ATTENTION.value, "cpu"): "_scaled_dot_product_flash_attention_for_cpu",
    (SDPBackend.FLASH_ATTENTION.value, "cuda"): "_scaled_dot_product_flash_attention",
    (SDPBackend.EFFICIENT_ATTENTION.value, "cuda"): "_scaled_dot_product_efficient_attention",
    (SDPBackend.CUDNN_ATTENTION.value, "cuda"): "_scaled_dot_product_cudnn_attention",
}
_TAKE_BIAS = (  # two more leading arguments: a bias, and whether to return lse
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
)


def _is_trusted(call: _Call) -> bool:
    """Whether the kernel called directly gives PyTorch's result, and its lse is ours."""
    kind = call.kind
    if kind not in _trusted:
        with torch.no_grad():
            _trusted[kind] = _is_same(call)
    return _trusted[kind]


def _is_same(call: _Call) -> bool:
    try:
        out, lse = call.attend()
    except (RuntimeError, TypeError):  # another PyTorch version, or inputs that it preprocesses
        return False
    q, k, v = (x.detach() for x in call[:3])
    options = {"is_causal": call.is_causal, "scale": call.scale, "enable_gqa": call.enable_gqa}
    expected = F.scaled_dot_product_attention(q, k, v, **options)
    if lse.shape != q.shape[:3] or not torch.equal(out, expected):
        return False
    # PyTorch's causal flag aligns the first query with the first key.
    mask = Causal(offset=0) if call.is_causal else None
    scoring = check_scoring(q, k, mask=mask, bias=None, scale=call.scale, softcap=None)
    L, S = scoring.extent[2:]
    rows = torch.tensor([0, L // 2, L - 1], device=q.device)
    tile = Tile(scoring.extent, rows, slice(0, S), q.device)
    apart = (tile_scores(q, k, scoring, tile).logsumexp(-1) - lse[:, :, rows]).abs()
    return bool((apart <= _NEAR * lse[:, :, rows].abs().clamp(min=1)).all())
