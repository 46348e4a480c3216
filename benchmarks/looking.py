"""What watching a transformers model costs, in time and memory, beside not watching it.

python benchmarks/looking.py                   a 134M Llama-shaped model, 16,384 tokens, bfloat16
python benchmarks/looking.py --length 131072
python benchmarks/looking.py --device cpu      512 tokens, float32

Watched is every layer and head: without statistics, with those of every query and key, with maps of
128 × 128. First it is checked that the model computes the same to the bit, and that statistics are
those of the weights in float64. Then all take turns. Beside it, where it fits: transformers' own
way, eager attention with output_attentions=True.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch

import glassformer as gf
from million import measured

WATCHED, STATISTICS, MAPS = "watched", "with statistics", "with maps of 128 × 128"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--length", type=int)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--eager", action="store_true", help="also transformers' own way")
    parser.add_argument("--processor-time", action="store_true", help="of one thread, on a CPU")
    args = parser.parse_args()
    device = torch.device(args.device)
    on_cpu = device.type == "cpu"
    if args.processor_time:
        torch.set_num_threads(1)
    length = args.length or (512 if on_cpu else 16_384)
    model = llama(args.layers, length).to(device, torch.float32 if on_cpu else torch.bfloat16)
    tokens = torch.randint(0, 32_000, (1, length), device=device)
    size = sum(p.numel() for p in model.parameters()) / 1e6
    print(f"{size:.0f}M parameters, {args.layers} layers, 12 heads, {length:,} tokens")

    @torch.no_grad()
    def run() -> torch.Tensor:
        return model.model(tokens).last_hidden_state

    def watch() -> gf.Trace:
        with gf.watch(model) as trace:
            run()
        return trace

    if not check(run, model, length):
        return 1
    works: dict[str, Callable[[], object]] = {
        "not watched (sdpa)": run,
        WATCHED: watch,
        STATISTICS: lambda: [site.statistics(distance=on_cpu) for site in watch()],
        MAPS: lambda: [site.statistics(map_size=128, distance=False) for site in watch()],
        "not watched, again": run,
    }
    for work in works.values():
        work()
    measure = processor_seconds if args.processor_time else measured
    rounds = [
        {name: measure(work, device)[:2] for name, work in works.items()}
        for _ in range(args.repeats)
    ]
    first, again = "not watched (sdpa)", "not watched, again"
    ratios = {}
    for name in works:
        each = [2 * r[name][0] / (r[first][0] + r[again][0]) for r in rounds]
        if name == again:
            each = [r[again][0] / r[first][0] for r in rounds]
        ratios[name] = statistics.median(each)
        spent = statistics.median(r[name][0] for r in rounds) * 1000
        mib = "" if on_cpu else f"{max(r[name][1] for r in rounds):10,.0f} MiB"
        spread = f"({min(each):.2f} … {max(each):.2f})"
        print(f"{name:<28} {spent:9.1f} ms  {ratios[name]:.3f} ×  {spread}{mib}")
    if args.eager:
        model.set_attn_implementation("eager")
        with torch.no_grad():
            spent, mib, _ = measured(
                lambda: model.model(tokens, output_attentions=True).attentions[0].shape, device
            )
        print(f"{'eager, output_attentions':<28} {spent * 1000:9.1f} ms {mib:10,.0f} MiB")
    if on_cpu:
        return 0 if ratios[WATCHED] <= 1.05 and ratios[STATISTICS] <= 1.3 else 1
    more = max(r[MAPS][1] for r in rounds) - max(r[first][1] for r in rounds)
    return 0 if ratios[MAPS] <= 1.7 and (more <= 3072 or length > 16_384) else 1


def processor_seconds(work: Callable[[], object], device: torch.device) -> tuple[float, float]:
    """What the processor worked for this process: other programs do not count."""
    del device
    start = time.process_time()
    work()
    return time.process_time() - start, float("nan")


def check(run: Callable[[], torch.Tensor], model: torch.nn.Module, length: int) -> bool:
    """Whether watching changes nothing, and statistics are those of the weights in float64."""
    expected = run()
    with gf.watch(model) as trace:
        seen = run()
    site = list(trace)[-1]
    found = site.statistics(distance=False)
    rows = torch.arange(0, length, max(length // 2048, 1), device=expected.device)
    errors = {"entropy": 0.0, "peak": 0.0, "received": 0.0}
    for head in range(site.n_heads):
        q, k = site.q[0, head, rows].double(), site.k[0, head].double()
        scores = (q @ k.T) * q.shape[1] ** -0.5
        hidden = torch.arange(length, device=q.device) > rows[:, None]
        weights = scores.masked_fill_(hidden, -torch.inf).softmax(-1)
        exact = {"entropy": -weights.xlogy(weights).sum(-1), "peak": weights.amax(-1)}
        if len(rows) == length:
            exact["received"] = weights.sum(0)
        for name, values in exact.items():
            got = getattr(found, name)[0, head].double()
            got = got if name == "received" else got[rows]
            error = ((got - values).abs() / values.clamp(min=1)).max()
            errors[name] = max(errors[name], float(error))
    same = torch.equal(seen, expected)
    worst = ", ".join(f"{name} {error:.1e}" for name, error in errors.items())
    print(f"outputs {'the same to the bit' if same else 'DIFFER'}; errors: {worst}")
    return same and max(errors.values()) <= 1e-5


def llama(n_layers: int, length: int) -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=32_000,
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=n_layers,
        num_attention_heads=12,
        max_position_embeddings=length,
        attn_implementation="sdpa",
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config)


if __name__ == "__main__":
    sys.exit(main())
