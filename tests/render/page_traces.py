"""Traces to make pages of."""

from itertools import pairwise

import torch

import glassformer as gf
from glassformer.tracing import Run, Site, Trace, TracedText

WORDS = ["<s>", "我", "␣cat", "עברית", "e\u0301", "x"]


def decoder(n: int, *, layers: int = 2, heads: int = 3, dim: int = 5, words=WORDS) -> Trace:
    sites = {}
    for layer in range(layers):
        q, k, v = (2 * torch.randn(3, 1, heads, n, dim)).unbind(0)
        name = f"decoder.{layer}.self"
        sites[name] = Site(name=name, q=q, k=k, v=v, mask=gf.Causal())
    labels = [[words[i % len(words)] for i in range(n)]]
    model = {"library": "glassformer", "config": {"family": "decoder", "n_layers": layers}}
    return Trace([Run(sites, {"tokens": TracedText(torch.arange(n)[None], labels)})], model)


def row_names(words: list[str]) -> list[str]:
    """What the page writes beside the rows of a decoder: each token read, and the next one."""
    return [
        *(f"\u2068{read}\u2069 → \u2068{after}\u2069" for read, after in pairwise(words)),
        words[-1],
    ]


def translator() -> Trace:
    """Two runs of a batch of two, with attention to another text."""
    runs = []
    for L, S in ((4, 6), (5, 7)):
        q, k, v = torch.randn(2, 2, L, 8), torch.randn(2, 2, S, 8), torch.randn(2, 2, S, 8)
        own = torch.randn(3, 2, 2, L, 8).unbind(0)
        sites = {
            "decoder.0.self": Site(
                name="decoder.0.self", q=own[0], k=own[1], v=own[2], mask=gf.Causal()
            ),
            "decoder.0.cross": Site(
                name="decoder.0.cross", q=q, k=k, v=v, mask=gf.Padding([S, 3]), keys="source"
            ),
        }
        texts = {
            "tokens": TracedText(torch.zeros(2, L, dtype=torch.long), [[*"abcdefg"[:L]]] * 2),
            "source": TracedText(torch.zeros(2, S, dtype=torch.long), [[*"tuvwxyz"[:S]]] * 2),
        }
        runs.append(Run(sites, texts))
    return Trace(runs)
