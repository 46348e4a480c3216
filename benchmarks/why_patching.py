"""Patching heads at positions of 512 tokens: time and memory of ours and of TransformerLens.

python benchmarks/why_patching.py SmolLM2-135M-Instruct.Q4_1.gguf     in the peers' environment
python benchmarks/why_patching.py                                     the same shape, random weights

Each tool runs in a process of its own, on one core and on the same weights, and they take turns. A
sweep patches every head at every position. A round is a sample of it: several heads at one position
in each of five layers; rounds move the layers and draw the positions, so that together they are
spread evenly. Only layers above a patch, and positions from it on, cost ours anything.

Memory is the largest resident size while the clean text is recorded and patches run, less the size
after it has read eight tokens (Linux: VmHWM, reset by /proc/self/clear_refs, less VmRSS). There are
two of TransformerLens: run_with_cache of everything, as it is called by default, and of z alone.
"""

import argparse
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import groupby
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

Cell = tuple[int, int, int]  # layer, head, position
Patcher = Callable[[list[Cell]], Tensor]  # the last logits of each
Recording = Callable[[Tensor, Tensor], Patcher]
OURS, LENS, LENS_Z = "ours", "TransformerLens", "TransformerLens, z alone"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("gguf", type=Path, nargs="?", help="default: random weights")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cells", type=int, default=4, help="heads in each of five layers")
    args = parser.parse_args()
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TQDM_DISABLE": "1"}
    from glassformer.models.checkpoints import load, save

    with tempfile.TemporaryDirectory() as folder:
        if args.gguf is None:
            save_random(folder)
        else:
            save(load(args.gguf), folder, layout="huggingface", overwrite=True)
        tools = {name: Tool(name, folder, args.length) for name in (OURS, LENS, LENS_Z)}
        rounds = [draw_cells(i, args) for i in range(args.rounds)]
        spent: dict[str, list[float]] = {name: [] for name in tools}
        apart = 0.0
        for cells in rounds:
            logits = {}
            for name, tool in tools.items():
                seconds, logits[name] = tool.ask(cells)
                spent[name].append(seconds / len(cells))
                print(f"{name}: {1000 * seconds / len(cells):,.0f} ms a patch", flush=True)
            apart = max(apart, float((logits[OURS] - logits[LENS]).abs().max()))
        memory = {name: tool.close() for name, tool in tools.items()}
    n = sum(map(len, rounds))
    print(f"{n} patches of {args.length} tokens; logits at most {apart:.2g} from each other")
    for name in tools:
        ratios = [t / o for t, o in zip(spent[name], spent[OURS], strict=True)]
        print(
            f"{name:<26} {1000 * statistics.median(spent[name]):8,.0f} ms a patch, "
            f"{statistics.median(ratios):.2f} × ours ({min(ratios):.2f} … {max(ratios):.2f}); "
            f"{memory[name]:,.0f} MiB beside the model"
        )
    return 0


def draw_cells(i: int, args: argparse.Namespace) -> list[Cell]:
    """Five layers, evenly spread; SmolLM2 has 30 of 9 heads."""
    draw = random.Random(i)
    first = (0, 2, 5, 1, 3, 4)[i % 6]
    return [
        (layer, head, position)
        for layer in range(first, 30, 6)
        for position in [draw.randrange(args.length)]
        for head in draw.sample(range(9), args.cells)
    ]


def save_random(folder: str) -> None:
    """A model of SmolLM2-135M's shape."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49_152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


class Tool:
    """A process that patches when it is asked to."""

    def __init__(self, name: str, folder: str, length: int) -> None:
        self.pipe, theirs = multiprocessing.get_context("spawn").Pipe()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=serve, args=(name, folder, length, theirs))
        self.process.start()
        self.pipe.recv()  # it is ready

    def ask(self, cells: list[Cell]) -> tuple[float, Tensor]:
        self.pipe.send(cells)
        seconds, logits = self.pipe.recv()
        return seconds, torch.tensor(logits)

    def close(self) -> float:
        """Its peak, in MiB."""
        self.pipe.send(None)
        peak = self.pipe.recv()
        self.process.join()
        return peak


def serve(name: str, folder: str, length: int, pipe: Connection) -> None:
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    clean, corrupted = (
        torch.randint(100, 40_000, (1, length), generator=generator) for _ in range(2)
    )
    make = prepare_ours if name == OURS else prepare_lens
    model, record = make(folder, is_whole=name == LENS)
    with torch.no_grad():
        model(clean[:, :8])  # weights are mapped from their file, and read when they are used
    before = read_memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    with torch.no_grad():
        patch = record(clean, corrupted)
        pipe.send("ready")
        while (cells := pipe.recv()) is not None:
            start = time.perf_counter()
            logits = patch(cells)
            pipe.send((time.perf_counter() - start, logits.tolist()))
    pipe.send(read_memory("VmHWM") - before)


def read_memory(what: str) -> float:
    """In MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"/proc/self/status has no {what}")


def prepare_ours(folder: str, *, is_whole: bool) -> tuple[Any, Recording]:
    del is_whole
    from transformers import AutoModelForCausalLM

    import glassformer as gf
    from glassformer.tracing.variants import Variants

    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()

    def record(clean: Tensor, corrupted: Tensor) -> Patcher:
        with gf.watch(model) as before:
            model(clean, logits_to_keep=1)
        with gf.watch(model, residual=True) as after:
            model(corrupted, logits_to_keep=1)
        readout = after.residual().require_readout()
        variants = Variants(after).__enter__()  # until the process ends

        def patch(cells: list[Cell]) -> Tensor:
            found = []
            for layer, group in groupby(cells, key=lambda cell: cell[0]):
                place = f"decoder.{layer}.self"
                patches = [gf.Patch(place, before, head=h, positions=[p]) for _, h, p in group]
                found.append(readout(variants.run(patches)[:, -1:])[:, 0])
            return torch.cat(found)

        return patch

    return model, record


def prepare_lens(folder: str, *, is_whole: bool) -> tuple[Any, Recording]:
    from transformers import AutoModelForCausalLM

    from why_lens_peer import import_bridge, save_tokenizer

    bridge = import_bridge().boot_transformers(
        folder,
        hf_model=AutoModelForCausalLM.from_pretrained(folder),
        tokenizer=save_tokenizer(folder),
        device="cpu",
    )
    bridge.eval()

    def record(clean: Tensor, corrupted: Tensor) -> Patcher:
        wanted = None if is_whole else (lambda name: name.endswith("hook_z"))
        _, cache = bridge.run_with_cache(clean, names_filter=wanted)

        def patch(cells: list[Cell]) -> Tensor:
            """A run for each, as `generic_activation_patch` does."""
            return torch.cat([run(*cell) for cell in cells])

        def run(layer: int, head: int, position: int) -> Tensor:
            name = f"blocks.{layer}.attn.hook_z"

            def replace(z: Tensor, hook: Any) -> Tensor:
                del hook
                z[:, position, head] = cache[name][:, position, head]
                return z

            return bridge.run_with_hooks(corrupted, fwd_hooks=[(name, replace)])[:, -1]

        return patch

    return bridge, record


if __name__ == "__main__":
    sys.exit(main())
