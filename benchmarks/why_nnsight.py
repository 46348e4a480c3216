"""nnsight's side: the modules of transformers themselves, attention eager.

nnsight gives and sets what goes into and out of a module; the formulas on top are written here:
heads are slices of what the output matrix reads, and the final norm is frozen for attribution.
"""

from itertools import groupby
from typing import Any

import torch
from nnsight import NNsight
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from why_models import Case
from why_quantities import (
    HEAD_DIFFERENCES,
    HEAD_SHARES,
    HEADS,
    INDUCTION,
    LENS,
    LENS_BETWEEN,
    LOGITS,
    PART_SHARES,
    PATTERNS,
    Quantities,
    logit_difference,
    logit_differences,
    patch_cells,
    score_stripe,
)

# Where each family keeps its blocks, its final norm, a block's attention, and its output matrix.
PLACES = {
    "gpt2": ("transformer.h", "transformer.ln_f", "attn", "attn.c_proj"),
    "gpt_neox": ("gpt_neox.layers", "gpt_neox.final_layer_norm", "attention", "attention.dense"),
    "opt": (
        "model.decoder.layers",
        "model.decoder.final_layer_norm",
        "self_attn",
        "self_attn.out_proj",
    ),
}
USUAL = ("model.layers", "model.norm", "self_attn", "self_attn.o_proj")


