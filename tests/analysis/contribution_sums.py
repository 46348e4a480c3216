"""Sums of contributions, held against what plain hooks and the plain model give; writes the page.

python tests/analysis/contribution_sums.py      writes docs/sums-of-contributions.md anew
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1]))

import glassformer as gf
from glassformer.layers.block import NormPlace
from glassformer.layers.norm import NormKind
from glassformer.models.config import Family, Norms
from glassformer.tracing.model_lookup import ModuleTree
from glassformer.tracing.sources.transformers_layout import TransformersLayout
from glassformer.tracing.stream_listener import find_blocks
from tracing.watched_architectures import ARCHITECTURES, NOT_THERE, built, inputs

PAGE = Path(__file__).parents[2] / "docs" / "sums-of-contributions.md"
TOLERANCE = 1e-5  # float32 parity, of the largest value
BOUNDS = (1e-6, 3e-6, TOLERANCE)
MARGIN = 3  # a bound is this far above what was measured: other machines round elsewhere
NONE = "–"

LISTED = {
    "GPT-2": "gpt2",
    "GPT-NeoX": "gpt-neox",
    "OPT": "opt",
    "Llama": "llama",
    "Mistral": "mistral",
    "Qwen2": "qwen2",
    "Qwen3": "qwen3",
    "Gemma": "gemma",
    "Gemma-2": "gemma2",
    "Gemma-3": "gemma3",
    "Phi-3": "phi3",
    "OLMo-2": "olmo2",
    "SmolLM3": "smollm3",
    "Granite": "granite",
    "Mixtral": "mixtral",
    "Qwen2-MoE": "qwen2-moe",
    "Qwen3-MoE": "qwen3-moe",
    "BERT": "bert",
    "RoBERTa": "roberta",
    "ModernBERT": "modernbert",
    "ViT": "vit",
    "T5": "t5",
    "BART": "bart",
    "Marian": "marian",
}
MASKED = {name: f"{name}ForMaskedLM" for name in ("Bert", "Roberta", "ModernBert")}


@dataclass
class Case:
    """A model and a run of it: sequences, of which only real positions count."""

    name: str
    model: nn.Module
    run: Callable[[], Any]
    real: dict[str, Tensor]  # by stack, (B, L)
    blocks: dict[str, nn.Module]  # the last of each stack
    cap: float | None = None  # of the logits


class Row(NamedTuple):
    """The largest errors of a stack, relative to the largest value."""

    model: str
    stack: str
    terms: int  # the start and all parts, with the biases of norms
    residual: float
    logits: dict[str, float]  # by part, head and source; empty if no scores follow this stack
    frozen: str


def listed_case(label: str) -> Case:
    """A tiny model of transformers on a padded batch."""
    plan = ARCHITECTURES[LISTED[label]]
    plan = replace(plan, model=MASKED.get(plan.model.removesuffix("Model"), plan.model))
    try:
        model = built(plan, "sdpa")
    except ValueError as error:
        assert NOT_THERE in str(error)
        model = built(plan, "eager")
    given = inputs(model, plan.reads)
    tree = ModuleTree(model)
    blocks = {stack: block for block, stack in find_blocks(tree, _places(tree)).items()}
    real = {stack: given.get("attention_mask") for stack in blocks}
    if model.config.is_encoder_decoder:
        real["decoder"] = torch.ones_like(given["decoder_input_ids"])
    if plan.reads == "image":
        n = (model.config.image_size // model.config.patch_size) ** 2 + 1
        real = {stack: torch.ones(2, n) for stack in blocks}
    cap = getattr(model.config, "final_logit_softcapping", None)
    return Case(label, model, lambda: model(**given), real, blocks, cap)


def _places(tree: ModuleTree) -> Any:
    return TransformersLayout.of(tree).places


def family_case(family: str, place: str, kind: str) -> Case:
    """A tiny model of ours."""
    torch.manual_seed(3)
    norms = Norms(place=place, kind=kind)  # type: ignore[arg-type]
    sizes = {"vocab_size": 13, "dim": 12, "n_layers": 2, "n_heads": 3, "max_len": 16}
    model = gf.build(gf.Config(family=family, norms=norms, **sizes)).eval()  # type: ignore[arg-type]
    for part in model.parameters():
        part.data.normal_(std=0.4)
    tokens = torch.randint(13, (2, 7))
    return _our_case(_name_family(family, place, kind), model, tokens, tokens[:, :5])


def _name_family(family: str, place: str, kind: str) -> str:
    norm = {"layer": "LayerNorm", "rms": "RMSNorm"}[kind]
    return f"{family.replace('_', '-')}, {place}-norm, {norm}"


def shipped_case(name: str) -> Case:
    """A trained model of ours."""
    model: Any = gf.load(name)
    source = torch.tensor([model.tokenizer.encode("The old man sat down by the sea.")])
    return _our_case(name, model, source, source[:, :6])


def _our_case(name: str, model: nn.Module, source: Tensor, target: Tensor) -> Case:
    stacks = {s: getattr(model, s) for s in ("encoder", "decoder") if hasattr(model, s)}
    given = (source, target) if len(stacks) == 2 else (source,)
    real = dict(zip(stacks, map(torch.ones_like, given), strict=True))
    blocks = {stack: module.blocks[-1] for stack, module in stacks.items()}

    def run() -> Tensor:
        out = model(*given)
        return model.fill(out) if list(stacks) == ["encoder"] else out  # type: ignore[operator]

    return Case(name, model, run, real, blocks)


CASES: dict[str, Callable[[], Case]] = {
    **{label: lambda label=label: listed_case(label) for label in LISTED},
    **{
        _name_family(family, place, kind): lambda a=(family, place, kind): family_case(*a)
        for family in get_args(Family)
        if family != "vision"  # it reads images, and writes no tokens
        for place in get_args(NormPlace)
        for kind in get_args(NormKind)
    },
    **{name: lambda name=name: shipped_case(name) for name in ("reader", "translator", "writer")},
}


def measure(case: Case) -> Iterator[Row]:
    """The sums of every stack, against a run that nothing of ours watches."""
    ends: dict[str, Tensor] = {}
    handles = []
    for stack, block in case.blocks.items():

        def keep(_module: Any, _args: Any, out: Any, stack: str = stack) -> None:
            ends[stack] = (out if isinstance(out, Tensor) else out[0]).clone()

        handles.append(block.register_forward_hook(keep))
    with torch.no_grad():
        out = case.run()
        for handle in handles:
            handle.remove()
        with gf.watch(case.model, residual=True) as trace:
            case.run()
    logits = out if isinstance(out, Tensor) else getattr(out, "logits", None)
    assert trace.run.streams.keys() == case.blocks.keys()
    for name, stream in trace.run.streams.items():
        real = case.real[name].bool()
        terms, residual = 0, 0.0
        for sequence, row in real.nonzero().tolist():
            shares = stream.shares(sequence=sequence, row=row)
            terms = max(terms, len(shares))
            total = torch.stack(list(shares.values())).sum(0)
            residual = max(residual, _compare(total, ends[name][sequence, row]))
        errors, frozen = {}, []
        if stream.readout is not None and logits is not None:
            last = [(i, int(row.nonzero().max())) for i, row in enumerate(real)]
            for by in ("part", "head", "source"):
                found = [_sum_logit(case, trace, name, logits[i, j], by, i, j) for i, j in last]
                errors[by] = max(error for error, _ in found)
                frozen = found[0][1]
        yield Row(case.name, name, terms, residual, errors, "; ".join(frozen))


def _sum_logit(
    case: Case, trace: gf.Trace, stack: str, logits: Tensor, by: Any, sequence: int, row: int
) -> tuple[float, list[str]]:
    """How far the shares of the most probable token's logit are from the logit, over all tokens'
    largest.
    """
    token = int(logits.argmax())
    found = gf.attribute(trace, token, by=by, position=row, stack=stack, sequence=sequence)
    total = torch.tensor(sum(share.value for share in found.shares), dtype=torch.float64)
    if case.cap is not None:  # the score before the cap is split
        total = case.cap * torch.tanh(total / case.cap)
    error = abs(float(total) - float(logits[token])) / float(logits.abs().max())
    return error, found.frozen


def _compare(got: Tensor, expected: Tensor) -> float:
    return float((got - expected.double()).abs().max() / expected.double().abs().max())


COLUMNS = (
    "model",
    "stack",
    "terms",
    "final residual",
    "logit by part",
    "by head",
    "by source",
    "what is frozen",
)
INTRODUCTION = """\
# Sums of contributions, by architecture

