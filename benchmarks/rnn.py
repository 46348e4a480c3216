"""Transformer against LSTM at the same number of parameters: training speed by sequence length.

    python benchmarks/rnn.py
    python benchmarks/rnn.py --device cuda

A step is forward, backward, clipping and the optimiser's update, on sources and targets of one
length; every length has the same number of tokens in a batch. The three models take turns.

    transformer        the one of recipes/multi30k.toml (on a CPU a smaller one)
    lstm               reads both ways, writes from its last state (Sutskever et al. 2014)
    lstm + attention   and looks back at every source position (Bahdanau et al. 2015)

How well they translate is made by recipes on Multi30k (DIR holds the files split by BPE):

    glassformer train recipes/multi30k.toml --data DIR --out runs/transformer
    glassformer train recipes/multi30k-lstm.toml --data DIR --out runs/lstm
    glassformer train recipes/multi30k-lstm-attention.toml --data DIR --out runs/lstm-attention
    for name in transformer lstm lstm-attention; do
      glassformer evaluate --model runs/$name/model --source DIR/test.en --target DIR/test.de \\
        --beams 5 --tokenize none --remove "@@ "
    done
"""

import argparse
import statistics
import sys
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from glassformer.models import Config, build
from glassformer.models.config import Norms, Positions
from glassformer.models.parameters import count_parameters, match_dim
from glassformer.models.recurrent import LSTMSeq2Seq
from glassformer.training import Optimizer, clip_gradients, cross_entropy_sum
from glassformer.training.batches import Batch, Ragged
from glassformer.training.precision import autocast
from glassformer.training.tasks.translation import pair_batch, translation_logits
from measure import seconds

VOCAB_SIZE = {"cpu": 1000, "cuda": 9700}
TOKENS = {"cpu": 1024, "cuda": 65536}  # of a batch, on each side
LENGTHS = (32, 64, 128, 256, 512, 1024)


def transformer(device: str) -> nn.Module:
    """The Transformer-Tiny of Wu et al. 2021, with room for the longest length."""
    size = {"dim": 128, "n_layers": 4, "n_heads": 4, "hidden_dim": 256}
    if device == "cpu":
        size = {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128}
    return build(
        Config(
            family="encoder_decoder",
            vocab_size=VOCAB_SIZE[device],
            max_len=max(LENGTHS),
            activation="relu",
            scaled_embedding=True,
            positions=Positions(kind="sinusoidal"),
            norms=Norms(place="post", final=False),
            **size,
        )
    )


def recurrent(device: str, n_parameters: int, *, attention: bool) -> nn.Module:
    """The LSTM whose number of parameters comes closest."""

    def of_width(dim: int) -> nn.Module:
        n = VOCAB_SIZE[device]
        return LSTMSeq2Seq(n, n, dim, n_layers=2, attention=attention)

    return of_width(match_dim(n_parameters, of_width))


def batch_of(length: int, device: str) -> Batch:
    """Random pairs of one length, in a batch as training has it."""
    rng = np.random.default_rng(length)
    rows = max(1, TOKENS[device] // length)
    lengths = np.full(rows, length)
    sides = [Ragged(rng.integers(4, VOCAB_SIZE[device], rows * length), lengths) for _ in range(2)]
    pair = (sides[0], sides[1])
    return pair_batch(pair, np.arange(rows), start=1, pad=0).to(torch.device(device))


def training_step(model: nn.Module, device: str) -> Callable[[Batch], None]:
    """One step of training, by the parts of `glassformer.training`."""
    optimizer = Optimizer(kind="adam", clip=25.0).build(model)
    precision = "bf16" if device == "cuda" else "fp32"

    def step(batch: Batch) -> None:
        with autocast(precision, torch.device(device)):
            logits = translation_logits(model, batch.tensors)
            loss = cross_entropy_sum(logits, batch.tensors["targets"], smoothing=0.1)
        (loss / batch.n_targets).backward()
        clip_gradients(model.parameters(), 25.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def measure(
    steps: dict[str, Callable[[Batch], None]], length: int, device: str, repeats: int
) -> dict[str, float]:
    """Tokens per second of each, medians of runs that take turns; 0 where memory is too small.

    The first is measured twice in a round: "noise" is what two equal ones differ by.
    """
    batch = batch_of(length, device)
    ahead = None if device == "cpu" else torch.empty(1 << 28, dtype=torch.float32, device=device)
    first = next(iter(steps))
    times: dict[str, list[float]] = {name: [] for name in (*steps, "again")}
    fits = dict.fromkeys(times, True)
    for _ in range(repeats + 1):
        for name, spent in times.items():
            step = steps[first if name == "again" else name]
            try:
                if fits[name]:
                    taken = seconds(lambda step=step: step(batch), device, ahead)
                    spent.append(taken)
            except torch.OutOfMemoryError:
                fits[name] = False
                torch.cuda.empty_cache()
    # The first round warms up.
    medians = {name: statistics.median(spent[1:]) for name, spent in times.items() if fits[name]}
    found = {name: batch.n_tokens / medians[name] if fits[name] else 0.0 for name in steps}
    return {**found, "noise": medians["again"] / medians[first]}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--repeats", type=int, help="rounds")
    args = parser.parse_args(arguments)
    repeats = args.repeats or (20 if args.device == "cuda" else 3)
    torch.manual_seed(0)
    first = transformer(args.device)
    n = count_parameters(first)
    models = {
        "transformer": first,
        "lstm": recurrent(args.device, n, attention=False),
        "lstm + attention": recurrent(args.device, n, attention=True),
    }
    print(f"torch {torch.__version__}, {args.device}", end="")
    print(f" ({torch.cuda.get_device_name()})" if args.device == "cuda" else "")
    for name, model in models.items():
        print(f"{name:<17} {count_parameters(model):>10,} parameters")
    steps = {n: training_step(m.to(args.device).train(), args.device) for n, m in models.items()}
    print(
        f"\ntokens/s of training, source and target together, {TOKENS[args.device]:,} on each side"
    )
    print("length" + "".join(f"{name:>18}" for name in models) + "   noise")
    for length in LENGTHS:
        found = measure(steps, length, args.device, repeats)
        noise = found.pop("noise")
        speeds = "".join(
            f"{speed:>18,.0f}" if speed else f"{'no memory':>18}" for speed in found.values()
        )
        print(f"{length:>6}{speeds}{noise:>8.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
