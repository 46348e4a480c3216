"""TransformerLens' side: a bridge booted from the same folder, attention eager.

Weights are not processed, except for attribution: `logit_attrs` leaves out the gain of the final
norm, so it is asked of a second bridge into which norms are folded. Nothing is centred.
"""

from functools import partial
from itertools import groupby
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from transformer_lens.head_detector import (
    compute_head_attention_similarity_score,
    get_induction_head_detection_pattern,
)
from transformer_lens.model_bridge import TransformerBridge
from transformer_lens.patching import generic_activation_patch, layer_pos_head_vector_patch_setter

from why_models import Case
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
    PART_SHARES,
    PATTERNS,
    REMAINDER,
    Quantities,
    logit_difference,
    logit_differences,
    patch_cells,
    score_stripe,
)

MID = "blocks.0.hook_resid_mid"  # absent where attention and MLP run in parallel


class TransformerLens:
    """Two bridges: `plain`, and `folded` for attribution."""

    def __init__(self, case: Case) -> None:
        self.plain, self.folded = (_boot(case) for _ in range(2))
        self.folded.enable_compatibility_mode(
            disable_warnings=True,
            fold_ln=True,
            center_writing_weights=False,
            center_unembed=False,
            fold_value_biases=False,
        )
        self.n_heads: int = self.plain.cfg.n_heads

    @torch.no_grad()
    def read(self, case: Case) -> Quantities:
        logits, cache = self.plain.run_with_cache(case.tokens)
        N, H = self.plain.cfg.n_layers, self.n_heads
        has_middle = MID in cache.cache_dict
        lens = cache.logit_lens(incl_mid=has_middle, positions=None).values
        heads = cache.stack_head_results().unflatten(0, (N, H)).permute(0, 2, 3, 1, 4)
        found = {
            LOGITS: logits,
            LENS: lens[::2] if has_middle else lens,
            PATTERNS: _patterns(cache, N),
            HEADS: heads,
            HEADS_BEFORE: heads,
            **self._attribute(case),
        }
        if has_middle:
            found[LENS_BETWEEN] = lens[1::2]
        _, repeated = self.plain.run_with_cache(case.repeated)
        patterns = _patterns(repeated, N)
        found[INDUCTION] = score_stripe(patterns)
        found[DETECTOR] = torch.tensor(
            [[_detect(p, case.repeated) for p in x[0]] for x in patterns]
        )
        return found

    def _attribute(self, case: Case) -> Quantities:
        _, cache = self.folded.run_with_cache(case.tokens)
        targets, others = case.targets[None], case.others[None]
        parts, labels = cache.decompose_resid(return_labels=True)
        n_embeddings = labels.index("0_attn_out")
        parts = torch.cat([parts[:n_embeddings].sum(0, keepdim=True), parts[n_embeddings:]])
        heads = cache.stack_head_results()

        def attribute(stack: Tensor, *tokens: Tensor) -> Tensor:
            return cache.logit_attrs(stack, *tokens)[:, 0, case.rows].mT  # rows, stack

        shares = attribute(parts, targets)
        end = cache["resid_post", self.folded.cfg.n_layers - 1][:1, case.rows]
        logits = self.folded.unembed(self.folded.ln_final(end))[0]  # before a cap
        tokens = case.targets[case.rows]
        bias = self.folded.b_U[tokens]
        logit = logits.gather(-1, tokens[:, None])[:, 0]
        shape = (self.folded.cfg.n_layers, self.n_heads)
        return {
            PART_SHARES: shares,
            REMAINDER: logit - shares.sum(-1) - bias,
            HEAD_SHARES: attribute(heads, targets).unflatten(1, shape),
            HEAD_DIFFERENCES: attribute(heads, targets, others).unflatten(1, shape),
        }

    @torch.no_grad()
    def ablate(self, case: Case, layer: int, head: int, how: str) -> Tensor:
        def replace(z: Tensor, hook: Any) -> Tensor:
            del hook
            z = z.clone()
            z[:, :, head] = 0.0 if how == "zero" else z[:, :, head].mean((0, 1))
            return z

        hooks = [(f"blocks.{layer}.attn.hook_z", replace)]
        return self.plain.run_with_hooks(case.tokens, fwd_hooks=hooks)

    @torch.no_grad()
    def ablate_side_by_side(self, case: Case, layer: int, how: str) -> Tensor:
        def replace(z: Tensor, hook: Any) -> Tensor:
            del hook
            z = z.clone()
            for head in range(self.n_heads):
                z[head, :, head] = 0.0 if how == "zero" else z[head, :, head].mean(0)
            return z

        hooks = [(f"blocks.{layer}.attn.hook_z", replace)]
        tokens = case.tokens.expand(self.n_heads, -1)
        return self.plain.run_with_hooks(tokens, fwd_hooks=hooks)[:, -1]

    def _patch_side_by_side(self, case: Case, clean: Any) -> Tensor:
        """The cells of a layer in one run; `generic_activation_patch` makes a run of each."""
        found = []
        for layer, group in groupby(patch_cells(case, self.n_heads), key=lambda cell: cell[0]):
            name, cells = f"blocks.{layer}.attn.hook_z", list(group)

            def replace(z: Tensor, hook: Any, name: str = name, cells: list = cells) -> Tensor:
                del hook
                z = z.clone()
                for i, (_, position, head) in enumerate(cells):
                    z[i, position, head] = clean[name][0, position, head]
                return z

            tokens = case.corrupted.expand(len(cells), -1)
            logits = self.plain.run_with_hooks(tokens, fwd_hooks=[(name, replace)])
            found.append(logit_differences(case, logits))
        return torch.cat(found)

    @torch.no_grad()
    def patch(self, case: Case) -> Tensor:
        _, clean = self.plain.run_with_cache(case.clean)
        if case.is_large:
            return self._patch_side_by_side(case, clean)
        cells = pd.DataFrame(patch_cells(case, self.n_heads), columns=["layer", "pos", "head"])
        return generic_activation_patch(
            self.plain,
            case.corrupted,
            clean,
            partial(logit_difference, case),
            layer_pos_head_vector_patch_setter,
            "z",
            index_df=cells,
        )


def _boot(case: Case) -> Any:
    return TransformerBridge.boot_transformers(str(case.folder), device="cpu").eval()


def _patterns(cache: Any, n_layers: int) -> Tensor:
    return torch.stack([cache["pattern", layer] for layer in range(n_layers)])


def _detect(pattern: Tensor, tokens: Tensor) -> float:
    return compute_head_attention_similarity_score(
        pattern,
        get_induction_head_detection_pattern(tokens),
        exclude_bos=False,
        exclude_current_token=False,
        error_measure="mul",
    )
