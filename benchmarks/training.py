"""Training beside nanoGPT and torch.nn.Transformer: speed, peak memory and loss curves.

    git clone https://github.com/karpathy/nanoGPT
    python benchmarks/training.py --nanogpt nanoGPT                  # laptop shapes, CPU
    python benchmarks/training.py --nanogpt nanoGPT --device cuda    # GPT-2 124M, base translator

Ours is the step of `glassformer train`, theirs their model stepped as nanoGPT's train.py does. Both
start from the same weights and see the same batches: first their losses must agree, then rounds
of steps take turns, and at last ours must be as low as theirs after 300 steps. `--parts` also takes
our measures away one at a time; `--fp8`, `--half` and `--muon` add options of the recipe. On CUDA
in bfloat16, on a CPU in float32.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo

from glassformer.models import PRESETS
from glassformer.models.config import Dropout, Norms, Positions
from measure import compare
from training_ours import Ours, Shape, read_text, training_loss
from training_peers import Theirs, build_peer, loss_of_peer

GPT = PRESETS["gpt-2"].replace(activation="gelu", dropout=Dropout())  # as nanoGPT trains it
LAPTOP = PRESETS["laptop-decoder"].replace(
    activation="gelu", dropout=Dropout(), positions=Positions(kind="learned")
)
PAIR = PRESETS["transformer-base"].replace(
    norms=Norms(place="post", final=True), dropout=Dropout.everywhere(0.1)
)
SMALL_PAIR = PAIR.replace(dim=256, n_layers=4, n_heads=4, hidden_dim=1024, vocab_size=8000)
TINY = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 128, "vocab_size": 503}
# rows and tokens per row: of decoders, of encoder-decoders
SIZES = {
    "full": ((GPT, 32, 1024), (PAIR, 256, 64)),
    "laptop": ((LAPTOP, 8, 256), (SMALL_PAIR, 16, 64)),
    "tiny": ((LAPTOP.replace(**TINY), 4, 32), (PAIR.replace(**TINY), 4, 16)),
}
FP8 = {"compute": {"precision": "fp8"}}
HALF = {"compute": {"residual": "half"}}
BOTH = {"compute": {"precision": "fp8", "residual": "half"}}
MUON = {"optimizer": {"kind": "muon"}}
PARTS = {
    "all logits at once": {"chunked": False},
    "PyTorch's attention": {"fixed_shape": False},
    "padded": {"packed": False},
}
Racer = Ours | Theirs
TOLERANCE = {"fp32": 1e-5, "bf16": 3e-3, "fp8": 1e-2}  # of a loss, relative
APART = 0.02  # nats: how much higher our mean of the last steps may lie, besides noise


def check_losses(shape: Shape, nanogpt: Path, device: str, *, float8: bool = False) -> bool:
    """Whether both models compute the same loss of a batch, in float32 and as they train.

    In 8 bits ours is compared with theirs in bfloat16.
    """
    model = shape.build(dropout=Dropout())
    still = Shape(model.config, min(shape.rows, 4), shape.length, shape.text)
    peer = build_peer(still, nanogpt, model).to(device)
    model, batch = model.to(device), next(still.batches(seed=1)).to(torch.device(device))
    fine = True
    kinds = ["fp32"] + ["bf16"] * (device == "cuda") + ["fp8"] * float8
    for kind in kinds:
        with torch.autocast(device, torch.bfloat16, enabled=kind != "fp32"):
            ours = training_loss(model, still, batch, float8=kind == "fp8").item()
            with torch.no_grad():
                theirs = float(loss_of_peer(peer.train(), still, batch))
        gap = abs(ours - theirs) / theirs
        fine &= gap <= TOLERANCE[kind]
        verdict = "" if gap <= TOLERANCE[kind] else "   BREACH"
        print(f"loss in {kind}: ours {ours:.6f}, theirs {theirs:.6f}{verdict}")
    return fine


def measure_memory(make: Callable[[], Racer]) -> tuple[Racer, float]:
    """A racer after its first round, and its peak GiB: weights, gradients, moments, activations."""
    if not torch.cuda.is_available():
        return make(), 0.0
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    racer = make()
    racer()  # graphs keep their memory, which later rounds would not show
    return racer, (torch.cuda.max_memory_allocated() - before) / 2**30


def race(shape: Shape, args: argparse.Namespace, folder: Path, *, compiled: bool) -> None:
    """Tokens per second of both, and of ours with other settings."""
    options = {"compiled": compiled, "n_steps": args.steps}
    peer = build_peer(shape, args.nanogpt, shape.build())
    theirs, their_gib = measure_memory(lambda: Theirs(shape, peer, args.device, **options))
    settings: dict[str, dict[str, Any]] = {"": {}}
    if args.parts:
        settings |= PARTS
    if compiled:
        settings |= options_of(args)
    for name, setting in settings.items():
        if ("fixed_shape" if shape.is_pair else "packed") in setting:
            continue  # pairs never have one shape, and only they are packed
        ours, our_gib = measure_memory(
            lambda setting=setting: Ours(shape, folder, args.device, **options, **setting)
        )
        found = compare(ours, theirs, args.device, repeats=args.repeats)
        tokens, memory = args.steps * shape.n_tokens, ""
        if args.device == "cuda":
            memory = f"   {our_gib:.1f} and {their_gib:.1f} GiB"
        label = ("compiled" if compiled else "eager") + (f", {name}" if name else "")
        print(
            f"{label:<30} {tokens / found.ours:>12,.0f} {tokens / found.theirs:>12,.0f} "
            f"{1 / found.ratio:>7.3f} {found.noise:>7.3f}{memory}",
            flush=True,
        )
        del ours


def options_of(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The options of a recipe that are measured too."""
    options = {
        "half stream": (args.half, HALF),
        "fp8": (args.fp8, FP8),
        "fp8, half stream": (args.fp8 and args.half, BOTH),
        "Muon": (args.muon, MUON),
    }
    return {name: changes for name, (is_wanted, changes) in options.items() if is_wanted}


