"""Which experiments there are, in the order in which one would try them."""

import difflib
import importlib

from glassformer.errors import ConfigError
from glassformer.school.lab.experiment import Experiment

NAMES = (
    "linear",
    "batched",
    "scale",
    "low-precision",
    "masks",
    "dropout",
    "order",
    "positions-picture",
    "residual",
    "warmup",
    "smoothing",
    "heads",
    "grouped",
    "lstm",
    "complexity",
    "fused",
    "cache",
    "errors",
)


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
