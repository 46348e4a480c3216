"""A mixture of experts against transformers' Mixtral block with the same weights.

    python benchmarks/experts.py [--device cuda] [--dtype bfloat16] [--repeats 20]

Prefill, one decode step and a training pass of one layer. Before anything is timed, both outputs
are compared with the definition in float64: every expert for every token, most weights 0.
transformers runs its grouped product, which it prefers, and its plain loop over experts.
"""

import argparse
import sys

import torch
from torch import Tensor
from transformers import MixtralConfig
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

from glassformer.layers import MixtureOfExperts, Router
from measure import compare

C, F, N, K = 256, 512, 8, 2
CASES = {"prefill": (1, 256), "decode": (1, 1), "decode, batch 8": (8, 1)}


def make_pair(
    device: str, dtype: torch.dtype, implementation: str
) -> tuple[MixtureOfExperts, MixtralSparseMoeBlock]:
    """Our layer and theirs, with the same weights."""
    torch.manual_seed(0)
    config = MixtralConfig(
        hidden_size=C, intermediate_size=F, num_local_experts=N, num_experts_per_tok=K
    )
    config._experts_implementation = implementation
    theirs = MixtralSparseMoeBlock(config).to(device, dtype)
    router = Router(C, n_experts=N, n_active=K)
    ours = MixtureOfExperts(C, F, router=router, activation="silu", gated=True, bias=False)
    ours = ours.to(device, dtype)
    with torch.no_grad():
        for matrix in (theirs.experts.gate_up_proj, theirs.experts.down_proj):
            matrix.normal_(std=0.03)
        theirs.gate.weight.normal_(std=0.2)
        ours.router.weight.copy_(theirs.gate.weight)
        ours.expert_up.weight.copy_(theirs.experts.gate_up_proj)
        ours.expert_down.weight.copy_(theirs.experts.down_proj)
    return ours, theirs


def define(layer: MixtureOfExperts, x: Tensor) -> Tensor:
    """The definition in float64."""
    x = x.double()
    logits = x @ layer.router.weight.double().T
    lowest = logits.topk(K, dim=-1).values[..., -1:]
    weights = logits.masked_fill(logits < lowest, -torch.inf).softmax(-1)
    gate, up = torch.einsum("blc,nfc->blnf", x, layer.expert_up.weight.double()).chunk(2, dim=-1)
    hidden = torch.nn.functional.silu(gate) * up
    y = torch.einsum("blnf,ncf->blnc", hidden, layer.expert_down.weight.double())
    return (weights[..., None] * y).sum(-2)


def main() -> int:
    """Check, then time; a breach ends with 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    device, dtype = options.device, getattr(torch, options.dtype)
    for implementation in ("grouped_mm", "eager"):
        ours, theirs = make_pair(device, dtype, implementation)
        for name, (B, L) in CASES.items():
            x = torch.randn(B, L, C, device=device, dtype=dtype)
            with torch.no_grad():
                expected = define(ours, x)
                errors = [float((m(x).double() - expected).abs().max()) for m in (ours, theirs)]
            if errors[0] > 2 * errors[1] + 1e-6:
                print(f"{name}: ours errs by {errors[0]:.2e}, transformers by {errors[1]:.2e}")
                return 1

            def run(model: torch.nn.Module, x: Tensor = x) -> None:
                with torch.no_grad():
                    model(x)

            def learn(model: torch.nn.Module, x: Tensor = x) -> None:
                model.zero_grad()
                model(x).square().mean().backward()

            works = {name: run} | ({"training": learn} if L > 1 else {})
            for what, work in works.items():
                found = compare(
                    lambda w=work, m=ours: w(m),
                    lambda w=work, m=theirs: w(m),
                    device,
                    repeats=options.repeats,
                )
                print(
                    f"{implementation:<11} {what:<16} ours {found.ours * 1e3:8.2f} ms  theirs "
                    f"{found.theirs * 1e3:8.2f} ms  ratio {found.ratio:.2f} "
                    f"(theirs to itself {found.noise:.2f})"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
