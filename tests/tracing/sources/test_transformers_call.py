"""Calls of attention in transformers, as steps."""

import torch
from torch import nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from closeness import assert_close
from glassformer.functional import attention
from glassformer.tracing.sources.transformers_call import as_step
from glassformer.tracing.sources.transformers_interface import Call


def test_learned_queries_are_the_same_for_all_sequences() -> None:
    """As a projector of Granite Speech has them: one set of queries, keys of each window."""
    q, k, v = torch.randn(1, 2, 3, 4), torch.randn(5, 2, 7, 4), torch.randn(5, 2, 7, 4)
    module = nn.Identity()
    out = sdpa_attention_forward(module, q, k, v, None, is_causal=False)
    call = Call(module, sdpa_attention_forward, "sdpa", q, k, v, None, {"is_causal": False}, None)
    step, _ = as_step(call, out, stop=3, known={})
    assert step.q.shape == (5, 2, 3, 4)
    assert step.k is not None and step.v is not None
    derived = attention(step.q, step.k, step.v, **step.options())
    assert_close(derived, out[0].transpose(1, 2), 1e-6)
