"""Statistics of packed batches and paged caches on a GPU, beside the attention of such a batch.

Called by attention_statistics.py with --packed and --paged. The attention call is PyTorch's flash
kernel for sequences of unequal length, on keys side by side also where ours are in a cache; where
all have the same length, the padded call that PyTorch chooses is shown as well.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

import glassformer as gf
from measure import compare

DEVICE = "cuda"
N_HEADS, BLOCK, SINKS, WINDOW, OBSERVE = 16, 16, 4, 1024, 64
MOST = 1.1  # times the attention call, with lse known
LENGTHS = [2048, 1, 777, 130, 3001]  # of the check
FIELDS = ("lse", "entropy", "peak", "received", "observed")


class Batch(NamedTuple):
    """Sequences in one row, with as many keys as queries."""

    q: Tensor  # (T, H, D), as kernels for packed batches take it
    k: Tensor  # (T, K, D)
    v: Tensor
    starts: Tensor
    longest: int

    @classmethod
    def of(cls, lengths: list[int], n_kv_heads: int, D: int, dtype: torch.dtype) -> "Batch":
        T = sum(lengths)
        q, k, v = (
            torch.randn(T, n, D, device=DEVICE, dtype=dtype)
            for n in (N_HEADS, n_kv_heads, n_kv_heads)
        )
        starts = torch.tensor([0, *lengths]).cumsum(0).to(DEVICE, torch.int32)
        return cls(q, k, v, starts, max(lengths))

    def attend(self) -> Tensor:
        """The output of the flash kernel for packed batches, causal."""
        return torch.ops.aten._flash_attention_forward(
            self.q,
            self.k,
            self.v,
            self.starts,
            self.starts,
            self.longest,
            self.longest,
            0.0,
            True,
            False,
        )[0]

    def operands(self, paged: bool) -> dict[str, Any]:
        """q, k and the layout for `attention_statistics`; blocks of a cache are in random order."""
        q = self.q.transpose(0, 1)[None]
        if not paged:
            k = self.k.transpose(0, 1)[None]
            return {"q": q, "k": k, "packed": gf.Packed(self.starts)}
        lengths = self.starts.diff().tolist()
        counts = [-(-n // BLOCK) for n in lengths]
        order = torch.randperm(sum(counts), device=DEVICE)
        table = torch.zeros(len(lengths), max(counts), dtype=torch.int32, device=DEVICE)
        cache = torch.zeros(len(order), BLOCK, *self.k.shape[1:], device=DEVICE, dtype=self.k.dtype)
        used = 0
        for i, (n, count) in enumerate(zip(lengths, counts, strict=True)):
            own = order[used : used + count]
            first = int(self.starts[i])
            rows = F.pad(self.k[first : first + n], (0, 0, 0, 0, 0, count * BLOCK - n))
            cache[own] = rows.unflatten(0, (count, BLOCK))
            table[i, :count] = own.int()
            used += count
        packed = gf.Packed(self.starts, self.starts, table, n_keys=sum(lengths))
        return {"q": q, "k": cache.transpose(1, 2), "packed": packed}


def cost(paged: bool, n_kv_heads: int, repeats: int) -> bool:
    """The statistics of 64 sequences of 2,048 tokens and of one of 65,536, `lse` known."""
    where = f"keys in a cache with blocks of {BLOCK}" if paged else "keys side by side"
    print(f"packed, causal, bfloat16, {N_HEADS} heads over {n_kv_heads}, {where}; times in ms")
    print(f"(more: with the shares of {SINKS} first keys and of a window of {WINDOW}, and what the")
    print(f" last {OBSERVE} queries give; padded: against the call for sequences of equal length)")
    print("batch         D    attention  statistics  ratio   noise   more    padded   lse unknown")
    fine = True
    for n, L in ((64, 2048), (1, 65_536)):
        for D in (64, 128):
            batch = Batch.of([L] * n, n_kv_heads, D, torch.bfloat16)
            operands = batch.operands(paged)
            lse = gf.attention_statistics(**operands, mask=gf.Causal(), distance=False).lse
            padded = [
                x.view(n, L, -1, D).transpose(1, 2).contiguous()
                for x in (batch.q, batch.k, batch.v)
            ]

            def look(lse=lse, operands=operands, **more: Any) -> Any:
                return gf.attention_statistics(
                    **operands, mask=gf.Causal(), distance=False, lse=lse, **more
                )

            def look_more(look=look) -> Any:
                parts = (gf.Prefix(SINKS), gf.Window(left=WINDOW - 1))
                return look(within=parts, observe=OBSERVE)

            def attend_padded(padded=padded) -> Tensor:
                options = {"is_causal": True, "enable_gqa": n_kv_heads < N_HEADS}
                return F.scaled_dot_product_attention(*padded, **options)

            times = max(repeats * 16_384 // L, 9) if n == 1 else repeats
            known = compare(look, batch.attend, "cuda", repeats=times)
            more = compare(look_more, batch.attend, "cuda", repeats=times)
            equal = compare(look, attend_padded, "cuda", repeats=times)
            unknown = compare(lambda look=look: look(lse=None), batch.attend, "cuda", repeats=times)
            fine &= known.ratio <= MOST
            print(
                f"{n:>2} × {L:<7} {D:<4} {known.theirs * 1e3:9.3f} {known.ours * 1e3:11.3f} "
                f"{known.ratio:6.3f} {known.noise:7.3f} {more.ratio:7.3f} {equal.ratio:8.3f} "
                f"{unknown.ratio:12.3f}"
            )
    print()
    return fine


def exactness(paged: bool, n_kv_heads: int) -> bool:
    """The largest error against float64 of each sequence alone: at most 1e-5."""
    print(f"largest error, sequences of {LENGTHS}, relative where values exceed 1")
    print("dtype     D    " + "  ".join(f"{name:<9}" for name in (*FIELDS, "within", "largest")))
    fine = True
    more = {"within": (gf.Prefix(SINKS), gf.Window(left=99)), "observe": OBSERVE}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for D in (64, 128):
            batch = Batch.of(LENGTHS, n_kv_heads, D, dtype)
            got = gf.attention_statistics(**batch.operands(paged), mask=gf.Causal(), **more)
            q, k = (x.double().transpose(0, 1)[None] for x in (batch.q, batch.k))
            right = gf.attention_statistics(
                q, k, packed=gf.Packed(batch.starts), mask=gf.Causal(), **more
            )
            pairs = [(getattr(got, name), getattr(right, name)) for name in FIELDS]
            pairs.append((torch.stack(got.within), torch.stack(right.within)))
            pairs.append((got.largest, right.largest))
            errors = [((a - b).abs().max() / b.abs().max().clamp(min=1)).item() for a, b in pairs]
            fine &= max(errors) <= 1e-5
            name = str(dtype).removeprefix("torch.")
            print(f"{name:<9} {D:<4} " + "  ".join(f"{e:<9.1e}" for e in errors))
    print()
    return fine
