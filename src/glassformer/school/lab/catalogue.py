"""Which experiments there are, in the order in which one would try them."""

import difflib
import importlib

from glassformer.errors import ConfigError
from glassformer.school.lab.experiment import Experiment, Size

# How many seconds each size takes on one core of an ordinary machine, all seeds together.
SECONDS: dict[str, dict[Size, int]] = {
    "linear": {"quick": 1, "full": 1},
    "batched": {"quick": 1, "full": 1},
    "scale": {"quick": 1, "full": 1},
    "low-precision": {"quick": 1, "full": 1},
    "masks": {"quick": 1, "full": 1},
    "dropout": {"quick": 1, "full": 1},
    "order": {"quick": 60, "full": 145},
    "positions-picture": {"quick": 1, "full": 1},
    "residual": {"quick": 9, "full": 90},
    "warmup": {"quick": 45, "full": 55},
    "smoothing": {"quick": 9, "full": 36},
    "heads": {"quick": 9, "full": 36},
    "grouped": {"quick": 24, "full": 90},
    "lstm": {"quick": 24, "full": 90},
    "complexity": {"quick": 1, "full": 5},
    "fused": {"quick": 1, "full": 4},
    "cache": {"quick": 1, "full": 2},
    "errors": {"quick": 1, "full": 1},
    "tokenization": {"quick": 3, "full": 8},
    "embeddings": {"quick": 39, "full": 64},
    "sampling": {"quick": 18, "full": 39},
    "induction": {"quick": 45, "full": 67},
    "long-context": {"quick": 36, "full": 60},
    "latent": {"quick": 24, "full": 39},
    "experts": {"quick": 21, "full": 60},
    "traffic": {"quick": 1, "full": 5},
    "speculative": {"quick": 30, "full": 125},
    "forgetting": {"quick": 20, "full": 60},
    "power-law": {"quick": 20, "full": 75},
    "vision": {"quick": 25, "full": 50},
    "patching": {"quick": 26, "full": 48},
    "retrieval": {"quick": 36, "full": 92},
    "bottleneck": {"quick": 29, "full": 105},
}
NAMES = tuple(SECONDS)


def find_experiment(name: str) -> Experiment:
    """The experiment of a name.

    >>> find_experiment("scale").name
    'scale'
    """
    if name not in NAMES:
        near = difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ConfigError(f"An experiment must be one of {', '.join(NAMES)}; got {name!r}.{hint}")
    file = f"glassformer.school.lab.experiments.{name.replace('-', '_')}"
    return importlib.import_module(file).EXPERIMENT
