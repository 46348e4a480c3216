import pytest
import torch
from torch import nn
from torch.testing import assert_close

from fromscratch.oracle import EXACT, gradients
from glassformer.fromscratch import LayerNorm, MultiHeadLinear, post_norm, pre_norm

B, L, H, D, F = 2, 5, 3, 7, 13
C = H * D


@pytest.mark.parametrize(("order", "norm_first"), [(post_norm, False), (pre_norm, True)])
def test_a_block_of_our_parts_is_torchs_encoder_layer(order, norm_first):
    torch.manual_seed(0)
    theirs = nn.TransformerEncoderLayer(
        C, H, F, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    attention, norms = MultiHeadLinear(C, H).double(), [LayerNorm(C).double() for _ in range(2)]
    joined = theirs.self_attn
    layers = [attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj]
    with torch.no_grad():
        weights = [*joined.in_proj_weight.chunk(3), joined.out_proj.weight]
        biases = [*joined.in_proj_bias.chunk(3), joined.out_proj.bias]
        for layer, weight, bias in zip(layers, weights, biases, strict=True):
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)

    x = torch.randn(B, L, C, dtype=torch.float64, requires_grad=True)
    y = order(x, lambda x: attention(x)[0], norms[0])
    y = order(y, lambda y: theirs.linear2(theirs.linear1(y).relu()), norms[1])
    expected = theirs(x)
    assert_close(y, expected, **EXACT)
    assert_close(*gradients([y], [x]), *gradients([expected], [x]), **EXACT)
