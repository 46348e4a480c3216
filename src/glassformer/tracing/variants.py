"""Many changed runs of one text in one pass: each sequence of a batch with a change of its own.

The text is repeated along the batch. Blocks below the first change give what was recorded, and the
pass ends after the last block: scores are then read out only at the positions that count.
`Variants` attaches to the model once for any number of passes; what its trial runs of blocks found
serves all of them.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import InterventionError
from glassformer.tracing.context import attach, prepare
from glassformer.tracing.interventions.editor import Editor
from glassformer.tracing.interventions.probes import Probe
from glassformer.tracing.interventions.stream_editor import KnownBlocks, Shortcuts, StreamReached
from glassformer.tracing.interventions.values import Changes, Intervention, Swap
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.prefix import Prefix, first_changed, is_continued
from glassformer.tracing.reruns import find_call, find_known_blocks
from glassformer.tracing.selection import Selection
from glassformer.tracing.trace import Trace

_NOTHING = Changes(())


class Variants:
    """A recorded text that runs again and again, changed each time; a context.

    >>> import glassformer as gf
    >>> model = gf.load("writer")
    >>> with gf.watch(model, residual=True) as trace:
    ...     _ = model(torch.tensor([model.tokenizer.encode("The old man sat")]))
    >>> with Variants(trace) as variants:
    ...     ends = variants.run([gf.Skip("decoder.1"), gf.Ablate("decoder.2.self", head=0)])
    >>> ends.shape == (2, *trace.residual().end.shape[1:])
    True
    """

    def __init__(self, trace: Trace, *, stack: str | None = None) -> None:
        self.trace, self.stream = trace, trace.residual(stack)
        if len(self.stream.start) != 1:
            raise InterventionError(
                f"Variants are made of one sequence; this trace has {len(self.stream.start)}."
            )
        self.stack = self.stream.name
        self.n_layers = max(part.layer for part in self.stream.parts) + 1
        self.model, self.args, self.options = find_call(trace)
        self.known = find_known_blocks(trace.run, {}, self.model)
        self.prefix = Prefix.of(trace.run, self.model, self.args, self.options, self.n_layers)
        self._n_shorter = 0  # runs that need not read all tokens
        self.editor, self.shortcuts = Editor(_NOTHING), Shortcuts()
        self._attached = ExitStack()

    def __enter__(self) -> "Variants":
        self.recorder, tree = prepare(
            "rerun",
            self.model,
            None,
            selection=Selection(),
            store=OperandStore(None, None, None),
            outputs=False,
            residual=False,
            editor=self.editor,
        )
        self.recorder.is_silent = True
        self._attached.enter_context(attach(self.recorder, tree, self.shortcuts))
        return self

    def __exit__(self, *error: Any) -> None:
        self._attached.__exit__(*error)

    def run(self, variants: Sequence[Intervention | Changes]) -> Float[Tensor, "N L C"]:
        """The end of the residual stream of the text under each of these changes."""
        each = [
            replace(edit, sequences=[i])  # type: ignore[type-var]
            for i, given in enumerate(variants)
            for edit in Changes.of(given)
        ]
        start = self._find_start(each)
        if not start:
            return self.run_together(each, len(variants))
        end = self.run_together(each, len(variants), start=start)
        same = self.stream.end[:, :start].to(end).expand(len(variants), -1, -1)
        return torch.cat((same, end), dim=1)

    def read(
        self,
        part: str,
        edits: Sequence[Intervention],
        n: int,
        *,
        starts: Float[Tensor, "N L C"] | None = None,
    ) -> Float[Tensor, "N L C"]:
        """What a part adds in n sequences under these changes; only its block runs.

        `starts` are the states that the block reads, where they are not the recorded ones.
        """
        probe = Probe(part)
        self.run_together([*edits, probe], n, last=probe.layer[1], starts=starts)
        return probe.value

    def run_together(
        self,
        edits: Sequence[Intervention],
        n: int,
        *,
        last: int | None = None,
        starts: Float[Tensor, "N L C"] | None = None,
        start: int = 0,
        is_differentiated: bool = False,
    ) -> Float[Tensor, "N L C"]:
        """The end of the stream, or of a block, in one pass of n sequences with all these edits.

        Without edits every block runs.
        With `start`, only the positions from there on are read, and returned.
        """
        if wrong := [e for e in edits if isinstance(e, Swap) and e.positions != "same"]:
            raise InterventionError(
                f"{wrong[0]} concerns every sequence of a batch. Use gf.rerun for it."
            )
        editor, shortcuts = self.editor, self.shortcuts
        editor.begin(Changes.of_variants(edits))
        shortcuts.known = self._find_known(n, start) if edits else {}
        shortcuts.last = wanted = (self.stack, self.n_layers - 1 if last is None else last)
        if starts is not None:
            below = self.stack, editor.lowest[self.stack] - 1
            shortcuts.known[below] = shortcuts.known[below]._replace(state=starts)
        args: Sequence[Any] = [_repeat(value, n) for value in self.args]
        options = {name: _repeat(value, n) for name, value in self.options.items()}
        if start:
            assert self.prefix is not None
            args, options = self.prefix.call(start, n)
        try:
            with torch.set_grad_enabled(is_differentiated):
                self.model(*args, **options)
        except StreamReached as reached:
            editor.check_applied()
            return reached.state
        finally:  # whatever runs between passes is the model as it is
            editor.begin(_NOTHING)
            shortcuts.known, shortcuts.last = {}, None
            self.recorder.trace.recorded.clear()
        raise InterventionError(f"The model did not run through {'.'.join(map(str, wanted))}.")

    def _find_start(self, edits: Sequence[Intervention]) -> int:
        """The first position that has to be read: those before it are as they were."""
        start = 0 if self.prefix is None else first_changed(edits, self.stream.start.shape[1])
        if not start:
            return 0
        self._n_shorter += 1
        if self._n_shorter == 1:  # a proof costs half a pass, which one run would not bring back
            return 0
        if self._n_shorter == 2:
            half = self.stream.start.shape[1] // 2
            try:
                end = self.run_together([], 1, start=half)
                is_right = is_continued(end, self.stream.end[:, half:].to(end))
            except Exception:  # whatever it was, it cannot be continued
                is_right = False
            if not is_right:
                self.prefix, start = None, 0
        return start

    def _find_known(self, n: int, start: int) -> KnownBlocks:
        """The blocks below the first change, for n sequences."""
        known: KnownBlocks = {}
        for stack in self.trace.run.streams:
            stop = self.editor.lowest.get(stack)
            for (name, layer), block in self.known.items():
                if name == stack and (stop is None or layer < stop):
                    known[name, layer] = block._replace(
                        state=block.state[:, start:].expand(n, -1, -1)
                    )
            if stop is not None:
                break  # whatever reads this stack has to run as well
        return known


def run_variants(
    trace: Trace, variants: Sequence[Intervention | Changes], *, stack: str | None = None
) -> Float[Tensor, "N L C"]:
    """The end of the residual stream of one text under each of these changes, in one pass."""
    with Variants(trace, stack=stack) as several:
        return several.run(variants)


def _repeat(value: Any, n: int) -> Any:
    """An argument of one sequence for n of them."""
    if isinstance(value, Tensor) and value.ndim and len(value) == 1:
        return value.expand(n, *value.shape[1:])
    return value
