"""Cross-entropy of a linear output layer, a chunk of rows at a time: all logits never exist.

    hidden (N, C) ─ chunk ─ @ weightᵀ ─ logits (n, V) ─ softmax ─ p − target ─┬─ @ weight ─ d_hidden
                      └───────────────────────────────────────────────────────┴─ᵀ@ hidden ─ d_weight

The loss is a sum over rows, so its gradients are known up to a factor as soon as the logits are:
the forward pass computes both, and the backward pass multiplies. Three matrix products, as without
chunks, and memory for one chunk instead of all logits in float32, their gradient and its copies.
"""

from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.functional.autocast import autocast_dtype
from glassformer.functional.triton_support import triton_refusal
from glassformer.training.cpu_products import multiply, multiply_rows, takes_product
from glassformer.training.float8_loss import differentiate_chunk, takes_float8
from glassformer.training.float8_matrices import round_matrix
from glassformer.training.loss import IGNORED
from glassformer.training.native_loss import Measure, find_measure

# Logits in a chunk: few enough for the memory. The kernel in C writes all chunks into the same
# place, which then is in the caches; a chunk has rows enough for fast products. On a GPU each chunk
# costs time, so that there is one as long as its logits take no more than this share of the memory.
_CHUNK = {"cpu": 1 << 26, "C": 1 << 22, "cuda": 1 << 31}
_ROWS_IN_C = 256
_SHARE = 1 / 16
_FEW = 1 << 16  # logits: below this, PyTorch is done before the kernel in C would be compiled
# Tensor cores need rows of logits that begin at multiples of 16 bytes; 64 also fits their tiles.
_ALIGNED = 64


def linear_cross_entropy_sum(
    hidden: Float[Tensor, "*B C"],
    weight: Float[Tensor, "V C"],
    targets: Int[Tensor, "*B"],
    *,
    bias: Float[Tensor, " V"] | None = None,
    smoothing: float = 0.0,
    float8: bool = False,
) -> Float[Tensor, ""]:
    """`cross_entropy_sum(F.linear(hidden, weight, bias), targets)` in the memory of a chunk.

    With `float8` its products have operands of 8 bits, where a GPU and the sizes allow it.

    >>> hidden, weight = torch.zeros(1, 3, 2), torch.zeros(4, 2)
    >>> linear_cross_entropy_sum(hidden, weight, torch.tensor([[1, 2, IGNORED]]))  # 2 · log 4
    tensor(2.7726)
    """
    dtype = autocast_dtype(hidden)
    rows = (hidden if dtype is None else hidden.to(dtype)).flatten(0, -2)  # (B, L, C) → (BL, C)
    learns = torch.is_grad_enabled()
    return chunked_loss(rows, weight, bias, targets.flatten(), smoothing, learns, float8)[0]


