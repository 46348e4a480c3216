"""Claims about heads, blocks and whole models at their start."""

import pytest
import torch
from torch import nn

import glassformer as gf
from glassformer.layers import Block, CrossAttention, FeedForward, SelfAttention, norm_maker

SEEDS = pytest.mark.parametrize("seed", range(3))
SIZES = {"vocab_size": 13, "dim": 12, "n_heads": 3, "hidden_dim": 48, "max_len": 16}


def n_parameters(module):
    return sum(p.numel() for p in module.parameters())


@SEEDS
def test_without_an_output_projection_a_head_writes_into_its_slice_alone(seed):
    torch.manual_seed(seed)
    q, k, v = torch.randn(3, 1, 3, 5, 4).unbind(0)
    changed = v.clone()
    changed[:, 1] += torch.randn(5, 4)
    merged, other = (gf.attention(q, k, each).transpose(1, 2).flatten(2) for each in (v, changed))
    moved = (merged != other).any(1)[0]
    assert moved.tolist() == [False] * 4 + [True] * 4 + [False] * 4
    mix = nn.Linear(12, 12, bias=False)
    assert (mix(merged) != mix(other)).any(1).all()
    network = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 12))
    assert (network(merged) != network(other)).any(1).all()


def test_more_heads_have_no_more_parameters():
    assert len({n_parameters(nn.MultiheadAttention(24, h)) for h in (1, 2, 3, 8)}) == 1
    assert len({n_parameters(SelfAttention(24, h)) for h in (1, 2, 3, 8)}) == 1


@SEEDS
def test_heads_start_out_different(seed):
    torch.manual_seed(seed)
    attend = nn.MultiheadAttention(24, 3, batch_first=True)
    x = torch.randn(1, 6, 24)
    heads = attend(x, x, x, average_attn_weights=False)[1][0]
    mean = heads.mean(0)
    for i in range(3):
        assert not torch.allclose(heads[i], heads[i - 1], atol=1e-2)
        assert not torch.allclose(heads[i], mean, atol=1e-3)


def test_einops_refuses_sizes_that_do_not_fit():
    einops = pytest.importorskip("einops")
    with pytest.raises(einops.EinopsError):
        einops.rearrange(torch.zeros(2, 5, 7), "b l (h d) -> b h l d", h=2)


@SEEDS
def test_keys_viewed_with_another_length_are_scrambled_without_an_error(seed):
    torch.manual_seed(seed)
    L, S, H, D = 5, 10, 3, 4
    context = torch.randn(1, S, H * D)
    right = context.unflatten(-1, (H, D)).transpose(1, 2)
    wrong = context.view(-1, L, H, D).transpose(1, 2)  # twice as many texts, half as long
    q = torch.randn(1, H, L, D)
    assert (q @ right.transpose(-2, -1)).shape == (1, H, L, S)
    assert (q @ wrong.transpose(-2, -1)).shape == (2, H, L, L)


@SEEDS
def test_two_linear_layers_without_a_nonlinearity_are_one(seed):
    torch.manual_seed(seed)
    up, down = nn.Linear(5, 20).double(), nn.Linear(20, 7).double()
    x = torch.randn(11, 5, dtype=torch.float64)
    weight, bias = down.weight @ up.weight, down.weight @ up.bias + down.bias
    assert torch.allclose(down(up(x)), x @ weight.T + bias)
    assert not torch.allclose(down(up(x).relu()), x @ weight.T + bias)


def test_where_the_parameters_of_a_block_are():
    def block(cross):
        return Block(
            attention=SelfAttention(64, 2),
            cross=CrossAttention(64, 2) if cross else None,
            feed_forward=FeedForward(64, 256, activation="relu"),
            make_norm=norm_maker("layer", 64, eps=1e-5),
        )

    for cross in (False, True):
        made = block(cross)
        share = n_parameters(made.feed_forward) / n_parameters(made)
        assert (share > 0.6) is not cross and (share < 0.5) is cross


@SEEDS
def test_layer_norm_reads_one_token_alone(seed):
    torch.manual_seed(seed)
    norm, x = nn.LayerNorm(6), torch.randn(3, 4, 6)
    changed = x.clone()
    changed[1, 2] += 1 + torch.randn(6)
    same = (norm(x) == norm(changed)).all(-1)
    assert same.sum() == 11 and not same[1, 2]
    assert torch.allclose(norm(100 * x), norm(x), atol=1e-2)


@SEEDS
def test_windows_reach_further_with_every_layer(seed):
    for n_layers in (1, 2, 3):
        torch.manual_seed(seed)
        model = gf.build(gf.Config(family="decoder", window=3, n_layers=n_layers, **SIZES)).eval()
        tokens = torch.randint(13, (1, 12))
        changed = tokens.clone()
        changed[0, 2] = (tokens[0, 2] + 1) % 13
        with torch.no_grad():
            moved = (model(tokens) - model(changed)).abs().amax(-1)[0] > 1e-7
        last = 2 + 2 * n_layers
        assert moved.tolist() == [2 <= i <= last for i in range(12)]


@SEEDS
def test_encoder_and_decoder_differ_in_the_mask_alone(seed):
    torch.manual_seed(seed)
    encoder, decoder = (
        gf.build(gf.Config(family=family, n_layers=2, **SIZES)).eval()
        for family in ("encoder", "decoder")
    )
    theirs = {
        name.replace("decoder.", "encoder.", 1): weight
        for name, weight in decoder.state_dict().items()
        if ".blocks." in name
    }
    mine = {n: w.shape for n, w in encoder.state_dict().items() if ".blocks." in n}
    assert mine == {n: w.shape for n, w in theirs.items()} and mine


@SEEDS
def test_after_one_layer_every_position_of_an_encoder_knows_of_the_others(seed):
    torch.manual_seed(seed)
    model = gf.build(gf.Config(family="encoder", n_layers=1, **SIZES)).eval()
    tokens = torch.randint(13, (1, 7))
    for place in range(7):
        changed = tokens.clone()
        changed[0, place] = (tokens[0, place] + 1) % 13
        assert (model(tokens) != model(changed)).any(-1).all()


def test_the_parameters_of_a_gpt_block_by_hand():
    C = 768
    block = gf.build("gpt-2", device="meta").decoder.blocks[0]
    assert n_parameters(block) == 12 * C**2 + 13 * C
    assert sum(p.numel() for p in block.parameters() if p.dim() == 2) == 12 * C**2
    assert sum(p.numel() for p in block.feed_forward.parameters() if p.dim() == 2) == 8 * C**2
