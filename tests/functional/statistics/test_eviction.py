"""Scores for cache eviction, from fused attention, are those of the weights of eager attention."""

import pytest
import torch

import glassformer as gf
from closeness import assert_close

transformers = pytest.importorskip("transformers")


def test_observed_attention_of_a_llama() -> None:
    """kvpress's ObservedAttentionPress: the mean weight from the queries that see a key."""
    config = transformers.LlamaConfig(
        vocab_size=50,
        hidden_size=48,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        initializer_range=0.3,
        attn_implementation="sdpa",
    )
    model = transformers.LlamaForCausalLM(config).eval()
    tokens = torch.randint(0, 50, (1, 61))
    with torch.no_grad(), gf.watch(model) as trace:
        model(tokens)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        matrices = model(tokens, output_attentions=True).attentions
    for site, weights in zip(trace, matrices, strict=True):
        found = gf.attention_statistics(site.q, site.k, **site.options, observe=9)
        n_queries = torch.arange(61, 0, -1)
        scores = (found.received / n_queries).unflatten(1, (2, 3)).mean(2)
        assert_close(scores, (weights.sum(2) / n_queries).view(1, 2, 3, 61).mean(2), 1e-5)
        assert_close(found.observed, weights[:, :, -9:].sum(2), 1e-5)
