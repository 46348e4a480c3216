"""The lab: claims about attention and the Transformer, each with an experiment that tests it here.

Reading order: experiment (what one is: measure, judge, draw), words (its texts in both languages,
in a file beside it), catalogue (which there are), running (from a name to a report); progress,
measuring (times, bytes, exponents) and learning (training small models) are what experiments share;
then experiments/, one file per claim. Imports render and what lies below; never another place.
"""

from glassformer.school.lab.catalogue import NAMES, find_experiment
from glassformer.school.lab.experiment import Check, Experiment, Verdict
from glassformer.school.lab.runner import ExperimentReport, run_experiment
from glassformer.school.lab.texts import ExperimentTexts

__all__ = [
    "NAMES",
    "Check",
    "Experiment",
    "ExperimentReport",
    "ExperimentTexts",
    "Verdict",
    "find_experiment",
    "run_experiment",
]
