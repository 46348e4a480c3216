"""Training: from text files to a model, on one core or many machines.

Reading order: config (the recipe; settings reads it), data (files to tokens), batches (their
order; ahead makes them in time), tasks/ (batches to losses), building and initial (the model);
schedule, optimizer, loss, precision, averaging (small parts, each usable alone); checksums, state,
saving, checkpoints, recipe_files, folder (what is kept, and whether it is whole); metrics,
progress, film (what is seen), parallel (one process or many), interruption; loop puts them
together, running is the door. Imports models, generate and observe; nothing of
render.
"""

from glassformer.training.loss import cross_entropy_sum
from glassformer.training.optimizer import Optimizer, clip_gradients
from glassformer.training.recipe import Recipe
from glassformer.training.run import Result, train
from glassformer.training.schedule import Schedule
from glassformer.training.stop_signal import TrainingInterrupted

__all__ = [
    "Optimizer",
    "Recipe",
    "Result",
    "Schedule",
    "TrainingInterrupted",
    "clip_gradients",
    "cross_entropy_sum",
    "train",
]