Every term that a trace of the residual stream keeps is added up, at every position, and compared
with what the last block returns to a plain hook in an unwatched run (*final residual*). The shares
of a token's logit, split by part, by head, and by head and source token, are added up and compared
with the unwatched model's logit (*logit by …*). Sums are in float64, the models in float32.

A cell is an upper bound of the largest error, relative to the largest value of the residual or of
the logits; the rule is 1e-5. Bounds are at least {margin} times what was measured when the page was
written, because machines round differently.

- *terms*: the start of the stream, each part of each block, and the biases of norms on the way.
- *logit*: of the most probable token at the last position of each sequence. Gemma-2 caps its
  logits: the score before the cap is split, and the sum is compared after the cap.
- *what is frozen*: held at the value that it had in the run, for the logit by source.
- A dash: no token logits follow this stack. ViT reads images; the encoders of translators and of
  their like hand their states to a decoder.

Models of transformers are tiny, of two layers, with random weights of standard deviation 0.3, on a
padded batch of two sequences; so are ours, without padding. The last three rows are the trained
models that glassformer includes, on one sentence.

`python tests/analysis/contribution_sums.py` writes this page; a test measures every row again and
fails where the rule, a bound or a name on this page no longer holds.
"""


def format_row(row: Row) -> list[str]:
    errors = [row.residual, *(row.logits.get(by) for by in ("part", "head", "source"))]
    bounds = [NONE if error is None else find_bound(error) for error in errors]
    return [row.model, row.stack, str(row.terms), *bounds, row.frozen or NONE]


def find_bound(error: float) -> str:
    """The least bound with room for other machines.

    >>> find_bound(1e-7), find_bound(5e-7), find_bound(9e-6)
    ('≤ 1e-6', '≤ 3e-6', '≤ 1e-5')
    """
    assert error <= TOLERANCE, f"an error of {error:.2g} breaks the rule, {TOLERANCE:.0e}"
    return f"≤ {next((b for b in BOUNDS if MARGIN * error <= b), TOLERANCE):.0e}".replace(
        "e-0", "e-"
    )


def read_page() -> dict[str, list[list[str]]]:
    """The rows of each model."""
    found: dict[str, list[list[str]]] = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] != COLUMNS[0]:
            found.setdefault(cells[0], []).append(cells)
    return found


def write_page() -> None:
    lines = [INTRODUCTION.format(margin=MARGIN)]
    lines += [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for make in CASES.values():
        lines += [f"| {' | '.join(format_row(row))} |" for row in measure(make())]
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write_page()
