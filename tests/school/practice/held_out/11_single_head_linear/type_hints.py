# correct: type hints, an extra method and extra attributes
import torch
from torch import Tensor, nn


class SingleHead(nn.Module):
    """单头自注意力。"""

    def __init__(self, dim: int, head_dim: int) -> None:
        super().__init__()
        self.dim: int = dim
        self.head_dim: int = head_dim
        self.q_proj = nn.Linear(in_features=dim, out_features=head_dim, bias=False)
        self.k_proj = nn.Linear(in_features=dim, out_features=head_dim, bias=False)
        self.v_proj = nn.Linear(in_features=dim, out_features=head_dim, bias=False)
        self.softmax = nn.Softmax(dim=-1)

    def weights(self, x: Tensor) -> Tensor:
        return self.softmax(self.q_proj(x) @ self.k_proj(x).mT / self.head_dim**0.5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        weights: Tensor = self.weights(x)
        return torch.matmul(weights, self.v_proj(x)), weights
