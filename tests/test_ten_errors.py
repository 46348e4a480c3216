"""Ten errors that circulate in teaching material on attention: each is made to happen, and beside
it stands what glassformer does."""

import builtins
import dis
import importlib
import math
import pkgutil
import types
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import glassformer as gf
from glassformer import fromscratch

B, H, L, S, D = 2, 3, 5, 7, 11
C = H * D


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def operands(length=L, dtype=torch.float64):
    shapes = [(B, H, length, D), (B, H, S, D), (B, H, S, D)]
    return [torch.randn(shape, dtype=dtype) for shape in shapes]


def test_torchs_module_averages_its_weights_over_the_heads_unless_told_otherwise():
    """The weights that torch's multi-head module returns by default are not those of its heads."""
    module = nn.MultiheadAttention(C, H, batch_first=True, dtype=torch.float64)
    x = torch.randn(B, L, C, dtype=torch.float64)
    averaged = module(x, x, x)[1]
    per_head = module(x, x, x, average_attn_weights=False)[1]
    assert averaged.shape == (B, L, L)
    assert per_head.shape == (B, H, L, L)
    assert_close(averaged, per_head.mean(dim=1))
    for h in range(H):
        assert (per_head[:, h] - averaged).abs().max() > 0.01


def test_our_weights_are_those_of_every_head():
    """Ours come head by head, and each row of each head sums to one."""
    q, k, _ = operands()
    forms = [
        gf.attention_weights(q, k),
        fromscratch.MultiHeadLinear(C, H)(torch.rand(B, L, C), torch.rand(B, S, C))[1].double(),
    ]
    for weights in forms:
        assert weights.shape == (B, H, L, S)
        assert_close(weights.sum(dim=-1), torch.ones(B, H, L).double(), rtol=0, atol=1e-6)


def test_a_linear_layer_starts_kaiming_uniform_and_not_xavier():
    """nn.Linear is said to start with Xavier's distribution; it starts narrower, with Kaiming's."""
    fan_in, fan_out = 130, 70
    torch.manual_seed(1)
    weight = nn.Linear(fan_in, fan_out).weight
    torch.manual_seed(1)
    kaiming = nn.init.kaiming_uniform_(torch.empty(fan_out, fan_in), a=math.sqrt(5))
    torch.manual_seed(1)
    xavier = nn.init.xavier_uniform_(torch.empty(fan_out, fan_in))
    assert torch.equal(weight, kaiming)
    assert weight.abs().max() <= 1 / math.sqrt(fan_in) < xavier.abs().max()


def test_our_parameters_start_as_their_file_says():
    """Where we write Xavier it is Xavier; in a linear layer it is the layer's own."""
    torch.manual_seed(1)
    parameters = fromscratch.SingleHeadParameters(130, 70)
    torch.manual_seed(1)
    assert torch.equal(parameters.q_weight, nn.init.xavier_uniform_(torch.empty(130, 70)))
    torch.manual_seed(1)
    linear = fromscratch.SingleHeadLinear(130, 70)
    torch.manual_seed(1)
    kaiming = nn.init.kaiming_uniform_(torch.empty(70, 130), a=math.sqrt(5))
    assert torch.equal(linear.q_proj.weight, kaiming)


