"""A training run as a model: which of its saved weights to load.

model/     the finished model
best/      the weights with the best validation score so far
latest/    the weights when the run was stopped; gone once it finishes
"""

from pathlib import Path

from glassformer.errors import CheckpointError


def is_run(folder: Path) -> bool:
    """Whether `glassformer train` works in this folder."""
    return (folder / "essence.json").is_file() and not (folder / "config.json").exists()


def select_weights(run: Path) -> Path:
    """The finished model; of a run that was stopped, the best weights, or else the latest."""
    was_stopped = (run / "latest").is_dir()  # after it was resumed, model/ may be older
    for name in ("best", "latest", "model") if was_stopped else ("model", "best"):
        if (run / name / "config.json").is_file():
            return run / name
    raise CheckpointError(
        f"{run} is a training run that has not saved a model yet. Continue it with: glassformer "
        f"train --resume --out {run}. Ctrl-C stops it and saves one."
    )
