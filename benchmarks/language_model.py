"""Our training step beside nanoGPT's: tiny Shakespeare, letter by letter, in the same process.

    git clone https://github.com/karpathy/nanoGPT
    python benchmarks/language_model.py --nanogpt nanoGPT --data DIR
    python benchmarks/language_model.py --nanogpt nanoGPT --data DIR --device cuda

DIR holds tinyshakespeare.txt. Ours is the step of `glassformer train recipes/shakespeare.toml`;
nanoGPT's is its model.py and its optimiser, stepped as its train.py does. Both cut their batches
from the text while the model computes; rounds of a few steps take turns. On CUDA in bfloat16 at
nanoGPT's size, on a CPU in float32 at the size that its README has for one.
"""

import argparse
import importlib.util
import io
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from glassformer.models.parameters import count_parameters
from glassformer.training import Recipe
from glassformer.training.data import open_data, prepare_data
from glassformer.training.display import SilentDisplay
from glassformer.training.loop import PREFETCHED_STEPS, Trainer
from glassformer.training.model_building import build_model
from glassformer.training.parallel import start_parallel
from glassformer.training.prefetch import Prefetch
from glassformer.training.run_folder import RunFolder
from glassformer.training.step_plan import plan_steps
from glassformer.training.tasks import TASKS
from measure import compare

RECIPE = Path(__file__).parents[1] / "recipes" / "shakespeare.toml"
FOR_A_CPU = (
    "model.dim=128",
    "model.n_layers=4",
    "model.n_heads=4",
    "model.max_len=64",
    "model.dropout.embedding=0.0",
    "model.dropout.weights=0.0",
    "model.dropout.residual=0.0",
    "batches.length=64",
    "batches.rows=12",
)


class Ours:
    """Rounds of the loop's own step; losses are read at the end of each, as `show.every` does."""

    def __init__(self, recipe: Recipe, folder: Path, device: str, n_steps: int) -> None:
        self.n_steps, self.loss = n_steps, float("nan")
        folder.mkdir(parents=True)
        run = RunFolder(folder)
        run.claim(recipe, resume=False)
        prepare_data(recipe, run.path)
        task = TASKS[recipe.task](recipe, open_data(run.path))
        self.model = build_model(recipe, task)
        processes = start_parallel(recipe.compute.parallel, device)
        self.trainer = Trainer(recipe, self.model, task, run, processes, SilentDisplay())
        steps = plan_steps(task, processes, epoch=0, index=0)
        self.work = Prefetch(steps, n=PREFETCHED_STEPS)

    def __call__(self) -> None:
        # `Trainer.run` would start and stop the thread that makes batches in every round.
        for _ in range(self.n_steps):
            self.trainer._update(next(self.work))
            self.trainer.state.step += 1
        self.loss = self.trainer.losses.read()["loss"]

    @property
    def step(self) -> int:
        return self.trainer.state.step


