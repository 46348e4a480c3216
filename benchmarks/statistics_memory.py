"""What looking costs: statistics at 65,536 tokens, in time and in memory beyond the inputs.

python benchmarks/statistics_memory.py                    one head, 65,536 × 65,536, on the CPU
"""

import argparse
import sys

from measure import peak_mib


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--length", type=int, default=65_536)
    args = parser.parse_args()
    setup = (
        f"q, k = torch.randn(2, 1, 1, {args.length}, 64).unbind(0);"
        "gf.attention_statistics(q[:, :, :64], k[:, :, :64], map_size=8, top=2)"
    )
    matrix = args.length**2 * 4 / 2**20
    print(f"one head, {args.length:,} tokens; the matrix alone would take {matrix:,.0f} MiB")
    fine = True
    for name, mask in (
        ("no mask", "None"),
        ("causal", "gf.Causal()"),
        ("causal window of 512", "gf.Causal() & gf.Window(511)"),
    ):
        work = f"gf.attention_statistics(q, k, mask={mask}, map_size=128, top=8)"
        spent, mib = peak_mib(setup, work)
        fine &= mib <= 1024
        print(f"{name:<22} {mib:6.0f} MiB beyond the inputs {spent:8.1f} s")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
