import pytest
import torch
import torch.nn.functional as F

from glassformer.training.loss import IGNORED, count_hits, cross_entropy_sum, disagreement_sum


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.37])
def test_equals_torchs_mean_times_the_count(smoothing):
    logits = torch.randn(3, 7, 11, dtype=torch.float32, requires_grad=True)
    targets = torch.randint(0, 11, (3, 7))
    targets[0, 4:] = targets[2, 1:] = IGNORED
    n = int((targets != IGNORED).sum())
    expected = n * F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), label_smoothing=smoothing
    )
    found = cross_entropy_sum(logits, targets, smoothing=smoothing)
    torch.testing.assert_close(found, expected)


def test_smoothing_by_its_formula():
    logits = torch.randn(2, 3, 5, dtype=torch.float64).float()
    targets = torch.tensor([[0, 4, 2], [1, 1, 3]])
    log_p = logits.double().log_softmax(-1)
    expected = 0.0
    for b in range(2):
        for i in range(3):
            row = log_p[b, i]
            expected -= 0.8 * row[targets[b, i]] + 0.2 / 5 * row.sum()
    found = cross_entropy_sum(logits, targets, smoothing=0.2)
    assert float(found) == pytest.approx(float(expected), rel=1e-5)


def test_ignored_targets_give_nothing():
    logits = torch.randn(1, 4, 6, requires_grad=True)
    targets = torch.tensor([[2, IGNORED, 5, IGNORED]])
    cross_entropy_sum(logits, targets, smoothing=0.1).backward()
    assert logits.grad[0, 1].abs().max() == logits.grad[0, 3].abs().max() == 0
    assert logits.grad[0, 0].abs().min() > 0


def test_half_precision_is_summed_in_full():
    logits = torch.randn(1, 5, 7, dtype=torch.bfloat16)
    targets = torch.randint(0, 7, (1, 5))
    assert cross_entropy_sum(logits, targets).dtype == torch.float32


def test_hits_are_the_likeliest():
    logits = torch.tensor([[[1.0, 2.0], [3.0, 0.0], [0.0, 1.0]]])
    assert int(count_hits(logits, torch.tensor([[1, 1, IGNORED]]))) == 1


def test_disagreement_is_the_mean_of_both_divergences():
    one, two = torch.randn(2, 3, 4, 6).unbind(0)
    targets = torch.randint(0, 6, (3, 4))
    targets[1, 2:] = IGNORED
    kept = targets != IGNORED
    p, q = one.log_softmax(-1)[kept], two.log_softmax(-1)[kept]
    both = [F.kl_div(a, b, reduction="sum", log_target=True) for a, b in ((p, q), (q, p))]
    torch.testing.assert_close(disagreement_sum(one, two, targets), sum(both) / 2)
    torch.testing.assert_close(disagreement_sum(two, one, targets), sum(both) / 2)
