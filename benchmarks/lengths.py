"""Cost against length: forward, training step, one decoded token, watching with statistics.

python benchmarks/lengths.py                       GPT-2's shape, RoPE, to 131,072 tokens, bf16
python benchmarks/lengths.py --device cpu          4 layers of width 256, to 16,384 tokens, float32
python benchmarks/lengths.py --figure lengths.svg  and a log-log plot

One sequence at each length. A slope is that of log seconds against log length between two lengths:
0 does not depend on the length, 1 is linear, 2 quadratic. First it is checked that the model
computes what its definition computes in float64, that a decoded token is that of a forward pass,
and that watching changes no bit. On a CPU, times are shown as multiples of the shortest.
"""

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

import glassformer as gf
from glassformer.functional import reference
from glassformer.generation import generate_tokens
from glassformer.generation.loop import stream_chosen
from glassformer.layers.attention import Core
from glassformer.models import Config, Decoder
from glassformer.models.config import Positions
from glassformer.training.chunked_loss import linear_cross_entropy_sum
from measure import seconds

FORWARD, TRAINING, DECODING = "forward", "training step", "one decoded token"
WATCHED = "watched, with statistics"
WORKS = (FORWARD, TRAINING, DECODING, WATCHED)
DECODED = 33  # tokens: the time between the first and the last


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--lengths", type=int, nargs="*")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--only", choices=WORKS, nargs="*", default=WORKS)
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    on_cpu = args.device == "cpu"
    if args.threads:
        torch.set_num_threads(args.threads)
    lengths = args.lengths or [1 << n for n in range(8 if on_cpu else 10, 15 if on_cpu else 18)]
    if len(lengths) < 2:
        parser.error(f"a slope needs at least two lengths; got {len(lengths)}")
    model = build(lengths[-1] + DECODED + 1, args.device)
    if not check(model):
        print("BREACH: the model does not compute what its definition does.")
        return 1
    found = {work: measure(work, model, lengths, args.repeats, args.device) for work in args.only}
    for work, times in found.items():
        show(work, lengths, times, on_cpu)
    if args.figure is not None:
        draw(found, lengths, args.figure, on_cpu)
    return 0


def build(max_len: int, device: str) -> Decoder:
    """A decoder with rotary positions, which reads any length."""
    torch.manual_seed(0)
    small = {"dim": 256, "n_layers": 4, "n_heads": 4, "vocab_size": 8_000}
    large = {"dim": 768, "n_layers": 12, "n_heads": 12, "vocab_size": 50_304}
    sizes = small if device == "cpu" else large
    config = Config(family="decoder", positions=Positions(kind="rotary"), max_len=max_len, **sizes)
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    return Decoder(config).to(device, dtype).eval()


@torch.no_grad()
def check(model: Decoder, length: int = 257) -> bool:
    device = model.embedding.weight.device
    tokens = torch.randint(0, model.config.vocab_size, (1, length), device=device)
    logits = model(tokens)
    exact = define(model, tokens)
    error = float((logits.double() - exact).abs().max() / exact.std())
    with gf.watch(model) as trace:
        is_same = torch.equal(model(tokens), logits)
    (written,) = generate_tokens(model, tokens.tolist(), max_new_tokens=1)
    best = exact[0, -1].topk(2).values
    is_next = written[0] == int(exact[0, -1].argmax()) or float(best[0] - best[1]) < 0.05
    site = next(iter(trace))
    rows = site.weights(0).double().sum(-1)
    sums = float((rows - 1).abs().max())
    print(
        f"checked on {length} tokens: error {error:.1e} of a standard deviation; the same bits "
        f"when watched: {is_same}; the same token when decoded: {is_next}; "
        f"rows sum to 1 ± {sums:.0e}"
    )
    limit = 1e-4 if model.embedding.weight.dtype == torch.float32 else 0.1
    return error < limit and is_same and is_next and sums < 1e-3


