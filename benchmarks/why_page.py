"""The page of the comparison: a table for each peer, who is right, and further families."""

from typing import NamedTuple

from why_models import FAMILIES, FURTHER, LOADED, SMOLLM2
from why_quantities import (
    DETECTOR,
    HEAD_DIFFERENCES,
    HEAD_SHARES,
    HEADS,
    HEADS_BEFORE,
    INDUCTION,
    LENS,
    LENS_BETWEEN,
    LOGITS,
    MEAN,
    PART_SHARES,
    PATCHED,
    PATTERNS,
    REMAINDER,
    ZERO,
)

OURS, TRANSFORMER_LENS, NNSIGHT, BY_HAND = "glassformer", "TransformerLens", "nnsight", "float64"
CRITERION = 1e-4
QUANTITIES = (
    LOGITS,
    LENS,
    LENS_BETWEEN,
    PATTERNS,
    HEADS,
    PART_SHARES,
    HEAD_SHARES,
    HEAD_DIFFERENCES,
    INDUCTION,
    DETECTOR,
    ZERO,
    MEAN,
    PATCHED,
)
MODELS = (*FAMILIES, SMOLLM2, LOADED)
SHORT = {
    LOGITS: "logits",
    LENS: "lens",
    PATTERNS: "patterns",
    HEADS: "heads",
    HEADS_BEFORE: "heads, before a norm",
    PART_SHARES: "parts",
    HEAD_SHARES: "head shares",
    ZERO: "zero",
    MEAN: "mean",
    PATCHED: "patching",
    REMAINDER: "their remainder",
}
NORM_BETWEEN = "a norm lies between the heads and the stream"
NOT_FOLDED = "the gain of the final norm is left out"
NO_POSITIONS = "positions are left out"
WHY = {
    "EXAONE-4": (NORM_BETWEEN, NOT_FOLDED),
    "Gemma-2": (NORM_BETWEEN,),
    "Gemma-3": (NORM_BETWEEN,),
    "GLM": (NOT_FOLDED,),
    "GLM-4": (NORM_BETWEEN, NOT_FOLDED),
    "Nemotron": (NOT_FOLDED,),
    "OLMo-2": (NORM_BETWEEN, NOT_FOLDED),
    "OLMo-3": (NORM_BETWEEN, NOT_FOLDED),
    "XGLM": (NO_POSITIONS,),
}


class Record(NamedTuple):
    """One quantity of one model in two tools."""

    model: str
    tool: str
    peer: str
    quantity: str
    difference: float  # the largest
    largest: float  # the largest value


HEAD = """# Lenses, attribution and interventions, held against TransformerLens and nnsight

The same weights and the same tokens in three tools, in float32: ours on fused attention, theirs on
eager attention. A cell is the largest absolute difference over all layers, heads, positions and
tokens. Where it exceeds 1e-4 it is bold, and the difference relative to the largest value follows
in brackets. A dash means that one of the two tools does not have the quantity.

Written by `python benchmarks/why_peers.py --results why.jsonl`, whose first lines say how the peers
are installed; with transformer-lens {transformer-lens}, nnsight {nnsight}, transformers
{transformers} and torch {torch}, on one core.

## What was compared

Eight families of transformers, tiny, two layers, random weights of standard deviation 0.3, three
sequences of 11 tokens; and SmolLM2-135M-Instruct, unpacked from a 4-bit GGUF file to float32, one
text of 21 tokens. Ours is `gf.watch` on the model of transformers; for SmolLM2 also our own model,
`gf.load` of the same folder.

- **Logits**, and the **logit lens** before the first block, after every block, and between
  attention and MLP where a block has such a border. Ours: the borders of `trace.residual()` and its
  readout. TransformerLens: `cache.logit_lens`. nnsight: inputs and outputs of blocks through the
  model's final norm and unembedding.
- **Attention patterns**: `site.weights`; `hook_pattern`; the weights that eager attention returns.
- **Outputs of heads**, what each head adds to the stream: derived from q, k, v and a slice of the
  output matrix; `cache.stack_head_results`; slices of what the output matrix reads.
- **Direct logit attribution** of the most probable token, and of its difference to the second, at
  every position (SmolLM2: the last four), by part and by head, with the final norm frozen:
  `gf.attribute`; `cache.logit_attrs`; for nnsight the formula, written out.
- **Induction scores** on random tokens, repeated once: the mean weight on the token after the
  earlier copy, and the score of TransformerLens' `head_detector`, a share of all attention. The
  induction score of `gf.roles` is another one: without the first token, and beyond chance.
- **Ablation** of one head at all positions, for every head of every layer: its output before the
  output matrix becomes zero, or its mean over sequences and positions. `gf.change` with
  `gf.Ablate`; a hook on `hook_z`; the output matrix' input is set. All logits are compared.
  SmolLM2: all 30 × 9 heads, those of a layer side by side in one run, ours by the passes of
  `gf.sweep`; the logits of the last position.
- **Activation patching** of every head at every position, from the first at which two texts differ:
  `gf.change` with `gf.Patch`; `generic_activation_patch` on `z`; the output matrix' input is set.
  The logit difference of the clean text's two most probable tokens, at the end, is compared.
  SmolLM2: every head of every layer at every position of two texts of 9 tokens that differ in the
  first, 30 × 9 × 9 = 2,430 patches; ours by `gf.sweep`, theirs by the same hooks, many sequences in
  one run.

TransformerLens' weights are not processed, with one exception: for attribution its norms are folded
(`fold_ln`), because `logit_attrs` leaves out the gain of the final norm otherwise. Nothing is
centred. Its components for tokens and positions are added up and compared with our start of the
stream.
"""
RIGHT = """## Who is right

Two float32 results may differ by the rounding of both. The judge is SmolLM2 written out in float64
(`benchmarks/why_float64.py`); a cell is the largest difference from it. Logits reach {logits:.0f}
and the lens {lens:.0f}: every tool rounds by about 1e-4.
"""
MORE = """## Further families, against TransformerLens

{n} more families, tiny, as above; a column is a quantity. *Their remainder* is what the shares of
all parts and of the bias miss the logit by in TransformerLens. Ours add up in every family;
`gf.attribute` refuses shares that do not. Where transformers has no fused attention, as for Gemma-2
and BLOOM, ours is eager too.
"""
REASONS = f"""Where the two differ, they measure different things, or theirs do not add up:

- *{NORM_BETWEEN}*: `hook_result` is what a head gives before that norm, and there we agree. Ours is
  what arrives after it, with the norm frozen, so that heads add up to what attention adds.
- *{NOT_FOLDED}*: TransformerLens does not fold the norms of these families, and warns.
  `logit_attrs` then measures along the bare unembedding.
- *{NO_POSITIONS}*: sinusoidal positions are part of the stream, but not among the components of
  `decompose_resid`.

## Not compared

- BioGPT, Helium, Ministral and Persimmon: TransformerLens has no adapter for them.
- DeepSeek-V3: `stack_head_results` fails on its latent attention.
- BitNet: a norm lies between the heads and the matrix; `gf.attribute` refuses to split its heads.
- ModernBERT's decoder: two matrices lie between stream and scores; `gf.attribute` refuses.
- Families in which not every layer has attention.
"""


