"""`watch`: a transformers model, looked at while it runs.

What knows transformers is imported when a model is watched: `import glassformer` stays quick.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from glassformer.observe.choice import Choice, Rows
from glassformer.observe.guard import Guard, recording
from glassformer.observe.keeping import Keeper
from glassformer.observe.trace import Trace


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
    """Record what passes through the attention of a transformers model while the context is open.

    ::

        with gf.watch(model, tokenizer) as trace:
            model.generate(**tokenizer("The cat sat on the", return_tensors="pt"))
        trace["decoder.3.self"].weights(head=2)

    Only what this thread does is seen. A model may be watched more than once at a time; it is put
    back when the last one leaves. `tokenizer` reads the tokens; what is kept, and where, is chosen
    as for `observe`.
    """
    from glassformer.observe.huggingface import Watcher, check

    check(model)
    choice = Choice(layers=layers, heads=heads, rows=rows, every=every)
    guard = Guard("gf.watch")
    watcher = Watcher(model, tokenizer, choice, outputs, Keeper(device, budget, folder), guard)
    with recording(guard, watcher.name, watcher.attach, watcher.close, watcher.refuse_all):
        yield watcher.trace
