"""What statistics cost on a GPU beside attention itself: at most the time of its forward pass.

python benchmarks/attention_statistics.py       16,384 and 65,536 tokens, causal, bfloat16, H 16
    --packed   64 sequences of 2,048 tokens and one of 65,536, without padding
    --paged    the same with the keys in the blocks of a cache
"""

import argparse
import sys

import torch
import torch.nn.functional as F

import glassformer as gf
import packed_statistics
from glassformer.functional.statistics.summary import AttentionStatistics
from measure import Work, compare

N_HEADS, MAP_SIZE = 16, 128
FIELDS = ("lse", "entropy", "peak", "distance", "received")


def cost(lengths: list[int], repeats: int) -> bool:
    """Statistics against `F.scaled_dot_product_attention`, runs that take turns."""
    print(f"causal, bfloat16, {N_HEADS} heads, a map of {MAP_SIZE} × {MAP_SIZE}; times in ms")
    print("(lse known: the pass that is asked for; lse unknown: with the pass that finds it)")
    print("L       D    attention  lse known  ratio   noise   lse unknown  ratio   MiB")
    fine = True
    for L in lengths:
        for D in (64, 128):
            q, k, v = torch.randn(3, 1, N_HEADS, L, D, device="cuda", dtype=torch.bfloat16).unbind()
            lse = gf.attention_lse(q, k, mask=gf.Causal())

            def attend(q=q, k=k, v=v) -> torch.Tensor:
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)

            def look(q=q, k=k, lse=lse) -> AttentionStatistics:
                return gf.attention_statistics(q, k, mask=gf.Causal(), map_size=MAP_SIZE, lse=lse)

            n = max(repeats * 16_384 // L, 9)
            known = compare(look, attend, "cuda", repeats=n)
            unknown = compare(lambda look=look: look(lse=None), attend, "cuda", repeats=n)
            fine &= known.ratio <= 1.0
            print(
                f"{L:<7} {D:<4} {known.theirs * 1e3:9.3f} {known.ours * 1e3:10.3f} "
                f"{known.ratio:6.3f} {known.noise:7.3f} {unknown.ours * 1e3:12.3f} "
                f"{unknown.ratio:6.3f} {extra_mib(look):7.1f}"
            )
    print()
    return fine


def extra_mib(work: Work) -> float:
    """Device memory beyond what was there before, at its peak."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def exactness(L: int = 4096) -> bool:
    """The largest error against float64, relative where values exceed 1: at most 1e-5."""
    print(f"largest error at {L} tokens, causal, relative where values exceed 1")
    print("dtype     D    " + "  ".join(f"{name:<9}" for name in (*FIELDS, "mass", "maximum")))
    fine = True
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for D in (64, 128):
            q, k = torch.randn(2, 1, 4, L, D, device="cuda", dtype=dtype).unbind()
            options = {"mask": gf.Causal(), "map_size": MAP_SIZE}
            got = gf.attention_statistics(q, k, **options)
            right = gf.attention_statistics(q.double(), k.double(), **options)
            pairs = [(getattr(got, name), getattr(right, name)) for name in FIELDS]
            pairs += [(got.map.mass, right.map.mass), (got.map.maximum, right.map.maximum)]
            errors = [((a - b).abs().max() / b.abs().max().clamp(min=1)).item() for a, b in pairs]
            fine &= max(errors) <= 1e-5
            name = str(dtype).removeprefix("torch.")
            print(f"{name:<9} {D:<4} " + "  ".join(f"{e:<9.1e}" for e in errors))
    print()
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[16_384, 65_536])
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--packed", action="store_true", help="packed batches alone")
    parser.add_argument("--paged", action="store_true", help="paged caches alone")
    parser.add_argument("--kv-heads", type=int, default=N_HEADS, help="with --packed, --paged")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        print("needs a CUDA device")
        return 1
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}\n")
    if args.packed or args.paged:
        fine = True
        for paged in [False] * args.packed + [True] * args.paged:
            fine &= packed_statistics.exactness(paged, args.kv_heads)
            fine &= packed_statistics.cost(paged, args.kv_heads, args.repeats)
        return 0 if fine else 1
    fine = cost(args.lengths, args.repeats)
    return 0 if exactness() and fine else 1


if __name__ == "__main__":
    sys.exit(main())
