"""The lab: claims about attention and the Transformer, each with an experiment that tests it here.

Reading order: experiment (what one is: measure, judge, draw), texts (what it says, in both
languages), catalogue (all of them, by name), repetition (several seeds as one verdict), runner
(from a name to a report). Experiments share progress, measurement (times, bytes, exponents),
toy_training and panels; each claim is one file in experiments/. Imports render and what lies below
it; never practice or learn. The runner is imported from its module: what lists experiments must not
load torch.
"""

from glassformer.school.lab.catalogue import NAMES, SECONDS, find_experiment
from glassformer.school.lab.experiment import Check, Experiment, Verdict
from glassformer.school.lab.texts import ExperimentTexts

__all__ = [
    "NAMES",
    "SECONDS",
    "Check",
    "Experiment",
    "ExperimentTexts",
    "Verdict",
    "find_experiment",
]