class Theirs:
    """Rounds of nanoGPT's model and optimiser with our recipe's settings, which are its own."""

    def __init__(
        self,
        nanogpt: ModuleType,
        recipe: Recipe,
        text: str,
        folder: Path,
        device: str,
        n_steps: int,
    ) -> None:
        self.recipe, self.device, self.n_steps, self.step = recipe, device, n_steps, 0
        letters = {letter: i for i, letter in enumerate(sorted(set(text)))}
        tokens = np.array([letters[letter] for letter in text], dtype=np.uint16)
        self.file = folder / "train.bin"
        tokens[: int(len(tokens) * 0.9)].tofile(self.file)
        wish = recipe.model
        torch.manual_seed(recipe.seed)
        with redirect_stdout(io.StringIO()):  # it tells its size
            self.model = nanogpt.GPT(
                nanogpt.GPTConfig(
                    block_size=wish["max_len"],
                    vocab_size=len(letters),
                    n_layer=wish["n_layers"],
                    n_head=wish["n_heads"],
                    n_embd=wish["dim"],
                    dropout=wish["dropout"]["residual"],
                    bias=False,
                )
            ).to(device)
            o = recipe.optimizer
            self.optimizer = self.model.configure_optimizers(
                o.weight_decay, recipe.schedule.lr, o.betas, device
            )
        self.scaler = torch.amp.GradScaler(device, enabled=False)
        self.compute: Callable[..., Any] = self.model
        if recipe.compute.compile:
            self.compute = torch.compile(self.model)
        self.batch = self.next_batch()
        self.loss = float("nan")

    def next_batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Windows anywhere in the text, from a file that is mapped anew each time."""
        b = self.recipe.batches
        text = np.memmap(self.file, dtype=np.uint16, mode="r")
        starts = torch.randint(len(text) - b.length, (b.rows,)).tolist()
        sides = []
        for shift in (0, 1):
            windows = [text[i + shift : i + shift + b.length].astype(np.int64) for i in starts]
            side = torch.stack([torch.from_numpy(window) for window in windows])
            if self.device == "cuda":
                side = side.pin_memory().to(self.device, non_blocking=True)
            sides.append(side)
        return sides[0], sides[1]

    def __call__(self) -> None:
        is_cuda = self.device == "cuda"
        half = torch.autocast("cuda", dtype=torch.bfloat16) if is_cuda else nullcontext()
        for _ in range(self.n_steps):
            for group in self.optimizer.param_groups:
                group["lr"] = self.recipe.schedule.rate(self.step)
            with half:
                loss = self.compute(*self.batch)[1]
            self.batch = self.next_batch()  # while the device is still busy
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.optimizer.clip)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad(set_to_none=True)
            self.step += 1
        self.loss = loss.item()


def read_nanogpt(folder: Path) -> ModuleType:
    """The model.py of a checkout."""
    spec = importlib.util.spec_from_file_location("nanogpt_model", folder / "model.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["nanogpt_model"] = module
    spec.loader.exec_module(module)
    return module


def race(args: argparse.Namespace, *, compiled: bool) -> float:
    """Tokens per second of both, and how much longer ours takes."""
    is_cuda = args.device == "cuda"
    changes = [
        f"data.folder={str(args.data.absolute())!r}",
        f"compute.precision={'bf16' if is_cuda else 'fp32'}",
        f"compute.compile={str(compiled).lower()}",
        "schedule.steps=5000",
        "save.ema=0.0",  # which nanoGPT does not have
        *(() if is_cuda else FOR_A_CPU),
    ]
    recipe = Recipe.from_toml(RECIPE, changes)
    n_steps = args.steps or (100 if is_cuda else 10)
    b = recipe.batches
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        text = (args.data / "tinyshakespeare.txt").read_text(encoding="utf-8")
        nanogpt = read_nanogpt(args.nanogpt)
        theirs = Theirs(nanogpt, recipe, text, folder, args.device, n_steps)
        ours = Ours(recipe, folder / "run", args.device, n_steps)
        sizes = count_parameters(ours.model), count_parameters(theirs.model)
        if sizes[0] != sizes[1]:
            print(f"The models differ: ours has {sizes[0]:,} parameters, nanoGPT's {sizes[1]:,}.")
        with ours.work:
            found = compare(ours, theirs, args.device, repeats=args.repeats or 10)
    tokens = n_steps * b.rows * b.length
    print(
        f"{'compiled' if compiled else 'eager':<9} {sizes[0]:>11,} "
        f"{tokens / found.ours:>12,.0f} {tokens / found.theirs:>12,.0f} {1 / found.ratio:>7.3f} "
        f"{found.noise:>7.3f}   {ours.loss:.2f} ({ours.step}), {theirs.loss:.2f} ({theirs.step})"
    )
    return found.ratio


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--nanogpt", type=Path, required=True, metavar="DIR")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--compile", default="both", choices=("no", "yes", "both"))
    parser.add_argument("--steps", type=int, help="in a round")
    parser.add_argument("--repeats", type=int, help="rounds")
    args = parser.parse_args(arguments)
    torch.backends.cuda.matmul.allow_tf32 = True  # as nanoGPT has it; for both
    print(f"torch {torch.__version__}, {args.device}", end="")
    print(f" ({torch.cuda.get_device_name()})" if args.device == "cuda" else "")
    print("tokens/s of training; ratio over 1: ours is faster; noise: nanoGPT's against itself")
    print("           parameters         ours      nanoGPT   ratio   noise   loss (after steps)")
    for compiled in {"no": [False], "yes": [True], "both": [False, True]}[args.compile]:
        race(args, compiled=compiled)
    return 0


if __name__ == "__main__":
    sys.exit(main())
