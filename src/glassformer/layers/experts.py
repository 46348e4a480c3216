"""A mixture of experts: many feed-forward networks, of which each token uses a few.

    x ─ router ─ top k of N ─┬─ expert 3 ─ · 0.7 ─┐
    [B,L,C]                  └─ expert 5 ─ · 0.3 ─┴─ sum (+ shared) ─ [B,L,C]

Shazeer et al. 2017, in the form of Mixtral (Jiang et al. 2024) and DeepSeekMoE (Dai et al. 2024).
Tokens are sorted by expert, so that each expert is one matrix product over all of its tokens.
Whoever wants to see the routing hooks `router`, which returns all that is known about it.
"""

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.functional.autocast import without_autocast
from glassformer.layers.feed_forward import ACTIVATIONS, Activation, FeedForward

Gate = Literal["softmax", "sigmoid"]
# Over which experts the weights of a token sum to 1. For a softmax, "all" is a softmax before the
# top k, and "chosen" is one after it; a sigmoid over "all" is left as it is.
Normalization = Literal["all", "chosen"]


class Routing(NamedTuple):
    """What a router decides: k of N experts for each token, and how much each of them counts."""

    affinities: Float[Tensor, "... N"]  # the gate's output for every expert
    weights: Float[Tensor, "... k"]
    experts: Int[Tensor, "... k"]


class Router(nn.Module):
    """Choose k of N experts for each token by a linear map and a gate, in float32 or better.

    With `n_groups`, only the experts of the best `n_active_groups` can be chosen: a group counts as
    its best expert under a softmax (DeepSeek-AI 2024, §2.2.2), and as the sum of its best two under
    a sigmoid (DeepSeek-V3, §2.1.2). `selection_bias` is added where experts are ranked, and not to
    their weights.

    >>> _ = torch.manual_seed(0)
    >>> routing = Router(4, n_experts=3, n_active=2)(torch.randn(1, 4))
    >>> routing.experts.shape, float(routing.weights.sum().detach().round(decimals=4))
    (torch.Size([1, 2]), 1.0)
    """

    def __init__(
        self,
        dim: int,
        *,
        n_experts: int,
        n_active: int,
        gate: Gate = "softmax",
        normalization: Normalization = "chosen",
        scale: float = 1.0,
        n_groups: int = 1,
        n_active_groups: int = 1,
        selection_bias: bool = False,
    ) -> None:
        super().__init__()
        check_routing(n_experts, n_active, n_groups, n_active_groups)
        self.n_experts, self.n_active, self.scale = n_experts, n_active, scale
        self.gate, self.normalization = gate, normalization
        self.n_groups, self.n_active_groups = n_groups, n_active_groups
        self.weight = nn.Parameter(torch.empty(n_experts, dim))
        nn.init.normal_(self.weight, std=0.02)  # nearly even at first
        # Not learned by gradients: whoever balances the load moves it (Wang et al. 2024).
        self.selection_bias: Tensor | None
        bias = torch.zeros(n_experts) if selection_bias else None
        self.register_buffer("selection_bias", bias)

    def forward(self, x: Float[Tensor, "... C"]) -> Routing:
        exact = torch.promote_types(x.dtype, torch.float32)
        with without_autocast(x):
            logits = F.linear(x.to(exact), self.weight.to(exact))  # … N
        affinities = logits.softmax(-1) if self.gate == "softmax" else logits.sigmoid()
        bias = self.selection_bias
        ranking = affinities if bias is None else affinities + bias
        if self.n_active_groups < self.n_groups:
            ranking = self._hide_other_groups(ranking)
        experts = ranking.topk(self.n_active, dim=-1).indices  # … k
        weights = affinities.gather(-1, experts)
        if self.normalization == "chosen":
            weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-20)
        return Routing(affinities, weights * self.scale, experts)

    def _hide_other_groups(self, ranking: Float[Tensor, "... N"]) -> Float[Tensor, "... N"]:
        groups = ranking.unflatten(-1, (self.n_groups, -1))  # … G N/G
        n_counted = 1 if self.gate == "softmax" else min(2, groups.shape[-1])
        totals = groups.topk(n_counted, dim=-1).values.sum(-1)  # … G
        best = totals.topk(self.n_active_groups, dim=-1).indices
        is_open = torch.zeros_like(totals, dtype=torch.bool).scatter(-1, best, True)
        return groups.masked_fill(~is_open.unsqueeze(-1), -torch.inf).flatten(-2)

    def extra_repr(self) -> str:
        bias = ", selection_bias" if self.selection_bias is not None else ""
        return f"{self.n_active} of {self.n_experts}, {self.gate} over {self.normalization}{bias}"


