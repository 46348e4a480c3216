"""What it costs to record the residual stream, and to patch every head at every position.

python benchmarks/why.py record                      1B Llama shape, 16,384 tokens, bfloat16
python benchmarks/why.py record --length 65536
python benchmarks/why.py patch --cells 512           heads × positions at 512 tokens, a sample
python benchmarks/why.py record --peer transformer_lens --length 16384 65536

`record`: gf.watch(model, residual=True) beside the unwatched forward pass. `patch`: changed runs by
the passes of gf.sweep beside whole forward passes with plain hooks, the same number side by side,
and with --lens beside TransformerLens, installed as benchmarks/why_peers.py says, on the weights
that --smollm names (a Hugging Face folder). Every ratio is of runs that take turns. `--peer`: what
recording and patching take in both tools at each length, or that memory runs out.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

import glassformer as gf
from glassformer.tracing.variants import Variants


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("record", "patch"))
    parser.add_argument("--length", type=int, nargs="+")
    parser.add_argument("--cells", type=int, default=256, help="how many patches are sampled")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--smollm", help="a folder with SmolLM2-135M, instead of the 1B shape")
    parser.add_argument("--peer", choices=("transformer_lens",), help="both tools at each length")
    parser.add_argument("--lens", action="store_true", help="also TransformerLens; needs --smollm")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if args.smollm:
        from transformers import AutoModelForCausalLM

        model: Any = AutoModelForCausalLM.from_pretrained(args.smollm).eval()
    else:
        model = llama().eval()
    model = model.to(device, torch.bfloat16 if device.type == "cuda" else torch.float32)
    size = sum(p.numel() for p in model.parameters()) / 1e6
    print(f"{size:,.0f}M parameters, {model.config.num_hidden_layers} layers, {device.type}")
    if args.peer:
        from why_lens_peer import compare_lengths

        compare_lengths(model, args.length or [16_384, 65_536], min(args.cells, 4), device)
        return 0
    work: Callable[..., int] = record if args.what == "record" else patch
    return work(model, args, device)


def record(model: Any, args: argparse.Namespace, device: torch.device) -> int:
    """The stream and the operands of every layer, kept."""
    length = args.length[0] if args.length else 16_384
    tokens = torch.randint(0, 30_000, (1, length), device=device)

    @torch.no_grad()
    def plain() -> Tensor:
        return model(tokens, logits_to_keep=1).logits

    @torch.no_grad()
    def watched() -> Tensor:
        with gf.watch(model, residual=True) as trace:
            out = model(tokens, logits_to_keep=1).logits
        assert trace.residual().parts
        return out

    assert torch.equal(plain(), watched())
    times: dict[str, list[float]] = {"plain": [], "watched": []}
    peaks: dict[str, float] = {}
    for _ in range(args.repeats):
        for name, run in (("plain", plain), ("watched", watched)):
            times[name].append(seconds(run, device))
            peaks[name] = peak(device)
    ratios = [w / p for w, p in zip(times["watched"], times["plain"], strict=True)]
    for name, spent in times.items():
        print(f"{name:<10} {statistics.median(spent) * 1000:10.1f} ms {peaks[name]:10,.0f} MiB")
    print(
        f"recording stream and operands at {length:,} tokens: {statistics.median(ratios):.3f} × "
        f"({min(ratios):.3f} … {max(ratios):.3f} of {len(ratios)})"
    )
    return int(statistics.median(ratios) > 1.25)


def patch(model: Any, args: argparse.Namespace, device: torch.device) -> int:
    """A sample of all heads × all positions."""
    length = args.length[0] if args.length else 512
    generator = torch.Generator().manual_seed(1)
    clean, corrupted = (
        torch.randint(0, 30_000, (1, length), generator=generator).to(device) for _ in range(2)
    )
    draw = random.Random(2)
    n_layers, n_heads = model.config.num_hidden_layers, model.config.num_attention_heads
    cells = sorted(
        (draw.randrange(n_layers), draw.randrange(n_heads), draw.randrange(length))
        for _ in range(args.cells)
    )
    with torch.no_grad():
        with gf.watch(model, residual=True) as before:
            model(clean, logits_to_keep=1)
        with gf.watch(model, residual=True) as after:
            model(corrupted, logits_to_keep=1)
    readout = after.residual().require_readout()

    def ours() -> Tensor:
        found = []
        with Variants(after) as variants:
            for layer, group in groupby(cells, key=lambda cell: cell[0]):
                place = f"decoder.{layer}.self"
                patches = [gf.Patch(place, before, head=h, positions=[p]) for _, h, p in group]
                for i in range(0, len(patches), args.batch):
                    ends = variants.run(patches[i : i + args.batch])
                    found.append(readout(ends[:, -1:])[:, 0])
        return torch.cat(found)

    heads = {layer: before[f"decoder.{layer}.self"].head_outputs() for layer in range(n_layers)}

    @torch.no_grad()
    def whole() -> Tensor:
        """Whole forward passes; each sequence of a batch is patched by a hook."""
        found = []
        for i in range(0, len(cells), args.batch):
            some = cells[i : i + args.batch]
            found.append(_run_hooked(model, corrupted, some, heads))
        return torch.cat(found)

    runs: dict[str, Callable[[], Tensor]] = {"ours": ours, "whole passes": whole}
    if args.lens:
        runs["TransformerLens"] = _transformer_lens(model, corrupted, cells, heads)
    results, times, peaks = {}, {name: [] for name in runs}, {}
    for name, run in runs.items():
        results[name] = run()
    for _ in range(args.repeats):
        for name, run in runs.items():
            times[name].append(seconds(run, device))
            peaks[name] = peak(device)
    for name, spent in times.items():
        apart = (results[name] - results["ours"]).abs().amax().item()
        ratios = [t / o for t, o in zip(spent, times["ours"], strict=True)]
        print(
            f"{name:<16} {statistics.median(spent) / len(cells) * 1000:8.2f} ms a patch, "
            f"{peaks[name]:8,.0f} MiB, {statistics.median(ratios):.2f} × ours "
            f"({min(ratios):.2f} … {max(ratios):.2f}), logits {apart:.2g} from ours"
        )
    return 0


def _run_hooked(
    model: Any, tokens: Tensor, cells: list[tuple[int, int, int]], heads: dict[int, Tensor]
) -> Tensor:
    handles = []
    for layer in {cell[0] for cell in cells}:

        def hook(_module: Any, args: tuple, layer: int = layer) -> tuple:
            z = args[0].clone()
            width = heads[layer].shape[-1]
            for b, (at, h, p) in enumerate(cells):
                if at == layer:
                    z[b, p, h * width : (h + 1) * width] = heads[layer][0, h, p]
            return (z,)

        module = model.model.layers[layer].self_attn.o_proj
        handles.append(module.register_forward_pre_hook(hook))
    try:
        return model(tokens.expand(len(cells), -1), logits_to_keep=1).logits[:, 0]
    finally:
        for handle in handles:
            handle.remove()


def _transformer_lens(
    model: Any, tokens: Tensor, cells: list[tuple[int, int, int]], heads: dict[int, Tensor]
) -> Callable[[], Tensor]:
    """One run with a hook for each patch, as its patching utilities do."""
    from transformer_lens.model_bridge import (  # pyright: ignore[reportMissingImports]
        TransformerBridge,
    )

    bridge = TransformerBridge.boot_transformers(model.config.name_or_path, device="cpu").eval()

    @torch.no_grad()
    def run() -> Tensor:
        found = []
        for layer, h, p in cells:

            def hook(z: Tensor, hook: Any, layer: int = layer, h: int = h, p: int = p) -> Tensor:
                del hook
                z = z.clone()
                if z.ndim == 3:
                    width = heads[layer].shape[-1]
                    z[:, p, h * width : (h + 1) * width] = heads[layer][:, h, p]
                else:
                    z[:, p, h] = heads[layer][:, h, p]
                return z

            name = f"blocks.{layer}.attn.hook_z"
            found.append(bridge.run_with_hooks(tokens, fwd_hooks=[(name, hook)])[:, -1])
        return torch.cat(found)

    return run


def seconds(run: Callable[[], object], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def peak(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def llama() -> Any:
    """The shape of Llama 3.2 1B, with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=128_256,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=64,
        max_position_embeddings=131_072,
        tie_word_embeddings=True,
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model = model.to_empty(device="cuda" if torch.cuda.is_available() else "cpu")
    for part in model.parameters():
        torch.nn.init.normal_(part, std=0.02)
    rotary = model.model.rotary_emb
    model.model.rotary_emb = type(rotary)(config=config).to(next(model.parameters()).device)
    return model


if __name__ == "__main__":
    sys.exit(main())
