"""What was found inside SmolLM2-135M, by score, by ablation and by patching.

python benchmarks/findings.py SmolLM2-135M-Instruct.Q4_1.gguf     make weights brings the file

Induction heads, found on repeated random tokens and removed; a fact, located by patching; the
attention sink, hidden. Each with other heads, other prompts or other keys beside it for comparison.
"""

import argparse
import random
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

import glassformer as gf

FACTS = [  # two prompts of one length, and their answers
    (
        "The capital of France is the city of",
        "The capital of Italy is the city of",
        " Paris",
        " Rome",
    ),
    (
        "The capital of Japan is the city of",
        "The capital of Russia is the city of",
        " Tokyo",
        " Moscow",
    ),
    ("The Eiffel Tower is in the city of", "The Colosseum is in the city of", " Paris", " Rome"),
]
PROSE = (
    "The river rises in the hills above the town and runs for sixty miles through farmland before "
    "it reaches the sea. In spring, when the snow melts, the lower fields are often under water "
    "for a week or more, and the farmers move their sheep to higher ground. A hundred years ago "
    "there were nine mills along its banks; today two of them remain, one as a museum and one as "
    "a bakery."
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("weights")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    model: Any = gf.load(args.weights)
    find_induction(model, args.seed)
    find_facts(model)
    find_sink(model)
    return 0


def loss(model: Any, tokens: Tensor, changes: Sequence[Any] = (), start: int = 0) -> float:
    """Mean loss of the tokens from `start` on, in nats."""
    with torch.no_grad():
        if changes:
            with gf.change(model, list(changes), rows=[0]):
                logits = model(tokens)
        else:
            logits = model(tokens)
    wanted = tokens[:, start + 1 :]
    found = logits[:, start:-1].float().log_softmax(-1).gather(-1, wanted[..., None])
    return float(-found.mean())


def find_induction(model: Any, seed: int) -> None:
    """Heads that continue a repeated text, and what is lost without them."""
    scores = gf.head_scores(model, seed=seed)
    print(scores)
    best = [(int(site.split(".")[1]), head) for site, head, _ in scores.top("induction", 8)]
    generator = torch.Generator().manual_seed(seed)
    half = torch.randint(100, 40_000, (4, 50), generator=generator)
    tokens = torch.cat([half, half], dim=1)
    print("\nloss on the second copy of 4 × 50 random tokens:")
    print(f"  nothing removed              {loss(model, tokens, start=50):6.2f}")
    print(f"  first copy                   {loss(model, half):6.2f}")
    print(f"  {name(best[0])} removed       {loss(model, tokens, ablate(best[:1]), 50):6.2f}")
    print(f"  eight best removed           {loss(model, tokens, ablate(best), 50):6.2f}")
    draw, others = random.Random(seed), []
    layers = [layer for layer, _ in best]
    for _ in range(3):
        free = {layer: [h for h in range(9) if (layer, h) not in best] for layer in layers}
        chosen = {(layer, draw.choice(free[layer])) for layer in layers}
        others.append(loss(model, tokens, ablate(sorted(chosen)), 50))
    shown = " ".join(f"{value:.2f}" for value in others)
    print(f"  as many others, same layers  {shown}")


def ablate(heads: Sequence[tuple[int, int]]) -> list[Any]:
    by_layer: dict[int, list[int]] = {}
    for layer, head in heads:
        by_layer.setdefault(layer, []).append(head)
    return [gf.Ablate(f"decoder.{i}.self", head=hs, how="mean") for i, hs in by_layer.items()]


def name(head: tuple[int, int]) -> str:
    return f"decoder.{head[0]}.self.{head[1]}"


def find_facts(model: Any) -> None:
    """Where the subject of a fact is read, and from where on the last position knows it."""
    for clean, corrupted, answer, other in FACTS:
        try:
            found = gf.sweep(
                model,
                clean,
                corrupted,
                over="borders × positions",
                metric=(answer, other),
                batch=32,
            )
        except gf.GlassformerError as error:
            print(f"\n{clean!r} / {corrupted!r}: {error}")
            continue
        scores = f"{found.clean:+.2f} / {found.corrupted:+.2f}"
        print(f"\n{clean!r} / {corrupted!r}: {found.measured} {scores}")
        subject = int(found.effects[0].argmax())
        for border, effects in zip(found.rows, found.effects, strict=True):
            if border == "decoder.start" or (
                border.endswith("mlp") and int(border.split(".")[1]) % 4 == 1
            ):
                print(
                    f"  {border:<16} at {found.columns[subject]:<12} {effects[subject]:6.2f}"
                    f"   at the last {effects[-1]:6.2f}"
                )


def find_sink(model: Any) -> None:
    """What it costs when no query may look at the first token, or at another one."""
    tokens = torch.tensor([model.tokenizer.encode(PROSE)])
    sites = [f"decoder.{i}.self" for i in range(model.config.n_layers)]
    plain = loss(model, tokens, start=8)

    def hide(key: int) -> float:
        cut = [gf.Knockout(site, queries=slice(key + 1, None), keys=key) for site in sites]
        return loss(model, tokens, cut, 8)

    with torch.no_grad(), gf.watch(model) as trace:
        model(tokens)
    mass = statistics.mean(float(site.weights()[:, 8:, 0].mean()) for site in trace)
    print(f"\nmean weight on the first token, from the ninth on: {mass:.2f}")
    print(f"loss of {tokens.shape[1]} tokens of prose from the ninth on: {plain:.3f}")
    print(f"  first token hidden   {hide(0):.3f}")
    others = " ".join(f"{hide(key):.3f}" for key in (1, 3, 6))
    print(f"  token 1, 3, 6 hidden {others}")


if __name__ == "__main__":
    sys.exit(main())