@torch.library.custom_op("glassformer::chunked_loss", mutates_args=())
def chunked_loss(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float,
    learns: bool,
    float8: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The sum of losses, and with `learns` its gradients for hidden, weight and bias."""
    with torch.autocast(hidden.device.type, enabled=False):
        if float8 and learns and takes_float8(hidden, bias):
            return _compute_in_float8(hidden, weight, targets, smoothing)
        kept = (targets != IGNORED).nonzero()[:, 0] if hidden.device.type == "cpu" else None
        if kept is None or len(kept) == len(targets):
            return _compute_chunks(hidden, weight, bias, targets, smoothing, learns)
        # Ignored rows cost nothing, where finding them does not wait for a GPU.
        loss, part, *rest = _compute_chunks(
            hidden[kept], weight, bias, targets[kept], smoothing, learns
        )
        d_hidden = torch.zeros_like(hidden).index_copy_(0, kept, part) if learns else part
        return loss, d_hidden, rest[0], rest[1]


def _compute_chunks(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float,
    learns: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    n, V = len(hidden), len(weight)
    exact = torch.promote_types(hidden.dtype, torch.float32)
    loss = hidden.new_zeros((), dtype=exact)
    d_hidden = torch.empty_like(hidden) if learns else hidden.new_empty(0)
    d_bias = weight.new_zeros(V if learns and bias is not None else 0)
    table, shift = _cast_table(weight, bias, hidden)
    d_weight = weight.new_empty(table.shape if learns else 0)  # its rows are padded, too
    if n == 0:
        d_weight.zero_()
    by_kernel = exact == torch.float32 and triton_refusal(hidden.device) is None
    compute = _compute_by_kernel if by_kernel else _compute_by_torch
    measure = _find_measure(hidden, table, targets)
    bounds = _chunk_bounds(n, V, hidden, in_c=measure is not None)
    multiply_by, add_gradients = _multiply, _add_gradients
    if bounds and takes_product(hidden[: bounds[0][1]], table):
        multiply_by, add_gradients = _multiply_by_onednn, _add_gradients_by_onednn
    room = None
    if measure is not None:
        compute = partial(_compute_in_c, measure)
        room = hidden.new_empty(bounds[0][1], V) if multiply_by is _multiply else None
    for first, end in bounds:
        x, wanted = hidden[first:end], targets[first:end]
        logits = multiply_by(x, table, shift, None if room is None else room[: end - first])
        part, gradient = compute(logits, wanted, V, smoothing, learns)
        loss += part
        if gradient is None:
            continue
        add_gradients(gradient, x, table, d_hidden[first:end], d_weight, is_later=first > 0)
        if bias is not None:
            d_bias += gradient[:, :V].sum(0, dtype=exact)
    return loss, d_hidden, d_weight[:V], d_bias


def _compute_in_float8(
    hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    n, V = len(hidden), len(weight)
    table = round_matrix(F.pad(weight, (0, 0, 0, -V % _ALIGNED)))
    loss, d_weight, d_hidden = None, None, []
    for first, end in _chunk_bounds(n, V, hidden, in_c=False):
        rows = slice(first, end)
        part, d_rows, d_table = differentiate_chunk(
            hidden[rows], table, targets[rows], V, smoothing
        )
        loss = part if loss is None else loss + part
        d_weight = d_table if d_weight is None else d_weight.add_(d_table)
        d_hidden.append(d_rows)
    assert loss is not None and d_weight is not None  # there are rows
    d_rows = d_hidden[0] if len(d_hidden) == 1 else torch.cat(d_hidden)
    return loss, d_rows, d_weight.to(weight.dtype), weight.new_empty(0)


def _cast_table(
    weight: Tensor, bias: Tensor | None, hidden: Tensor
) -> tuple[Tensor, Tensor | None]:
    """The output matrix in the dtype of the products, with rows of zeros up to an aligned number.

    Casting writes a new matrix in any case, so that the padding costs nothing.
    """
    shift = None if bias is None else bias.to(hidden.dtype)
    if weight.dtype == hidden.dtype or not hidden.is_cuda:
        return weight.to(hidden.dtype), shift
    missing = -len(weight) % _ALIGNED
    table = hidden.new_empty(len(weight) + missing, weight.shape[1])
    table[: len(weight)] = weight
    table[len(weight) :] = 0.0
    return table, None if shift is None else F.pad(shift, (0, missing))


def _multiply(x: Tensor, table: Tensor, shift: Tensor | None, room: Tensor | None) -> Tensor:
    if room is None:
        return F.linear(x, table, shift)
    if shift is None:
        return torch.mm(x, table.t(), out=room)
    return torch.addmm(shift, x, table.t(), out=room)


def _add_gradients(
    gradient: Tensor,
    x: Tensor,
    table: Tensor,
    d_rows: Tensor,
    d_weight: Tensor,
    *,
    is_later: bool,  # the first chunk overwrites what is in d_weight
) -> None:
    """The gradients of a chunk's logits become those of its rows and of the output matrix."""
    torch.mm(gradient, table, out=d_rows)
    if gradient.dtype == d_weight.dtype:
        d_weight.addmm_(gradient.t(), x, beta=int(is_later))
        return
    if gradient.is_cuda and d_weight.dtype == torch.float32 and torch.version.cuda:
        # As precisely as it is summed, and padded: 50,257 rows take 1.6 × as long as 50,304.
        if is_later:
            d_weight.add_(torch.mm(gradient.t(), x, out_dtype=torch.float32))
        else:
            torch.mm(gradient.t(), x, out_dtype=torch.float32, out=d_weight)
        return
    part = gradient.t() @ x
    d_weight.add_(part) if is_later else d_weight.copy_(part)


def _multiply_by_onednn(
    x: Tensor, table: Tensor, shift: Tensor | None, _room: Tensor | None
) -> Tensor:
    return multiply(x, table, shift)


def _add_gradients_by_onednn(
    gradient: Tensor,
    x: Tensor,
    table: Tensor,
    d_rows: Tensor,
    d_weight: Tensor,
    *,
    is_later: bool,
) -> None:
    d_rows.copy_(multiply(gradient, table.t()))
    part, _ = multiply_rows(gradient, x, table)
    d_weight.add_(part) if is_later else d_weight.copy_(part)


def _chunk_bounds(n: int, vocab_size: int, hidden: Tensor, *, in_c: bool) -> list[tuple[int, int]]:
    """Equal parts of n rows, each with at most so many logits as suit the device."""
    most = _CHUNK["cpu" if hidden.device.type == "cpu" else "cuda"]
    if in_c:
        most = max(_CHUNK["C"], _ROWS_IN_C * vocab_size)
    if hidden.is_cuda:
        memory = torch.cuda.get_device_properties(hidden.device).total_memory
        most = min(most, int(memory * _SHARE) // hidden.element_size())
    n_chunks = max(1, -(-n // max(1, most // vocab_size)))
    rows = max(1, -(-n // n_chunks))
    if hidden.is_cuda:
        rows += -rows % _ALIGNED
    return [(first, min(n, first + rows)) for first in range(0, n, rows)]


def _compute_by_torch(
    logits: Tensor, targets: Tensor, vocab_size: int, smoothing: float, learns: bool
) -> tuple[Tensor, Tensor | None]:
    """The loss of a chunk, and its gradient for the logits."""
    exact = torch.promote_types(logits.dtype, torch.float32)
    log_p = logits[:, :vocab_size].log_softmax(-1, dtype=exact)
    ignored, index = targets == IGNORED, targets.clamp(min=0)[:, None]
    losses = log_p.gather(1, index)[:, 0] * (smoothing - 1.0)
    if smoothing:
        losses -= log_p.sum(-1) * (smoothing / vocab_size)
    loss = losses.masked_fill_(ignored, 0.0).sum()
    if not learns:
        return loss, None
    gradient = log_p.exp_()
    if smoothing:
        gradient -= smoothing / vocab_size
    gradient.scatter_add_(1, index, gradient.new_full((1, 1), smoothing - 1.0).expand_as(index))
    if logits.device.type != "cpu":  # there, no row is ignored
        gradient.masked_fill_(ignored[:, None], 0.0)
    missing = logits.shape[1] - vocab_size
    if missing:  # padding by nothing would copy
        gradient = F.pad(gradient, (0, missing))
    return loss, gradient.to(logits.dtype)


def _find_measure(hidden: Tensor, table: Tensor, targets: Tensor) -> Measure | None:
    """The kernel in C, where it can compute this."""
    if hidden.device.type != "cpu" or hidden.dtype != torch.float32:
        return None
    if len(hidden) * len(table) < _FEW or targets.dtype != torch.long:
        return None
    least, most = targets.aminmax()
    if least < 0 or most >= len(table):
        return None  # PyTorch says what is wrong
    return find_measure()


def _compute_in_c(
    measure: Measure,
    logits: Tensor,
    targets: Tensor,
    vocab_size: int,  # noqa: ARG001  (nothing is padded here)
    smoothing: float,
    learns: bool,
) -> tuple[Tensor, Tensor | None]:
    """The same by one kernel, which writes the gradient over the logits."""
    losses = measure(logits, targets.contiguous(), smoothing, learns)
    return losses.sum(), logits if learns else None


def _compute_by_kernel(
    logits: Tensor, targets: Tensor, vocab_size: int, smoothing: float, learns: bool
) -> tuple[Tensor, Tensor | None]:
    """The same by one kernel, which writes the gradient over the logits."""
    # Imported here, because it imports triton.
    from glassformer.training.loss_kernel import measure_rows

    losses = measure_rows(logits, targets, vocab_size, smoothing, learns=learns)
    return losses.sum(), logits if learns else None


@chunked_loss.register_fake
def _(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float,
    learns: bool,
    float8: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    del targets, smoothing, float8
    exact = torch.promote_types(hidden.dtype, torch.float32)
    return (
        hidden.new_empty((), dtype=exact),
        torch.empty_like(hidden) if learns else hidden.new_empty(0),
        weight.new_empty(weight.shape if learns else 0),
        weight.new_empty(len(weight) if learns and bias is not None else 0),
    )


def _keep_gradients(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    ctx.set_materialize_grads(False)
    ctx.has_bias = inputs[2] is not None
    ctx.save_for_backward(*output[1:])


def _scale_gradients(ctx, scale, *_unused):  # type: ignore[no-untyped-def]
    d_hidden, d_weight, d_bias = (kept * scale for kept in ctx.saved_tensors)
    return d_hidden, d_weight, d_bias if ctx.has_bias else None, None, None, None, None


chunked_loss.register_autograd(_scale_gradients, setup_context=_keep_gradients)