class ExpertLinear(nn.Module):
    """A linear layer for each expert: each row is multiplied by the matrix of its own.

    `experts` is the expert of each row, or how many rows each expert has, if rows are sorted.

    >>> layer = ExpertLinear(2, 3, 5)
    >>> layer(torch.zeros(7, 3), [4, 3]).shape
    torch.Size([7, 5])
    """

    def __init__(self, n_experts: int, n_in: int, n_out: int, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_experts, n_out, n_in))
        self.bias = nn.Parameter(torch.empty(n_experts, n_out)) if bias else None
        for parameter in self.parameters():  # as nn.Linear does
            nn.init.uniform_(parameter, -(n_in**-0.5), n_in**-0.5)

    def forward(
        self, x: Float[Tensor, "... n_in"], experts: Int[Tensor, "..."] | list[int]
    ) -> Float[Tensor, "... n_out"]:
        if isinstance(experts, list):
            # Taken apart once: the gradient of weight[i] would be as large as the whole weight.
            biases = [None] * len(experts) if self.bias is None else self.bias.unbind()
            parts = zip(x.split(experts), self.weight.unbind(), biases, experts, strict=True)
            return torch.cat([F.linear(rows, w, b) for rows, w, b, n in parts if n])
        if x.is_meta:  # without numbers, and with shapes that weight[experts] could overflow
            return x.new_empty(*experts.shape, self.weight.shape[1])
        out = (self.weight[experts] @ x.unsqueeze(-1)).squeeze(-1)
        return out if self.bias is None else out + self.bias[experts]

    def extra_repr(self) -> str:
        n_experts, n_out, n_in = self.weight.shape
        return f"{n_experts} × ({n_in}, {n_out}), bias={self.bias is not None}"


class MixtureOfExperts(nn.Module):
    """The weighted sum of the k experts that a router chooses; `shared` ones see every token.

    >>> layer = MixtureOfExperts(6, 11, router=Router(6, n_experts=4, n_active=2), gated=True)
    >>> layer(torch.zeros(2, 3, 6)).shape
    torch.Size([2, 3, 6])
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int,
        *,
        router: Router,
        shared: FeedForward | None = None,
        activation: Activation = "relu",
        gated: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ConfigError(
                f"activation must be one of {', '.join(ACTIVATIONS)}; got {activation!r}."
            )
        self.activation, self.gated, self.dropout = activation, gated, dropout
        self.router = router
        width = (2 if gated else 1) * hidden_dim
        self.expert_up = ExpertLinear(router.n_experts, dim, width, bias=bias)
        self.expert_down = ExpertLinear(router.n_experts, hidden_dim, dim, bias=bias)
        if shared is not None:
            self.shared = shared
        self.has_shared = shared is not None

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... C"]:
        routing = self.router(x)
        if self._is_gathered(x, routing.experts):
            hidden = self._activate(self.expert_up(x.unsqueeze(-2), routing.experts))  # … k F
            y = self.expert_down(hidden, routing.experts)  # … k C
        else:
            y = self._run_sorted(x, routing.experts)
        y = (y * routing.weights.to(y.dtype).unsqueeze(-1)).sum(-2)  # … C
        return y + self.shared(x) if self.has_shared else y

    def _run_sorted(
        self, x: Float[Tensor, "... C"], experts: Int[Tensor, "... k"]
    ) -> Float[Tensor, "... k C"]:
        chosen = experts.flatten()
        order = chosen.argsort(stable=True)
        counts = chosen.bincount(minlength=self.router.n_experts).tolist()
        rows = x.flatten(0, -2)[order // experts.shape[-1]]  # one for each choice, by expert
        rows = self.expert_down(self._activate(self.expert_up(rows, counts)), counts)
        return rows[order.argsort()].unflatten(0, experts.shape)

    def _is_gathered(self, x: Tensor, experts: Tensor) -> bool:
        """Whether to copy the matrices of each row, whose shapes do not depend on the routing.

        Sorting makes the host wait for the GPU and breaks a compiled graph. Where there are no more
        rows than experts, the copies are no larger than the weights.
        """
        is_few = experts.numel() <= self.router.n_experts
        return x.is_meta or (is_few and (x.is_cuda or torch.compiler.is_compiling()))

    def _activate(self, hidden: Float[Tensor, "... n"]) -> Float[Tensor, "... F"]:
        act = ACTIVATIONS[self.activation]
        if self.gated:
            gate, up = hidden.chunk(2, dim=-1)
            hidden = act(gate) * up
        else:
            hidden = act(hidden)
        return F.dropout(hidden, self.dropout, self.training)

    def extra_repr(self) -> str:
        return f"{self.activation}{', gated' if self.gated else ''}"


def check_routing(n_experts: int, n_active: int, n_groups: int, n_active_groups: int) -> None:
    """Reject a choice that no router can make."""
    if not 1 <= n_active <= n_experts:
        raise ConfigError(
            f"n_active must be 1 … n_experts; got n_active={n_active}, n_experts={n_experts}."
        )
    if n_groups < 1 or n_experts % n_groups:
        raise ConfigError(
            f"n_experts must be a multiple of n_groups; got n_experts={n_experts}, "
            f"n_groups={n_groups}."
        )
    if not 1 <= n_active_groups <= n_groups:
        raise ConfigError(
            f"n_active_groups must be 1 … n_groups; got n_active_groups={n_active_groups}, "
            f"n_groups={n_groups}."
        )
    n_open = n_active_groups * (n_experts // n_groups)
    if n_active > n_open:
        raise ConfigError(
            f"n_active must not exceed the {n_open} experts of the active groups; got "
            f"n_active={n_active}."
        )
