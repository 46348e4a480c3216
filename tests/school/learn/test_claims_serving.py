"""What the chapters on serving and fine-tuning say beyond their snippets."""

import pytest
import torch
from torch import nn

import glassformer as gf
from glassformer.functional.quantized import dequantize_rows, quantize_rows
from glassformer.generation import LookupDraft, read_source
from glassformer.languages import Language
from glassformer.layers.lora import LoRALinear
from glassformer.models.description import describe
from glassformer.school.lab.experiments.speculative import accept_probability, replacement
from glassformer.school.learn.batching import LENGTHS, batch_continuously, batch_statically
from glassformer.school.learn.pictures import draw
from glassformer.school.learn.preferences import REFERENCE, REWARDS

ENGLISH = Language("en")


@pytest.mark.parametrize("seed", range(3))
def test_accepting_and_replacing_gives_the_target_whatever_the_draft(seed):
    torch.manual_seed(seed)
    p, q = (3 * torch.randn(2, 50, 7, dtype=torch.float64)).softmax(-1)
    accepted = q * accept_probability(p, q)
    assert torch.allclose(accepted.sum(-1), torch.minimum(p, q).sum(-1))
    drawn = accepted + (1 - accepted.sum(-1, keepdim=True)) * replacement(p, q)
    assert torch.allclose(drawn, p)


def test_expected_tokens_of_a_pass_when_acceptances_are_independent():
    torch.manual_seed(0)
    alpha, drafted = 0.7, 4
    accepted = (torch.rand(100_000, drafted) < alpha).cumprod(1).sum(1) + 1.0
    predicted = (1 - alpha ** (drafted + 1)) / (1 - alpha)
    assert accepted.mean().item() == pytest.approx(predicted, abs=0.03)


def test_sampled_text_leaves_less_to_look_up_than_greedy_text():
    writer = gf.load("writer")
    for start in ("The captain", "She looked at", "In the morning"):
        shares = []
        for temperature in (0.0, 1.0):
            draft = LookupDraft()
            options = {"temperature": temperature, "seed": 1, "draft": draft}
            gf.generate(writer, start, max_new_tokens=100, **options)
            shares.append(draft.n_held / (draft.n_held + draft.n_passes))
        assert shares[0] > 0.5 and shares[1] < 0.1


def test_arithmetic_on_a_cache_of_8000_tokens_is_less_than_on_the_weights():
    llama = describe("llama-3.1-8b")
    assert 8000 * llama.attention_flops_per_key < llama.flops_per_token / 2


def test_an_error_of_int8_is_at_most_half_a_step_and_an_outlier_widens_its_own_row_alone():
    torch.manual_seed(0)
    weight = torch.randn(5, 33)
    numbers, scale = quantize_rows(weight)
    error = (dequantize_rows(numbers, scale) - weight).abs()
    assert (error <= scale[:, None] / 2 + 1e-6).all()
    weight[2, 4] = 100.0
    assert (quantize_rows(weight)[1] != scale).tolist() == [False, False, True, False, False]


def test_an_error_of_fp8_is_at_most_a_sixteenth_of_the_number_and_outliers_leave_others_alone():
    torch.manual_seed(0)
    weight = torch.randn(5, 33)

    def small_errors(kind):
        numbers, scale = quantize_rows(weight, kind)
        error = (dequantize_rows(numbers, scale) - weight).abs()
        is_normal = weight.abs() >= scale[:, None] * 2.0**-6
        return error, error[is_normal] / weight[is_normal].abs()

    assert small_errors("fp8")[1].max() <= 1 / 16 + 1e-6
    assert small_errors("int8")[0].mean() < small_errors("fp8")[0].mean()
    weight[:, 4] = 100.0
    assert small_errors("fp8")[1].max() <= 1 / 16 + 1e-6
    assert small_errors("int8")[0].mean() > 5 * small_errors("fp8")[0].mean()


def test_the_more_lengths_differ_the_more_continuous_batching_saves():
    def saved(lengths):
        static, continuous = (
            max(free for _, _, free in batch(lengths, 3))
            for batch in (batch_statically, batch_continuously)
        )
        return static - continuous

    assert saved([5] * 9) == 0 < saved(LENGTHS) < saved([2, 18, 2, 2, 18, 2, 2, 18, 2])


def test_the_picture_of_batching_shows_who_generates_and_who_holds_a_slot():
    for _, both in draw("batching", ENGLISH).pictures:
        static, continuous = (each.values for each in both.pictures)
        for values in (static, continuous):
            assert [(row == 1).sum().item() for row in values] == list(LENGTHS)
        assert ((static > 0) & (static < 1)).any() and continuous.unique().tolist() == [0, 1]
        assert continuous.shape[1] < static.shape[1]


def test_rows_of_a_batch_do_not_see_each_other():
    torch.manual_seed(0)
    config = gf.Config(family="decoder", vocab_size=11, dim=16, n_layers=2, n_heads=2, max_len=9)
    model, tokens = gf.build(config).double().eval(), torch.randint(11, (3, 7))
    other = tokens.clone()
    other[1:] = (other[1:] + 1) % 11
    with torch.no_grad():
        assert torch.allclose(model(tokens)[0], model(other)[0], atol=1e-12)


def test_a_small_beta_follows_the_reward_and_a_large_one_the_reference():
    policies = [
        [share for _, share, _ in row.pictures[1].bars]
        for _, row in draw("preferences", ENGLISH).pictures
    ]
    best = REWARDS.index(max(REWARDS))
    assert policies[0][best] > 0.99
    assert policies[-1] == pytest.approx(REFERENCE, abs=0.05)


def test_the_zero_matrix_of_an_adapter_moves_first():
    torch.manual_seed(0)
    layer = LoRALinear(nn.Linear(6, 5), rank=2, alpha=4.0)
    layer(torch.randn(3, 6)).square().sum().backward()
    assert not layer.lora_a.grad.any() and layer.lora_b.grad.any()


def test_without_its_adapter_a_model_is_the_old_one():
    from glassformer.models.lora import remove_lora

    writer = gf.load("writer")
    before = {name: tensor.clone() for name, tensor in writer.state_dict().items()}
    model = gf.add_lora(writer, rank=2)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1)
    after = remove_lora(model).state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_third_of_the_weights_of_a_step_give_logits_and_a_shortlist_changes_some_translations():
    model = gf.load("translator")
    matrices = {
        name: part.numel()
        for name, part in model.named_parameters()
        if part.ndim == 2 and name.startswith("decoder.") and ".cross.kv." not in name
    }
    head = model.config.vocab_size * model.config.dim  # tied to the embedding
    assert len(matrices) == 6 * model.config.n_decoder_layers
    assert f"{head / (head + sum(matrices.values())):.0%}" == "36%"
    texts = ["The cat sat on the mat.", "Tom walked in."]
    usual = gf.translate(model, texts, to="fr")
    found = gf.translate(model, texts, to="fr", shortlist=True)
    assert usual[0] == found[0] and usual[1] != found[1]
    for text in usual:
        needed = model.tokenizer.encode(text, add_special=False)
        source = read_source(model, texts[usual.index(text)], "fr", shortlist=True)
        assert bool(source.forbidden[needed].any()) == (text != usual[0])
