"""`watch`: any model, looked at while it runs.

What knows transformers is imported when a model is watched: `import glassformer` stays quick.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from glassformer.errors import GlassformerError, TraceError
from glassformer.models import Decoder, Encoder, EncoderDecoder
from glassformer.tracing.guard import Guard
from glassformer.tracing.model_lookup import find_model
from glassformer.tracing.operand_store import Keeper
from glassformer.tracing.recorder import recording
from glassformer.tracing.selection import Choice, Rows
from glassformer.tracing.sources.ours import record_ours
from glassformer.tracing.sources.torch_modules import record_torch
from glassformer.tracing.trace import Trace


@contextmanager
def watch(
    model: nn.Module,
    tokenizer: Any = None,
    *,
    layers: Collection[int] | None = None,
    heads: Collection[int] | None = None,
    rows: Rows | None = None,
    every: int = 1,
    outputs: bool = False,
    device: torch.device | str | None = None,
    budget: int | str | None = None,
    folder: str | Path | None = None,
) -> Iterator[Trace]:
    """Record what passes through the attention of a model while the context is open.

    ::

        with gf.watch(model, tokenizer) as trace:
            model.generate(**tokenizer("The cat sat on the", return_tensors="pt"))
        trace["decoder.3.self"].weights(head=2)

    The model is one of transformers, of glassformer, or a module with `nn.MultiheadAttention`, by
    itself or inside of another module. Only what this thread does is seen. A model may be watched
    more than once at a time; compiled parts run uncompiled meanwhile. `tokenizer` reads the tokens.

    `layers` and `heads` choose some of them, `rows` some of the queries: positions in the text, or
    "last" for the last row of each call. `every=n` keeps each n-th step of generation. `outputs`
    keeps what the model computed too. `device` moves the operands, to "cpu" for instance; what
    exceeds the budget ("4 GiB") goes to disk, into `folder` or the system's temporary folder.

    What cannot be recorded never costs the model's output: the site is refused, and a
    `RecordingWarning` says why when the context is left.
    """
    kept = {"heads": heads, "rows": rows, "device": device, "budget": budget, "folder": folder}
    found = find_model(model)
    if isinstance(found, Encoder | Decoder | EncoderDecoder):
        options = {"layers": layers, "every": every, "outputs": outputs, **kept}
        with record_ours(model, found, tokenizer, **options) as trace:
            yield trace
    elif found is None:
        if tokenizer is not None or outputs:
            raise TraceError(
                f"nn.MultiheadAttention in {type(model).__name__} neither reads tokens nor shows "
                "its heads' outputs. Watch it without tokenizer= and outputs=."
            )
        with record_torch(model, layers=layers, **kept) as trace:
            yield trace
    else:
        from glassformer.tracing.sources.transformers import Watcher, check

        guard = Guard("gf.watch")
        choice = Choice(layers=layers, heads=heads, rows=rows, every=every)
        keeper = Keeper(device, budget, folder)
        watcher = Watcher(found, tokenizer, choice, outputs, keeper, guard)
        with guard.catching(watcher.name, watcher.refuse_all, raising=(GlassformerError,)):
            check(found)
        with recording(watcher, model) as trace:
            yield trace
