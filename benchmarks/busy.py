"""Decoding while other programs want the processors too: what remains of the speed.

python benchmarks/busy.py                  as many threads as processors, one other program
python benchmarks/busy.py --others 2

The shipped storyteller continues a text; beside it transformers with the same weights. First the
tokens are compared, and a difference exits with 1. Then both take turns, alone and with busy
programs beside them, which this one starts and ends.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

import glassformer as gf
from glassformer.generation import generate_tokens
from glassformer.models import Decoder

START, NEW = "Tom had a red ball.", 48


@contextmanager
def keep_busy(n: int) -> Iterator[None]:
    """Programs that compute until the block ends, or for ten minutes."""
    loop = "import time\nend = time.monotonic() + 600\nwhile time.monotonic() < end: pass"
    others = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(n)]
    try:
        time.sleep(0.5)
        yield
    finally:
        for each in others:
            each.kill()
            each.wait()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--others", type=int, default=1, help="busy programs beside this one")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args(arguments)
    from transformers import AutoModelForCausalLM

    model = gf.load("storyteller")
    assert isinstance(model, Decoder) and model.tokenizer is not None
    start = model.tokenizer.encode(START)
    with tempfile.TemporaryDirectory() as folder:
        gf.save(model, f"{folder}/model", layout="llama")
        peer: Any = AutoModelForCausalLM.from_pretrained(f"{folder}/model", dtype=torch.float32)

    def ours() -> list[int]:
        return generate_tokens(model, [start], max_new_tokens=NEW)[0]

    def theirs() -> list[int]:
        ids = torch.tensor([start])
        options = {"do_sample": False, "max_new_tokens": NEW, "min_new_tokens": NEW}
        mask = torch.ones_like(ids)
        return peer.generate(ids, attention_mask=mask, pad_token_id=0, **options)[0].tolist()

    programs = {"glassformer": ours, "transformers": theirs}
    if theirs()[len(start) :] != ours():
        print("The two programs write different tokens: their times count for nothing.")
        return 1
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {NEW} tokens")
    alone: dict[str, float] = {}
    for n in (0, args.others):
        with keep_busy(n):
            spent: dict[str, list[float]] = {name: [] for name in programs}
            for _ in range(args.rounds):
                for name, program in programs.items():
                    begun = time.perf_counter()
                    program()
                    spent[name].append(time.perf_counter() - begun)
        medians = {name: statistics.median(times) for name, times in spent.items()}
        if n == 0:
            alone = medians
        for name, times in spent.items():
            ratios = [alone[name] / each for each in times]
            print(
                f"  {n} others, {name:<13} {alone[name] / medians[name]:5.2f} of its speed alone "
                f"({min(ratios):.2f} … {max(ratios):.2f})"
            )
        print(f"  {n} others, ours / theirs {medians['transformers'] / medians['glassformer']:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