def write_page(records: list[Record], versions: dict[str, str]) -> str:
    """The whole page; the same records give the same page."""
    parts = [HEAD.format(**versions)]
    for peer in (TRANSFORMER_LENS, NNSIGHT):
        found = {(r.quantity, r.model): r for r in records if (r.tool, r.peer) == (OURS, peer)}
        parts.append(f"## Against {peer}\n")
        parts.append(_table(["", *MODELS]) + _rows(found, QUANTITIES, MODELS))
    parts += [_judge(records), _further(records), REASONS]
    return "\n".join(parts)


def format_difference(record: Record | None) -> str:
    """A cell: bold, with the relative difference, beyond the criterion."""
    if record is None:
        return "–"
    if record.difference <= CRITERION:
        return _number(record.difference)
    return f"**{_number(record.difference)}** ({_number(record.difference / record.largest)})"


def _judge(records: list[Record]) -> str:
    tools = {
        (SMOLLM2, OURS): "glassformer, `gf.watch`",
        (LOADED, OURS): "glassformer, `gf.load`",
        (SMOLLM2, TRANSFORMER_LENS): TRANSFORMER_LENS,
        (SMOLLM2, NNSIGHT): NNSIGHT,
    }
    by_hand = [r for r in records if r.peer == BY_HAND]
    found = {(r.quantity, tools[r.model, r.tool]): r for r in by_hand}
    largest = {r.quantity: r.largest for r in by_hand}
    text = RIGHT.format(logits=largest[LOGITS], lens=largest[LENS])
    names = list(tools.values())
    return f"{text}\n{_table(['', *names])}{_rows(found, list(largest), names)}"


def _further(records: list[Record]) -> str:
    found = {(r.model, r.quantity): r for r in records if r.peer == TRANSFORMER_LENS}
    lines = []
    for model in FURTHER:
        cells = [format_difference(found.get((model, quantity))) for quantity in SHORT]
        remainder = found[model, REMAINDER].difference  # has nothing to be relative to
        cells[-1] = _number(remainder) if remainder <= CRITERION else f"**{_number(remainder)}**"
        lines.append(f"| {model} | {' | '.join(cells)} | {'; '.join(WHY.get(model, ()))} |\n")
    table = _table(["", *SHORT.values(), "why"]) + "".join(lines)
    return f"{MORE.format(n=len(FURTHER))}\n{table}"


def _rows(
    found: dict[tuple[str, str], Record], names: tuple[str, ...] | list[str], columns: object
) -> str:
    lines = []
    for name in names:
        cells = [format_difference(found.get((name, column))) for column in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |\n")
    return "".join(lines)


def _number(value: float) -> str:
    """0.00012 as 1.2e-4."""
    if value == 0:
        return "0"
    digits, exponent = f"{value:.1e}".split("e")
    return digits if int(exponent) == 0 else f"{digits}e{int(exponent)}"


def _table(columns: list[str]) -> str:
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
