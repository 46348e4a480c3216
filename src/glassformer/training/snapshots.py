"""Snapshots: one text run through the model at intervals, its attention recorded.

snapshots/00000500.trace      what every head attended to at step 500
snapshots/samples.jsonl       what the model made of the text, a line per step
"""

import json
from pathlib import Path
from typing import Any

import torch

from glassformer.errors import GlassformerError
from glassformer.models import Decoder, Encoder, EncoderDecoder
from glassformer.storage import read_regular
from glassformer.tracing import watch
from glassformer.training.metrics import read_lines, write_lines
from glassformer.training.tasks import Task

SAMPLES = "samples.jsonl"


def record_snapshot(folder: Path, model: Any, task: Task, text: str, step: int) -> str:
    """Save a trace and a sample of this step, and return the sample."""
    folder.mkdir(parents=True, exist_ok=True)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            sample = task.sample(model, text)
            if isinstance(model, Encoder | Decoder | EncoderDecoder):
                with watch(model, device="cpu") as trace:
                    task.run_once(model, text)
                trace.save(folder / f"{step:08d}.trace")
    except GlassformerError as error:  # a text that does not suit the model must not end the run
        sample = f"({error})"
    finally:
        model.train(was_training)
    line = json.dumps({"step": step, "text": text, "sample": sample}, ensure_ascii=False)
    with (folder / SAMPLES).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    return sample


def discard_samples_after(folder: Path, step: int) -> None:
    """Drop the samples of later steps: a resumed run records them again."""
    path = folder / SAMPLES
    if path.is_file():
        write_lines(path, read_lines(read_regular(path), step)[0])