def define(model: Decoder, tokens: torch.Tensor) -> torch.Tensor:
    """The logits in float64, by the definition of attention."""
    twin = Decoder(model.config).to(tokens.device, torch.float64).eval()
    twin.load_state_dict(model.state_dict())
    for module in twin.modules():
        if isinstance(module, Core):
            module.forward = reference.attention
    return twin(tokens)


def measure(
    work: str, model: Decoder, lengths: list[int], repeats: int, device: str
) -> list[float]:
    """Seconds at each length, the median; NaN where it does not fit the device."""
    found = []
    ahead = None if device == "cpu" else torch.empty(1 << 29, dtype=torch.float32, device=device)
    for length in lengths:
        torch.manual_seed(length)
        tokens = torch.randint(0, model.config.vocab_size, (1, length + 1), device=device)
        run = prepare(work, model, tokens)
        try:
            run()  # warm: compiled, captured, allocated
            if work == DECODING:
                each = [decode(model, tokens) for _ in range(repeats)]
            else:
                each = [seconds(run, device, ahead) for _ in range(repeats)]
            spent = statistics.median(each)
        except torch.cuda.OutOfMemoryError:
            spent = math.nan
        found.append(spent)
        print(f"{work}, {length:,} tokens: {1000 * spent:.2f} ms", file=sys.stderr, flush=True)
        model.zero_grad(set_to_none=True)
    return found


def decode(model: Decoder, tokens: torch.Tensor) -> float:
    """Seconds for one token, after all of the prompt has been read."""
    steps = stream_chosen(model, tokens[:, :-1].tolist(), max_new_tokens=DECODED)
    said = [time.perf_counter() for _ in steps]
    return (said[-1] - said[0]) / (len(said) - 1)


def prepare(work: str, model: Decoder, tokens: torch.Tensor) -> Callable[[], object]:
    @torch.no_grad()
    def read() -> object:
        return model.hidden(tokens[:, :-1])

    def learn() -> None:
        model.zero_grad(set_to_none=True)
        x = model.hidden(tokens[:, :-1])
        linear_cross_entropy_sum(x, model.embedding.weight, tokens[:, 1:]).backward()

    @torch.no_grad()
    def look() -> object:
        with gf.watch(model) as trace:
            model.hidden(tokens[:, :-1])
        return [site.statistics(distance=False) for site in trace]

    return {FORWARD: read, TRAINING: learn, DECODING: lambda: decode(model, tokens), WATCHED: look}[
        work
    ]


def show(work: str, lengths: list[int], times: list[float], relative: bool) -> None:
    """A table of one work, the slope between neighbours, and that of the longer half."""
    print(
        f"\n{work}\n\n| tokens | {'× the shortest' if relative else 'ms'} | slope |\n|---|---|---|"
    )
    for i, (length, spent) in enumerate(zip(lengths, times, strict=True)):
        value = f"{spent / times[0]:.2f}" if relative else f"{1000 * spent:.2f}"
        steep = "" if i == 0 else f"{slope(lengths, times, i - 1, i):.2f}"
        print(f"| {length:,} | {value} | {steep} |")
    middle = (len(lengths) - 1) // 2
    steep = slope(lengths, times, middle, len(lengths) - 1)
    print(f"\nslope from {lengths[middle]:,} on: {steep:.2f}")


def slope(lengths: list[int], times: list[float], a: int, b: int) -> float:
    return math.log(times[b] / times[a]) / math.log(lengths[b] / lengths[a])


def draw(found: dict[str, list[float]], lengths: list[int], path: Path, relative: bool) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams["svg.fonttype"] = "none"  # real text
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for (work, times), marker in zip(found.items(), "os^D", strict=False):
        shown = [spent / times[0] if relative else 1000 * spent for spent in times]
        axes.loglog(lengths, shown, marker=marker, label=work, base=2)
    axes.set_xlabel("tokens")
    axes.set_ylabel("time, × the shortest text" if relative else "milliseconds")
    axes.set_xticks(lengths, [f"{each:,}" for each in lengths])
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path)


if __name__ == "__main__":
    sys.exit(main())
