"""The cost of each step: counted by hand for a tiny model."""

from glassformer.models import Config, Positions
from glassformer.models.shape_costs import measure_costs
from glassformer.models.shapes import shapes

B, L, C, H, D, F, V = 2, 5, 6, 3, 2, 7, 11


def test_a_tiny_decoder_counted_by_hand() -> None:
    config = Config(
        family="decoder", vocab_size=V, dim=C, n_layers=1, n_heads=H, max_len=9, hidden_dim=F,
        positions=Positions(kind="alibi"), biases="none",
    )  # fmt: skip
    trace = shapes(config, batch=B, length=L)
    costs = dict(zip([s.operation for s in trace.steps], measure_costs(trace), strict=True))
    assert costs["scores"].flops == costs["attend"].flops == 2 * B * H * L * L * D
    assert costs["scores"].bytes == costs["softmax"].bytes == 0  # never held
    assert costs["attend"].bytes == 2 * B * H * L * D
    assert costs["split"].bytes == 0  # views
    flops = 2 * B * L * (C * 3 * C + C * C + 2 * C * F + C * V) + 4 * B * H * L * L * D
    assert sum(cost.flops for cost in measure_costs(trace)) == flops
    assert costs["linear"].parameters == 0  # the output matrix is the embedding
