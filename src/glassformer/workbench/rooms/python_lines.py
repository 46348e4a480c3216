"""The Python lines that reproduce a view: load, run, look at the same cell."""

from pathlib import Path

from glassformer.generation import add_language_tag
from glassformer.generation.continuation import tokenizer_of
from glassformer.generation.encoder_tasks import GAP
from glassformer.models import Encoder, EncoderDecoder
from glassformer.models.checkpoints import Model
from glassformer.tracing import Site
from glassformer.workbench.foreign_models import ForeignModel
from glassformer.workbench.memory import Reading
from glassformer.workbench.wire.exports import ExportRequest


def write_python(reading: Reading, site: Site, asked: ExportRequest, path: Path | None) -> str:
    """A program that prints the weight of the cell and its arithmetic."""
    where = asked.model if path is None else str(path)
    weight = float(site.weights(head=asked.head, rows=[asked.query])[0, asked.key])
    row = f"site.weights(head={asked.head}, rows=[{asked.query}])[0, {asked.key}]"
    cell = f"head={asked.head}, query={asked.query}, key={asked.key}"
    lines = [
        *_write_run(reading, asked, where),
        f"site = trace[{site.name!r}]",
        f"weight = float({row})",
        f"print(weight)  # {weight:.6f}",
        f"print(site.arithmetic({cell}))",
    ]
    return "\n".join(lines) + "\n"


def _write_run(reading: Reading, asked: ExportRequest, where: str) -> list[str]:
    if reading.source is None:
        return ["import glassformer as gf", "", f"trace = gf.Trace.load({where!r})"]
    if isinstance(reading.source, ForeignModel):
        return _run_foreign(reading.source, reading, asked, where)
    imports = ["import torch", "", "import glassformer as gf"]
    load = ["", f"model = gf.load({where!r}, dtype=torch.float32)"]
    more, watch = _open_watch(asked, "model")
    return [*imports, *more, *load, *_name_tokens(reading.source, reading, asked), watch, _CALL]


_CALL = "    model(*tokens)"


def _open_watch(asked: ExportRequest, arguments: str) -> tuple[list[str], str]:
    """What must be imported, and the line that watches, with the interventions if there are any."""
    if asked.change is None:
        return [], f"with torch.no_grad(), gf.watch({arguments}) as trace:"
    reads = "from glassformer.tracing.interventions.expression import read_changes"
    model, _, rest = arguments.partition(", ")
    given = ", ".join(filter(None, [model, f"read_changes({asked.change!r})", rest]))
    return [reads], f"with torch.no_grad(), gf.change({given}) as trace:"


def _name_tokens(model: Model, reading: Reading, asked: ExportRequest) -> list[str]:
    """The tokens that were read, from the text; what was written is given by its tokens."""
    text = asked.text
    if isinstance(model, EncoderDecoder):
        text = add_language_tag(model, text, asked.to)
    elif isinstance(model, Encoder) and model.special.mask is not None:
        text = text.replace(GAP, tokenizer_of(model).piece(model.special.mask))
    lines = [f"text = {text!r}", "tokens = [torch.tensor([model.tokenizer.encode(text)])]"]
    if isinstance(model, EncoderDecoder):
        written = reading.trace.run.texts["tokens"].tokens[0].tolist()
        lines.append(f"tokens.append(torch.tensor([{written}]))  # {_shorten(reading, written)}")
    return lines


def _shorten(reading: Reading, written: list[int]) -> str:
    """What was written, on one line of a comment."""
    text = " ".join(reading.decode(written[reading.n_start :]).split())
    return "".join(c if c.isprintable() else "?" for c in text)[:80]


def _run_foreign(
    source: ForeignModel, reading: Reading, asked: ExportRequest, where: str
) -> list[str]:
    name = type(source.model).__name__
    texts = reading.trace.run.texts
    given = [texts[each].tokens.tolist() for each in ("source", "tokens") if each in texts]
    names = ["input_ids", "decoder_input_ids"]
    pairs = zip(names[: len(given)], given, strict=True)
    inputs = ", ".join(f"{each}=torch.tensor({tokens})" for each, tokens in pairs)
    more, watch = _open_watch(asked, "model, tokenizer")
    return [
        "import torch",
        f"from transformers import AutoTokenizer, {name}",
        "",
        "import glassformer as gf",
        *more,
        "",
        f"tokenizer = AutoTokenizer.from_pretrained({where!r})",
        f"model = {name}.from_pretrained({where!r}).eval()",
        watch,
        f"    model({inputs})",
    ]