def test_floor_division_of_scores_is_silently_wrong():
    """Dividing the scores with // rounds them down to whole numbers, and nothing complains."""
    scores = torch.tensor([12.5, 30.8, 25.1])
    floored = scores // math.sqrt(64)
    assert floored.tolist() == [1.0, 3.0, 3.0]
    # a clear second place becomes a tie with the first
    weights = floored.softmax(dim=-1)
    assert weights[1] == weights[2]
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        (scores.requires_grad_() // math.sqrt(64)).sum().backward()


def test_our_scores_are_divided_and_not_rounded():
    """The same scores divided by 8 give 1.5625, 3.85 and 3.1375, here and in the library."""
    expected = torch.tensor([1.5625, 3.85, 3.1375], dtype=torch.float64).softmax(dim=-1)
    # A query of one number in the first place, so that the dot products are the scores themselves.
    q = torch.zeros(1, 64, dtype=torch.float64)
    k = torch.zeros(3, 64, dtype=torch.float64)
    q[0, 0] = 1
    k[:, 0] = torch.tensor([12.5, 30.8, 25.1], dtype=torch.float64)
    assert_close(fromscratch.attention(q, k, k)[1][0], expected)
    assert_close(gf.attention_weights(q[None, None], k[None, None])[0, 0, 0], expected)
    assert expected[1] > expected[2]


def test_keys_viewed_with_the_length_of_the_queries_break_cross_attention():
    """Reshaping keys with the queries' length works until the two sequences differ in length."""
    x, context = torch.rand(B, L, C), torch.rand(B, S, C)
    assert x.view(B, L, H, D).shape == (B, L, H, D)
    with pytest.raises(RuntimeError, match="is invalid for input of size"):
        context.view(B, L, H, D)


@pytest.mark.parametrize("length", [3, 7, 13])
def test_our_queries_and_keys_may_differ_in_length(length):
    """Cross-attention is right for fewer queries than keys, as many, and more."""
    q, k, v = operands(length)
    weights = (torch.einsum("bhld,bhsd->bhls", q, k) / math.sqrt(D)).softmax(dim=-1)
    expected = torch.einsum("bhls,bhsd->bhld", weights, v)
    assert_close(gf.attention(q, k, v), expected)
    assert_close(fromscratch.attention(q, k, v)[0], expected)
    x, context = torch.rand(B, length, C), torch.rand(B, S, C)
    for module in (fromscratch.MultiHeadLinear(C, H), fromscratch.MultiHeadEinsum(C, H)):
        out, found = module(x, context)
        assert out.shape == (B, length, C)
        assert found.shape == (B, H, length, S)


def test_minus_infinity_on_a_whole_row_makes_nan_forwards_and_backwards():
    """Softmax of nothing but −∞ is 0/0, and the NaN reaches every parameter behind it."""
    scores = torch.randn(2, 3, requires_grad=True)
    bias = torch.tensor([[0.0, 0.0, 0.0], [-math.inf, -math.inf, -math.inf]])
    weights = (scores + bias).softmax(dim=-1)
    assert weights[1].isnan().all()
    weights.nan_to_num().square().sum().backward()  # mending the output does not mend this
    assert scores.grad[1].isnan().all()


def test_minus_a_billion_does_not_exist_in_float16():
    """The usual large negative number is beyond what float16 can hold: filling with it raises."""
    scores, hidden = torch.zeros(3, dtype=torch.float16), torch.tensor([False, True, True])
    with pytest.raises(RuntimeError, match="without overflow"):
        scores.masked_fill(hidden, -1e9)
    assert torch.finfo(torch.float16).min == -65504


def test_minus_a_billion_is_a_score_like_any_other():
    """A row hidden throughout with −1e9 attends evenly to all that should be hidden."""
    weights = torch.zeros(4).masked_fill(torch.ones(4, dtype=torch.bool), -1e9).softmax(dim=-1)
    assert weights.tolist() == [0.25, 0.25, 0.25, 0.25]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_our_empty_rows_are_zero_with_zero_gradient_in_every_dtype(dtype):
    """With nothing allowed, nothing is taken: zeros forwards and zeros backwards."""
    q, k, v = (x.requires_grad_() for x in operands(dtype=dtype))
    mask = torch.ones(L, S, dtype=torch.bool)
    mask[2] = False
    out, weights = gf.attention(q, k, v, mask=mask), gf.attention_weights(q, k, mask=mask)
    assert not out[:, :, 2].any()
    assert not weights[:, :, 2].any()
    (out.sum() + weights.square().sum()).backward()
    assert not q.grad[:, :, 2].any()
    for x in (q, k, v):
        assert x.grad.isfinite().all()
        assert x.grad.any()

    module = fromscratch.MaskedSingleHead(C, D).to(dtype)
    x = torch.randn(B, L, C, dtype=dtype)
    square = torch.ones(L, L, dtype=torch.bool)
    square[2] = False
    out, weights = module(x, square)
    assert not out[:, 2].any()
    assert not weights[:, 2].any()
    out.square().sum().backward()
    for parameter in module.parameters():
        assert parameter.grad.isfinite().all()
        assert parameter.grad.any()


def test_filling_where_the_mask_is_zero_hides_the_zeros_whatever_the_comment_says():
    """Marked with ones what is to be hidden, and filled where the mask is zero: all is reversed."""
    scores = torch.tensor([1.0, 2.0, 3.0])
    to_hide = torch.tensor([0, 0, 1])
    weights = scores.masked_fill(to_hide == 0, -math.inf).softmax(dim=-1)
    assert weights.tolist() == [0.0, 0.0, 1.0]  # the one key that should be hidden gets everything


def test_our_masks_are_true_where_a_query_may_attend_and_foreign_ones_are_turned_over():
    """One convention everywhere; numbers are refused, and torch's opposite has a converter."""
    q, k, _ = operands()
    may = torch.arange(S) < 4
    mask = may.expand(L, S)
    weights = gf.attention_weights(q, k, mask=mask)
    assert torch.equal(weights > 0, mask.expand(B, H, L, S))

    foreign = gf.from_torch_mha(key_padding_mask=~may.expand(B, S))
    assert torch.equal(gf.attention_weights(q, k, mask=foreign), weights)

    x, context = torch.rand(B, L, C), torch.rand(B, S, C)
    found = fromscratch.MultiHeadLinear(C, H)(x, context, mask=mask)[1]
    assert torch.equal(found > 0, mask.expand(B, H, L, S))


@pytest.mark.plain
def test_our_masks_refuse_numbers_whose_meaning_would_be_a_guess():
    """A mask of zeros and ones does not say which of them hides: it is an error."""
    numbers = torch.ones(L, S)
    with pytest.raises(TypeError, match=r"mask must be bool .True = may attend."):
        gf.attention(*operands(), mask=numbers)
    with pytest.raises(ValueError, match=r"mask must be boolean.*got torch\.float32"):
        fromscratch.MultiHeadLinear(C, H)(torch.rand(B, L, C), torch.rand(B, S, C), mask=numbers)


def test_a_variable_called_weights_may_hold_the_output():
    """Two results unpacked in the wrong order run without complaint when the shapes allow it."""
    q, k, _ = operands()
    weights, out = fromscratch.attention(q, k, torch.rand(B, H, S, S).double())
    assert weights.shape == out.shape  # nothing gives the swap away …
    assert (weights.sum(dim=-1) - 1).abs().max() > 0.1  # … but these rows are no weights


@pytest.mark.parametrize(
    ("line", "missing"),
    [("scores / math.sqrt(2)", "math"), ("F.softmax(scores, dim=-1)", "F")],
)
def test_a_name_used_without_its_import_fails_when_it_runs(line, missing):
    """A snippet that lacks an import is defined without error, and fails at its first call."""
    names: dict[str, object] = {}
    exec(f"def attend(scores):\n    return {line}", names)
    with pytest.raises(NameError, match=f"name '{missing}' is not defined"):
        names["attend"](torch.rand(3))


def test_our_forms_return_the_output_first_and_weights_that_are_weights():
    """Rows of what we call weights sum to one, and make the output from the values."""
    q, k, v = operands()
    out, weights = fromscratch.attention(q, k, v)
    assert_close(weights.sum(dim=-1), torch.ones(B, H, L).double())
    assert_close(weights @ v, out)
    assert_close(gf.attention_weights(q, k) @ v, gf.attention(q, k, v))


def global_names(code: types.CodeType):
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from global_names(constant)


@pytest.mark.parametrize("file", [m.name for m in pkgutil.iter_modules(fromscratch.__path__)])
def test_our_plain_forms_import_every_name_they_use(file):
    """Each file can be run by itself: no name in it depends on what another one imported."""
    module = importlib.import_module(f"glassformer.fromscratch.{file}")
    code = compile(Path(module.__file__).read_text(encoding="utf-8"), file, "exec")
    used = set(global_names(code)) - {"__name__"}  # the body of a class reads its module's name
    assert used
    missing = {name for name in used if not (hasattr(module, name) or hasattr(builtins, name))}
    assert not missing


def test_one_seed_gives_other_numbers_when_layers_are_made_in_another_order():
    """A seed fixes the stream of draws and not who takes them: printed matrices rarely return."""
    x = torch.rand(1, 3, 4)

    def printed(order):
        torch.manual_seed(42)
        layers = {name: nn.Linear(4, 4, bias=False) for name in order}
        q, k = layers["q"](x), layers["k"](x)
        return (q @ k.transpose(1, 2) / math.sqrt(4)).softmax(dim=-1)

    assert torch.equal(printed("qkv"), printed("qkv"))
    assert (printed("qkv") - printed("vqk")).abs().max() > 1e-3


def test_our_worked_numbers_depend_on_no_seed():
    """What we print is computed from operands that are printed beside it."""
    scores = torch.tensor([[10.0, 8.0, 5.0], [9.0, 12.0, 11.0], [4.0, 7.0, 9.0]])
    printed = torch.tensor([[1.0, 0.0, 0.0], [0.0474, 0.9526, 0.0], [0.0059, 0.1185, 0.8756]])
    # Keys that are the identity and queries that are the scores: then q kᵀ is the scores again.
    q, k = scores[None, None] * math.sqrt(3), torch.eye(3)[None, None]
    for seed in (0, 1):
        torch.manual_seed(seed)
        assert_close(fromscratch.causal_weights(scores), printed, rtol=0, atol=5e-5)
        ours = gf.attention_weights(q, k, mask=gf.Causal())
        assert_close(ours[0, 0], printed, rtol=0, atol=5e-5)


def test_the_nearest_key_is_not_the_key_with_the_largest_dot_product():
    """Attention is explained with Euclidean distance, which can rank the keys the other way."""
    q = torch.tensor([[1.0, 0.0]])
    k = torch.tensor([[1.0, 0.0], [3.0, 3.0]])  # the query itself; one that is far off, and long
    assert torch.cdist(q, k).argmin() == 0
    assert (q @ k.T).argmax() == 1


def test_our_weights_follow_the_dot_product():
    """The far, long key wins; for keys of one length the two measures agree."""
    q = torch.tensor([[1.0, 0.0]])
    k = torch.tensor([[1.0, 0.0], [3.0, 3.0]])
    assert fromscratch.attention(q, k, k)[1].argmax() == 1
    assert gf.attention_weights(q[None, None], k[None, None]).argmax() == 1
    unit = nn.functional.normalize(torch.randn(S, D), dim=-1)
    weights = gf.attention_weights(unit[None, None, :1], unit[None, None])[0, 0, 0]
    assert torch.equal(weights.argsort(descending=True), torch.cdist(unit[:1], unit)[0].argsort())


def test_a_residual_taken_after_the_norm_forgets_its_input():
    """Adding the normalised input instead of the input loses its scale: the shortcut is gone."""
    norm = nn.LayerNorm(C, eps=0.0, elementwise_affine=False)

    def wrong(x, sublayer):
        normalised = norm(x)
        return normalised + sublayer(normalised)

    x = torch.randn(B, L, C)
    assert_close(wrong(x, torch.zeros_like), wrong(7 * x, torch.zeros_like))
    assert (wrong(x, torch.zeros_like) - x).abs().max() > 0.01


def test_our_residual_carries_the_input_itself():
    """A sublayer that adds nothing leaves x as it is; torch's own blocks are the witness."""
    x = torch.randn(B, L, C, dtype=torch.float64)
    norm = fromscratch.LayerNorm(C).double()
    assert torch.equal(fromscratch.pre_norm(x, torch.zeros_like, norm), x)
    for order, norm_first in [(fromscratch.pre_norm, True), (fromscratch.post_norm, False)]:
        torch_layer = nn.TransformerEncoderLayer(
            C, H, 13, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
        )
        module = torch_layer.self_attn
        y = order(x, lambda x, module=module: module(x, x, x)[0], norm)
        y = order(y, lambda y, t=torch_layer: t.linear2(t.linear1(y).relu()), norm)
        assert_close(y, torch_layer(x))


def decode(target, source, *, causal):
    """One decoder layer: masked self-attention, then attention over the encoder's output."""
    torch.manual_seed(3)
    encoder, own, cross = (fromscratch.MultiHeadLinear(C, H).double() for _ in range(3))
    context = encoder(source)[0]
    x = target + own(target, mask=causal)[0]
    return x + cross(x, context)[0]


def test_encoder_and_decoder_fed_the_same_tokens_let_the_future_through():
    """The decoder's causal mask is in vain when the encoder has read the sentence to be written."""
    tokens = torch.randn(1, L, C, dtype=torch.float64)
    changed = tokens.clone()
    changed[:, -1] += 1
    causal = fromscratch.look_ahead_mask(L)
    before, after = decode(tokens, tokens, causal=causal), decode(changed, changed, causal=causal)
    assert (before[:, :-1] - after[:, :-1]).abs().amax(dim=-1).min() > 1e-4  # everywhere


def test_our_decoder_cannot_see_what_it_has_yet_to_write():
    """With a source of its own, no earlier place changes when a later token does."""
    source = torch.randn(1, S, C, dtype=torch.float64)
    tokens = torch.randn(1, L, C, dtype=torch.float64)
    changed = tokens.clone()
    changed[:, -1] += 1
    causal = fromscratch.look_ahead_mask(L)
    before, after = decode(tokens, source, causal=causal), decode(changed, source, causal=causal)
    assert torch.equal(before[:, :-1], after[:, :-1])
    assert not torch.equal(before[:, -1], after[:, -1])

    q, k, v = (torch.randn(B, H, L, D, dtype=torch.float64) for _ in range(3))
    other_k, other_v = k.clone(), v.clone()
    other_k[:, :, -1] += 1
    other_v[:, :, -1] += 1
    before = gf.attention(q, k, v, mask=gf.Causal())
    after = gf.attention(q, other_k, other_v, mask=gf.Causal())
    assert torch.equal(before[:, :, :-1], after[:, :, :-1])
    assert not torch.equal(before[:, :, -1], after[:, :, -1])


def test_a_layer_norm_with_the_unbiased_variance_is_not_layer_norm():
    """Tensor.std divides by C − 1, so a norm built on it is too small by √((C − 1) / C)."""
    x = torch.randn(B, L, 5, dtype=torch.float64)
    wrong = (x - x.mean(dim=-1, keepdim=True)) / x.std(dim=-1, keepdim=True)
    right = nn.functional.layer_norm(x, (5,), eps=0.0)
    assert_close(wrong, right * math.sqrt(4 / 5))
    assert (wrong - right).abs().max() > 0.05


def test_our_layer_norm_divides_by_the_width():
    """Ours is torch's, number by number."""
    x = torch.randn(B, L, 5, dtype=torch.float64)
    assert_close(fromscratch.LayerNorm(5).double()(x), nn.functional.layer_norm(x, (5,)))


def test_without_a_padding_mask_the_filling_changes_the_answer():
    """A sentence gives one result alone and another when a longer neighbour makes it padded."""
    module = fromscratch.MultiHeadLinear(C, H)
    sentence = torch.randn(1, 3, C)
    padded = torch.cat([sentence, torch.zeros(1, 2, C)], dim=1)
    alone, filled = module(sentence)[0], module(padded)[0]
    assert (alone - filled[:, :3]).abs().max() > 1e-3


def test_with_our_padding_masks_it_does_not():
    """The padding is hidden from every query: the sentence gives the same in any company."""
    module = fromscratch.MultiHeadLinear(C, H).double()
    sentence = torch.randn(1, 3, C, dtype=torch.float64)
    padded = torch.cat([sentence, torch.full((1, 2, C), 9.0).double()], dim=1)
    lengths = torch.tensor([3])
    mask = fromscratch.padding_mask(lengths, 5)[:, None]
    assert_close(module(padded, mask=mask)[0][:, :3], module(sentence)[0])

    q, k, v = (torch.randn(1, H, 5, D, dtype=torch.float64) for _ in range(3))
    whole = gf.attention(q, k, v, mask=gf.Padding(lengths))
    assert_close(whole, gf.attention(q, k[:, :, :3], v[:, :, :3]))
