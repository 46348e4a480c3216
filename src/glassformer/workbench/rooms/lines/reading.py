"""The lines with which each program begins: a model, its tokens, and the run that is recorded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.generation import add_language_tag
from glassformer.generation.continuation import tokenizer_of
from glassformer.generation.encoder_tasks import GAP
from glassformer.generation.source_text import read_any_source
from glassformer.models import Encoder, EncoderDecoder
from glassformer.models.checkpoints import Model
from glassformer.workbench.foreign_models import ForeignModel
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory, Reading
from glassformer.workbench.wire.requests import ReadingRequest

READ_CHANGES = "from glassformer.tracing.interventions.expression import read_changes"
READ_REFERENCES = "from glassformer.workbench.references import read_references"


@dataclass
class Program:
    """Lines of Python; what they import is written above them."""

    imports: set[str]
    lines: list[str]

    def __str__(self) -> str:
        ours = ("import glassformer", "from glassformer")
        plain_first = sorted(self.imports, key=lambda each: (each.startswith("from"), each))
        groups = [
            [each for each in plain_first if each.startswith(ours) is is_ours]
            for is_ours in (False, True)
        ]
        head = "\n\n".join("\n".join(group) for group in groups if group)
        return "\n".join([head, "", *self.lines]) + "\n"


def begin_program(
    asked: ReadingRequest,
    memory: Memory,
    progress: Progress,
    *,
    residual: bool,
    outputs: bool = False,
) -> Program:
    """Load the model, read the text, and record it as `trace`, under the interventions if any."""
    reading = (memory.reading if residual else memory.glance)(asked, progress)
    program = load_source(reading, memory)
    if reading.source is None:
        program.lines.append(f"trace = gf.Trace.load({find_source(asked, memory)!r})")
        return program
    program.lines += name_inputs(reading, "tokens")
    if asked.change is not None:
        changes = write_changes(program, asked, memory, progress)
        program.lines.append(f"changes = {changes}")
    is_changed = asked.change is not None
    program.lines += record(
        reading, "trace", residual=residual, outputs=outputs, is_changed=is_changed
    )
    return program


def load_source(reading: Reading, memory: Memory) -> Program:
    """The lines that load the model of a reading."""
    where = find_source(reading.asked, memory)
    source = reading.source
    if source is None:
        return Program({"import glassformer as gf"}, [])
    if isinstance(source, ForeignModel):
        name = type(source.model).__name__
        return Program(
            {
                "import torch",
                f"from transformers import AutoTokenizer, {name}",
                "import glassformer as gf",
            },
            [
                f"tokenizer = AutoTokenizer.from_pretrained({where!r})",
                f"model = {name}.from_pretrained({where!r}).eval()",
            ],
        )
    return load_ours(reading.asked, memory)


def load_ours(asked: ReadingRequest, memory: Memory) -> Program:
    """The lines that load a model of ours, in the precision of the workbench."""
    where = find_source(asked, memory)
    lines = [f"model = gf.load({where!r}, dtype=torch.float32)"]
    return Program({"import torch", "import glassformer as gf"}, lines)


def find_source(asked: ReadingRequest, memory: Memory) -> str:
    """What `gf.load` or `Trace.load` is given: a name, or a path."""
    path: Path | None = memory.path(asked.model)
    return asked.model if path is None else str(path)


def name_inputs(reading: Reading, name: str) -> list[str]:
    """What the model was called with, from the text; what it wrote is given by its tokens."""
    source = reading.source
    if isinstance(source, ForeignModel):
        texts = reading.trace.run.texts
        given = [texts[each].tokens.tolist() for each in ("source", "tokens") if each in texts]
        names = ["input_ids", "decoder_input_ids"][: len(given)]
        pairs = zip(names, given, strict=True)
        inputs = ", ".join(f"{each!r}: torch.tensor({tokens})" for each, tokens in pairs)
        return [f"{name} = {{{inputs}}}"]
    text = write_text(reading.model, reading.asked)
    lines = [f"{name} = [torch.tensor([model.tokenizer.encode({text!r})])]"]
    if isinstance(source, EncoderDecoder):
        written = reading.trace.run.texts["tokens"].tokens[0].tolist()
        shown = _shorten(reading, written)
        lines.append(f"{name}.append(torch.tensor([{written}]))  # {shown}")
    return lines


def write_text(model: Model, asked: ReadingRequest) -> str:
    """The text as the model reads it: with the tag of a language, with its own sign for a gap."""
    if isinstance(model, EncoderDecoder):
        if asked.target is None:
            return read_any_source(model, asked.text, asked.to).text
        return add_language_tag(model, asked.text, asked.to)
    if isinstance(model, Encoder) and model.special.mask is not None:
        return asked.text.replace(GAP, tokenizer_of(model).piece(model.special.mask))
    return asked.text


def record(
    reading: Reading,
    name: str,
    *,
    residual: bool,
    is_changed: bool,
    outputs: bool = False,
    inputs: str = "tokens",
) -> list[str]:
    """Two lines that run the model and record it under a name."""
    is_foreign = isinstance(reading.source, ForeignModel)
    given = ["model", *(["changes"] if is_changed else []), *(["tokenizer"] if is_foreign else [])]
    given += ["outputs=True"] if outputs else []
    given += ["residual=True"] if residual else []
    verb = "gf.change" if is_changed else "gf.watch"
    return [
        f"with torch.no_grad(), {verb}({', '.join(given)}) as {name}:",
        f"    model({'**' if is_foreign else '*'}{inputs})",
    ]


def write_changes(
    program: Program,
    asked: ReadingRequest,
    memory: Memory,
    progress: Progress,
    *,
    this: str | None = None,
) -> str:
    """The expression that reads the interventions; runs that it refers to are recorded first.

    `this` is the name of the run without them, where the program has it already.
    """
    assert asked.change is not None
    if "$" not in asked.change:
        program.imports.add(READ_CHANGES)
        return f"read_changes({asked.change!r})"
    program.imports.add(READ_REFERENCES)
    runs = {} if this is not None else {"this": memory.unchanged(asked, progress)}
    if asked.second is not None:
        other: dict[str, Any] = {"text": asked.second, "target": None}
        runs["second"] = memory.unchanged(asked.model_copy(update=other), progress)
    for name, reading in runs.items():
        program.lines += name_inputs(reading, f"{name}_tokens")
        program.lines += record(
            reading, name, residual=True, is_changed=False, inputs=f"{name}_tokens"
        )
    this = this or "this"
    second = "second" if "second" in runs else this
    return f"read_references({asked.change!r}, lambda: {this}, lambda: {second})"


def _shorten(reading: Reading, written: list[int]) -> str:
    """What was written, on one line of a comment."""
    text = " ".join(reading.decode(written[reading.n_start :]).split())
    return "".join(c if c.isprintable() else "?" for c in text)[:80]
