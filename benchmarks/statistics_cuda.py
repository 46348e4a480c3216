"""What the statistics kernel would gain in CUDA: statistics_cuda.cu beside Triton's, on Hopper.

python benchmarks/statistics_cuda.py --lengths 16384 65536

The library uses Triton's alone (docs/decisions/0009). In CUDA there is the main launch, of tiles
that no mask crosses, for heads of 64 in bfloat16, causal and without a map; the other launch is
Triton's in both. First all results are compared with float64, with exit code 1 on a breach; then
both take turns with attention itself. PyTorch compiles the file by NVRTC.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import glassformer as gf
from glassformer.functional.statistics import kernels
from glassformer.functional.statistics.summary import AttentionStatistics
from measure import compare

SOURCE = Path(__file__).with_suffix(".cu")
KEYS, WIDTH, THREADS = 128, 128, 128
SHARED = 1024 + KEYS * WIDTH + 4 * 3 * 16 * WIDTH  # bytes: keys, and queries of four warps
ALLOWED = 1e-5


class InCuda:
    """Takes the place of Triton's kernel; its launch with comparisons stays as it is."""

    def __init__(self) -> None:
        self.triton: Any = kernels.statistics_kernel
        self.run = torch.cuda._compile_kernel(SOURCE.read_text(), "statistics", "90a")
        self.is_on = True

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*arguments: Any, **options: Any) -> None:
            if options["CAREFUL"] or not self.is_on:
                self.triton[grid](*arguments, **options)
            else:
                self.launch(*arguments[:6], scale=arguments[-2])

        return launch

    def launch(self, q: Tensor, k: Tensor, *results: Tensor, scale: float) -> None:
        (B, H, L, _), (_, K, S, _) = q.shape, k.shape
        strides = [n * x.element_size() for x in (q, k) for n in x.stride()[:3]]
        sizes = [H, H // K, L, S]
        grid = (B * H, -(-S // KEYS), 1)
        arguments = [q, k, *results, *strides, *sizes, float(scale)]
        self.run(grid, (THREADS, 1, 1), arguments, shared_mem=SHARED)


def make_operands(B: int, H: int, K: int, L: int, S: int) -> tuple[Tensor, Tensor, Tensor]:
    q = torch.randn(B, H, L, 64, device="cuda", dtype=torch.bfloat16)
    k = torch.randn(B, K, S, 64, device="cuda", dtype=torch.bfloat16)
    return q, k, gf.attention_lse(q, k, mask=gf.Causal())


def measure(q: Tensor, k: Tensor, lse: Tensor) -> AttentionStatistics:
    return gf.attention_statistics(q, k, mask=gf.Causal(), lse=lse, distance=False)


def check(B: int, H: int, K: int, L: int, S: int) -> bool:
    """Whether all results are those of float64."""
    q, k, lse = make_operands(B, H, K, L, S)
    found = measure(q, k, lse)
    k = k.double().repeat_interleave(H // K, dim=1)
    hidden = torch.ones(L, S, device="cuda", dtype=torch.bool).triu(1 + S - L)
    weights = ((q.double() @ k.mT) / 8).masked_fill(hidden, -torch.inf).softmax(-1)
    entropy = torch.special.entr(weights).sum(-1)
    exact = {"entropy": entropy, "peak": weights.amax(-1), "received": weights.sum(-2)}
    errors = {
        name: ((getattr(found, name).double() - each).abs() / each.clamp(min=1)).max().item()
        for name, each in exact.items()
    }
    fine = max(errors.values()) <= ALLOWED
    worst = ", ".join(f"{name} {error:.1e}" for name, error in errors.items())
    print(f"{'ok    ' if fine else 'BREACH'} {(B, H, K, L, S)}: {worst}", flush=True)
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[16_384, 65_536])
    parser.add_argument("--repeats", type=int, default=24)
    args = parser.parse_args()
    kernel = kernels.statistics_kernel = InCuda()
    cases = [(1, 5, 5, 1_500, 1_500), (2, 6, 2, 640, 640), (1, 2, 1, 777, 1_337)]
    if not all(check(*case) for case in cases):
        return 1
    for length in args.lengths:
        q, k, lse = make_operands(1, 12, 12, length, length)

        def attend(q: Tensor = q, k: Tensor = k) -> Tensor:
            return F.scaled_dot_product_attention(q, k, k, is_causal=True)

        for name, is_on in (("Triton", False), ("CUDA", True)):
            kernel.is_on = is_on
            run = partial(measure, q, k, lse)
            found = compare(run, attend, "cuda", repeats=args.repeats)
            print(
                f"{length:>8,} tokens, {name:<6} {found.ours * 1e3:9.3f} ms, attention "
                f"{found.theirs * 1e3:9.3f} ms: {found.ratio:.3f} (noise {found.noise:.3f})"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
