"""Training: from text files to a model, on one core or many machines.

Reading order: recipe (all settings of a run; default_recipes, overrides), data (files to tokens),
batches (their order; prefetch prepares them), tasks/ (batches to losses), model_building,
initialization and finetuning (the model); schedule, optimizer, muon, fused_adam, loss, precision,
averaging (small parts, each usable alone; chunked_loss computes the loss of large vocabularies, by
loss_kernel on a GPU and native_loss on a CPU; cpu_products multiplies by oneDNN; float8,
float8_loss, float8_matrices and float8_kernels are training in 8 bits, half_precision that in 16);
checksums, state, checkpointing, checkpoints, recipe_files, run_folder (what is saved, and whether
it is intact); metrics, display, snapshots (what is logged and shown); parallel (one process or
many), stop_signal, step_plan, captured_steps (steps as CUDA graphs), loss_readout; loop combines
them, and run is the entry point. evaluation and scores measure saved models. Imports models,
generation and tracing, but not render.
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
