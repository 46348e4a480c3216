"""The pyramid of the Atlas on a GPU: the overview of up to a million tokens, and finest tiles.

python benchmarks/atlas_gpu.py                           131,072 tokens, then 1,048,576

Random operands of one causal head of 64 features, in the memory of the GPU. The overview is the
whole survey: lse, the largest weight of each row, and the blocks of the middle level. Tiles are
256 × 256 exact cells at random places under the diagonal, each copied to the CPU. A tile is held
against the softmax of its own rows in float64.
"""

import argparse
import random
import statistics
import time

import torch

import glassformer as gf
from glassformer.analysis.pyramid import TILE, Pyramid
from glassformer.tracing import Site


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lengths", type=int, nargs="+", default=[131_072, 1_048_576])
    parser.add_argument("--tiles", type=int, default=25)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for length in args.lengths:
        measure(length, args.tiles, device)


def measure(length: int, n: int, device: str) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 1, length, 64, device=device).unbind(0)
    site = Site(name="decoder.0.self", q=2 * q, k=k, v=v, mask=gf.Causal())
    start = time.perf_counter()
    pyramid = Pyramid(site, 0)
    pyramid.survey(slice(0, length))
    float(pyramid.lse[-1])
    overview = time.perf_counter() - start
    spent = []
    draw = random.Random(0)
    last = length // TILE - 1
    for _ in range(n):
        row = draw.randint(1, last)
        col = draw.randint(0, row)
        start = time.perf_counter()
        pyramid.tile(0, row, col).values.cpu()
        spent.append(1000 * (time.perf_counter() - start))
    peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else float("nan")
    tile = f"{statistics.median(spent):.1f} ms ({min(spent):.1f} … {max(spent):.1f})"
    off = compare(site, pyramid)
    print(
        f"{length:,} tokens: overview {overview:.1f} s, finest tile {tile}, {peak:.2f} GiB; "
        f"off by {off:.1e}",
        flush=True,
    )


def compare(site: Site, pyramid: Pyramid) -> float:
    """The largest difference of a tile in the middle from float64."""
    row = pyramid.L // (2 * TILE)
    rows = slice(row * TILE, (row + 1) * TILE)
    scores = site.q[0, 0, rows].double() @ site.k[0, 0].double().T / 8
    places = torch.arange(pyramid.L, device=scores.device)
    scores.masked_fill_(places > places[rows, None], -torch.inf)
    expected = scores.softmax(-1)[:, (row - 1) * TILE : row * TILE]
    return float((pyramid.tile(0, row, row - 1).values - expected).abs().max())


if __name__ == "__main__":
    main()