class Nnsight:
    """A model of transformers under nnsight."""

    def __init__(self, case: Case) -> None:
        model: Any = AutoModelForCausalLM.from_pretrained(case.folder, attn_implementation="eager")
        self.plain = model.eval()
        self.model: Any = NNsight(self.plain)
        self.kind = model.config.model_type
        blocks, norm, attention, matrix = PLACES.get(self.kind, USUAL)
        self.blocks = _follow(self.model, blocks)
        self.attention = [_follow(block, attention) for block in self.blocks]
        self.matrices = [_follow(block, matrix) for block in self.blocks]
        self.norm = _follow(self.model, norm)
        self.plain_norm = self.plain.get_submodule(norm)
        self.head_matrix = self.plain.get_output_embeddings()
        self.is_parallel = bool(getattr(model.config, "use_parallel_residual", False))
        self.n_heads: int = model.config.num_attention_heads

    @torch.no_grad()
    def read(self, case: Case) -> Quantities:
        starts, inputs, written, ends, patterns = [], [], [], [], []
        with self.model.trace(input_ids=case.tokens, use_cache=False, output_attentions=True):
            for i in range(len(self.blocks)):
                starts.append(self.blocks[i].input.save())
                inputs.append(self.matrices[i].input.save())
                written.append(self.matrices[i].output.save())
                patterns.append(self.attention[i].output[1].save())
                ends.append(_first(self.blocks[i].output).save())
            logits = self.model.output.logits.save()
        between = [x + y for x, y in zip(starts, written, strict=True)]
        heads = torch.stack([self._split(i, x) for i, x in enumerate(inputs)])
        mlps = [z - y - x for x, y, z in zip(starts, written, ends, strict=True)]
        parts = [starts[0], *(x for pair in zip(written, mlps, strict=True) for x in pair)]
        found = {
            LOGITS: logits,
            LENS: torch.stack([self._read_out(x) for x in (starts[0], *ends)]),
            PATTERNS: torch.stack(patterns),
            HEADS: heads,
            INDUCTION: score_stripe(self._read_patterns(case.repeated)),
            **self._attribute(case, heads, torch.stack(parts), ends[-1]),
        }
        if not self.is_parallel:
            found[LENS_BETWEEN] = torch.stack([self._read_out(x) for x in between])
        return found

    def _read_out(self, x: Tensor) -> Tensor:
        return self.head_matrix(self.plain_norm(x))

    def _read_patterns(self, tokens: Tensor) -> Tensor:
        patterns = []
        with self.model.trace(input_ids=tokens, use_cache=False, output_attentions=True):
            for attention in self.attention:
                patterns.append(attention.output[1].save())
        return torch.stack(patterns)

    def _split(self, layer: int, x: Tensor) -> Tensor:
        """What each head adds to the stream: (B, L, H, C)."""
        weight = self.matrices[layer]._module.weight  # C HE, but for the Conv1D of GPT-2
        weight = weight if self.kind == "gpt2" else weight.mT  # HE C
        H = self.n_heads
        return torch.einsum(
            "blhe,hec->blhc", x.unflatten(-1, (H, -1)), weight.unflatten(0, (H, -1))
        )

    def _attribute(self, case: Case, heads: Tensor, parts: Tensor, end: Tensor) -> Quantities:
        heads, parts = heads[:, 0, case.rows], parts[:, 0, case.rows]
        end = end[0, case.rows]
        matrix = self.head_matrix.weight
        targets, others = matrix[case.targets[case.rows]], matrix[case.others[case.rows]]
        shares = self._freeze(heads, end[:, None])  # N R H C
        return {
            PART_SHARES: torch.einsum("prc,rc->rp", self._freeze(parts, end), targets),
            HEAD_SHARES: torch.einsum("nrhc,rc->rnh", shares, targets),
            HEAD_DIFFERENCES: torch.einsum("nrhc,rc->rnh", shares, targets - others),
        }

    def _freeze(self, part: Tensor, x: Tensor) -> Tensor:
        """The final norm of a part of x, divided by the size of x, without the norm's own bias."""
        norm: Any = self.plain_norm
        if isinstance(norm, nn.LayerNorm):
            size = (x.var(-1, keepdim=True, unbiased=False) + norm.eps).sqrt()
            return (part - part.mean(-1, keepdim=True)) / size * norm.weight
        eps = norm.eps if self.kind == "gemma" else norm.variance_epsilon
        gain = norm.weight + 1 if self.kind == "gemma" else norm.weight
        return part / (x.square().mean(-1, keepdim=True) + eps).sqrt() * gain

    @torch.no_grad()
    def ablate(self, case: Case, layer: int, head: int, how: str) -> Tensor:
        H = self.n_heads
        with self.model.trace(input_ids=case.tokens, use_cache=False):
            z = self.matrices[layer].input.unflatten(-1, (H, -1)).clone()
            z[:, :, head] = 0.0 if how == "zero" else z[:, :, head].mean((0, 1))
            self.matrices[layer].input = z.flatten(-2)
            logits = self.model.output.logits.save()
        return logits.detach()

    @torch.no_grad()
    def ablate_side_by_side(self, case: Case, layer: int, how: str) -> Tensor:
        H = self.n_heads
        with self.model.trace(input_ids=case.tokens.expand(H, -1), use_cache=False):
            z = self.matrices[layer].input.unflatten(-1, (H, -1)).clone()
            for head in range(H):
                z[head, :, head] = 0.0 if how == "zero" else z[head, :, head].mean(0)
            self.matrices[layer].input = z.flatten(-2)
            logits = self.model.output.logits.save()
        return logits.detach()[:, -1]

    @torch.no_grad()
    def patch(self, case: Case) -> Tensor:
        clean = []
        with self.model.trace(input_ids=case.clean, use_cache=False):
            for matrix in self.matrices:
                clean.append(matrix.input.save())
        cells = patch_cells(case, self.n_heads)
        if case.is_large:
            layers = [list(each) for _, each in groupby(cells, key=lambda cell: cell[0])]
            return torch.cat([self._patch_side_by_side(case, clean, some) for some in layers])
        return torch.stack([self._patch(case, clean, *cell) for cell in cells])

    def _patch_side_by_side(
        self, case: Case, clean: list[Tensor], cells: list[tuple[int, int, int]]
    ) -> Tensor:
        """The cells of a layer in one run."""
        H, layer = self.n_heads, cells[0][0]
        values = clean[layer].unflatten(-1, (H, -1))
        with self.model.trace(input_ids=case.corrupted.expand(len(cells), -1), use_cache=False):
            z = self.matrices[layer].input.unflatten(-1, (H, -1)).clone()
            for i, (_, position, head) in enumerate(cells):
                z[i, position, head] = values[0, position, head]
            self.matrices[layer].input = z.flatten(-2)
            logits = self.model.output.logits.save()
        return logit_differences(case, logits)

    def _patch(
        self, case: Case, clean: list[Tensor], layer: int, position: int, head: int
    ) -> Tensor:
        H = self.n_heads
        with self.model.trace(input_ids=case.corrupted, use_cache=False):
            z = self.matrices[layer].input.unflatten(-1, (H, -1)).clone()
            z[:, position, head] = clean[layer].unflatten(-1, (H, -1))[:, position, head]
            self.matrices[layer].input = z.flatten(-2)
            logits = self.model.output.logits.save()
        return logit_difference(case, logits)


def _follow(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _first(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output