def compare_curves(shape: Shape, args: argparse.Namespace, folder: Path) -> bool:
    """Whether the losses of both stay together from the same weights over the same batches."""
    shape = Shape(shape.config.replace(dropout=Dropout()), shape.rows, shape.length, shape.text)
    options = {"compiled": args.compile != "no", "n_steps": args.curve}
    curves: dict[str, list[float]] = {}
    for name in ("theirs", "theirs again"):  # twice: the noise of their kernels
        peer = build_peer(shape, args.nanogpt, shape.build())
        theirs = Theirs(shape, peer, args.device, **options)
        theirs()
        curves[name] = theirs.curve
        del theirs
    for name, setting in ({"": {}} | options_of(args)).items():
        ours = Ours(shape, folder, args.device, **options, **setting)
        ours()
        curves[f"ours, {name}" if name else "ours"] = ours.curve
        del ours
    n = max(1, args.curve // 6)
    print(f"mean losses of {n} steps each: {', '.join(curves)}")
    for i in range(0, args.curve, n):
        means = (f"{statistics.mean(curve[i : i + n]):.4f}" for curve in curves.values())
        print(f"  from step {i:>4}  {'  '.join(means)}")
    ends = {name: statistics.mean(curve[-n:]) for name, curve in curves.items()}
    noise, fine = abs(ends["theirs"] - ends["theirs again"]), True
    for name in (name for name in ends if name.startswith("ours")):
        gap = ends[name] - ends["theirs"]
        fine &= gap <= APART + 2 * noise
        verdict = "" if gap <= APART + 2 * noise else "   BREACH"
        print(f"{name} at the end: {gap:+.4f}, noise {noise:.4f}{verdict}", flush=True)
    return fine


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--nanogpt", type=Path, required=True, metavar="DIR")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--size", choices=tuple(SIZES), help="default: full on CUDA, else laptop")
    parser.add_argument("--work", default="both", choices=("language", "translation", "both"))
    parser.add_argument("--compile", default="both", choices=("no", "yes", "both"))
    parser.add_argument("--steps", type=int, default=10, help="in a round")
    parser.add_argument("--repeats", type=int, default=8, help="rounds")
    parser.add_argument("--curve", type=int, default=300, help="steps of loss curves; 0: none")
    parser.add_argument("--parts", action="store_true", help="also without each of our measures")
    parser.add_argument(
        "--half", action="store_true", help="also with a residual stream in 16 bits"
    )
    parser.add_argument("--fp8", action="store_true", help="also in 8 bits; needs a Hopper GPU")
    parser.add_argument("--muon", action="store_true", help="also with Muon")
    args = parser.parse_args(arguments)
    torch._dynamo.config.recompile_limit = 64  # one compiled step for each row of the table
    torch.backends.cuda.matmul.allow_tf32 = True  # as nanoGPT has it; for both
    size = args.size or ("full" if args.device == "cuda" else "laptop")
    print(f"torch {torch.__version__}, {args.device}", end="")
    print(f" ({torch.cuda.get_device_name()})" if args.device == "cuda" else "")
    text, fine = read_text(), True
    for name, sizes in zip(("language", "translation"), SIZES[size], strict=True):
        if args.work not in (name, "both"):
            continue
        shape = Shape(*sizes, text)
        peer = "torch.nn.Transformer" if shape.is_pair else "nanoGPT"
        print(f"\n{name}, {shape.rows} × {shape.length} tokens, beside {peer}", flush=True)
        if not check_losses(shape, args.nanogpt, args.device, float8=args.fp8):
            return 1  # nothing is faster because it is wrong
        print("tokens/s; ratio over 1: ours is faster; noise: theirs against itself")
        print(f"{'':<30} {'ours':>12} {'theirs':>12}   ratio   noise   peak memory")
        with tempfile.TemporaryDirectory() as place:
            for compiled in {"no": [False], "yes": [True], "both": [False, True]}[args.compile]:
                race(shape, args, Path(place), compiled=compiled)
            if args.curve:
                fine &= compare_curves(shape, args, Path(place))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
