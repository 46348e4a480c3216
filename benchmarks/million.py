"""A matrix of a million by a million: its map, and exact tiles of it, beside the bare forward.

python benchmarks/million.py                    one layer, 8 heads, D 64, 1,048,576 tokens, bfloat16
"""

import argparse
import sys
from functools import partial

import torch
import torch.nn.functional as F

import glassformer as gf
from glassformer.functional.statistics.kernel_lse import KernelLse
from glassformer.functional.statistics.summary import AttentionStatistics


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--length", type=int, default=1 << 20)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--map", type=int, default=1024)
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    device, n = torch.device(args.device), args.length
    torch.manual_seed(0)
    shape = (3, 1, args.heads, n, 64)
    q, k, v = torch.randn(shape, device=device, dtype=torch.bfloat16).unbind(0)
    matrix = args.heads * n * n * 2 / 2**40
    print(
        f"{args.heads} heads, {n:,} tokens, causal; the weights alone would take {matrix:,.1f} TiB"
    )

    warm = q[:, :, :4096], k[:, :, :4096], v[:, :, :4096]
    F.scaled_dot_product_attention(*warm, is_causal=True)
    gf.attention_statistics(warm[0], warm[1], mask=gf.Causal(), map_size=args.map)

    def attend() -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def look(lse: torch.Tensor | None = None) -> AttentionStatistics:
        return gf.attention_statistics(q, k, mask=gf.Causal(), map_size=args.map, lse=lse)

    spent, mib, _ = measured(attend, device)
    print(f"{'bare fused forward':<56} {spent:8.2f} s {mib:10,.0f} MiB")
    with KernelLse() as heard:
        attend()  # the first of its kind is checked
        listening, mib, _ = measured(attend, device)
    print(f"{'the same, overheard':<56} {listening:8.2f} s {mib:10,.0f} MiB")
    what = f"map of {args.map}², entropy, received, peak, distance"
    for name, lse in ((f"{what}, alone", None), (f"{what}, after it", heard.lse)):
        looking, mib, seen = measured(partial(look, lse), device)
        print(f"{name:<56} {looking:8.2f} s {mib:10,.0f} MiB   {looking / spent:.2f} ×")

    places = torch.linspace(0, n - 256, 10).long().tolist()

    def tiles() -> list[torch.Tensor]:
        return [
            gf.attention_tile(
                q, k, seen.lse, slice(i, i + 256), slice(max(0, i - 64), i + 192), mask=gf.Causal()
            )
            for i in places
        ]

    spent, mib, _ = measured(tiles, device)
    print(f"{'ten exact tiles of 256 × 256, every head':<56} {spent:8.2f} s {mib:10,.0f} MiB")
    rows = gf.attention_tile(q, k, seen.lse, [0, n // 2, n - 1], slice(0, n), mask=gf.Causal()).sum(
        -1
    )
    worst = float((rows - 1).abs().max())
    total = float((seen.received.double().sum(-1) / n - 1).abs().max())
    print(f"rows sum to 1 within {worst:.1e}, all received mass to 1 a query within {total:.1e}")
    return 0 if max(worst, total) < 1e-3 else 1


def measured(work, device: torch.device) -> tuple[float, float, object]:
    """Seconds, peak memory beyond what was there, and the result."""
    if device.type != "cuda":
        import time

        start = time.perf_counter()
        result = work()
        return time.perf_counter() - start, float("nan"), result
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    result = work()
    stop.record()
    torch.cuda.synchronize()
    mib = (torch.cuda.max_memory_allocated() - before) / 2**20
    return start.elapsed_time(stop) / 1000, mib, result


if __name__ == "__main__":
    sys.exit(main())
