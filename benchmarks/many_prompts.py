"""Many prompts: taking turns in a few rows beside one batch of all of them.

python benchmarks/many_prompts.py                  300 prompts of two lengths, the storyteller
python benchmarks/many_prompts.py --device cuda --prompts 2000

First the texts are compared: they must be the same but for near-ties, so at most 1 in 100 may
differ, or it exits with 1. Then both take turns; what is printed is the median of the ratios.
"""

import argparse
import random
import statistics
import sys
import time
from functools import partial

import torch

import glassformer as gf
from glassformer.generation import generate_tokens, queueing
from glassformer.models import Decoder

NAMES = ("Tom", "Lily", "Max", "Mia", "Ben", "Sam", "Anna", "Tim")
THINGS = ("ball", "dog", "cake", "tree", "boat", "car", "hat", "bird")
MORE = " It was very big, and everyone in the town wanted to see it, because it was so new."


def write(model: Decoder, prompts: list[list[int]], slots: int) -> list[list[int]]:
    queueing._MOST_SLOTS = queueing._MOST_SLOTS_ON_GPU = slots
    special = {"stop": model.special.end, "never": model.special.never}
    return generate_tokens(model, prompts, max_new_tokens=300, **special)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--prompts", type=int, default=300)
    parser.add_argument("--slots", type=int)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(arguments)
    on_cpu, on_gpu = queueing._MOST_SLOTS, queueing._MOST_SLOTS_ON_GPU
    slots = args.slots or (on_cpu if args.device == "cpu" else on_gpu)
    model, draw = gf.load("storyteller").to(args.device), random.Random(0)
    assert isinstance(model, Decoder) and model.tokenizer is not None
    texts = [
        f"{draw.choice(NAMES)} had a {draw.choice(THINGS)}.{MORE if draw.random() < 0.3 else ''}"
        for _ in range(args.prompts)
    ]
    prompts = model.tokenizer.encode_many(texts)
    ways = {
        "in turns": partial(write, model, prompts, slots),
        "all at once": partial(write, model, prompts, args.prompts),
    }
    found = [way() for way in ways.values()]
    n_other = sum(a != b for a, b in zip(*found, strict=True))
    n_tokens, lengths = sum(map(len, found[0])), sorted(map(len, found[0]))
    where = "cuda" if args.device == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {where}, {slots} rows")
    print(f"  {n_tokens} tokens, {lengths[0]} to {lengths[-1]} a text; {n_other} texts differ")
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(args.rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            spent[name].append(time.perf_counter() - start)
    ratios = sorted(b / a for a, b in zip(*spent.values(), strict=True))
    middle, spread = statistics.median(ratios), f"{ratios[0]:.2f} … {ratios[-1]:.2f}"
    print(f"  in turns / all at once {middle:.2f} ({spread})")
    return 0 if 100 * n_other <= args.prompts else 1


if __name__ == "__main__":
    sys.exit(main())
