"""Saved models: our own folders, those of transformers in both directions, GGUF files, the hub.

Reading order: loading (what kind of source is this), own; names (the notation of the tables) and
architectures/ (one table each), huggingface, foreign_tokenizer, pooling; gguf_config, gguf,
gguf_export; hub. fidelity says what a layout would lose; tensors reads safetensors, assembly checks
and builds; folders are written by storage. Foreign names live here and nowhere else. No pickle is
ever opened.
"""

from glassformer.models.checkpoints.assembly import Model, Saved
from glassformer.models.checkpoints.loading import check_target, load, load_config, save

__all__ = ["Model", "Saved", "check_target", "load", "load_config", "save"]
