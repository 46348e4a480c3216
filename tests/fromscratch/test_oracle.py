import math

import torch
from torch.testing import assert_close

from fromscratch.oracle import attention_by_loops, gradients, merge, split


def test_loops_give_the_numbers_one_gets_on_paper():
    q = torch.tensor([[[[2.0, 0.0, 0.0, 0.0]]]])
    k = torch.tensor([[[[math.log(3), 0.0, 0.0, 0.0], [0.0, 9.0, 9.0, 9.0]]]])
    v = torch.tensor([[[[4.0], [8.0]]]])
    out, weights = attention_by_loops(q, k, v)  # scores ln 3 and 0: three parts to one
    assert_close(weights, torch.tensor([[[[0.75, 0.25]]]], dtype=torch.float64))
    assert_close(out, torch.tensor([[[[5.0]]]], dtype=torch.float64))


def test_loops_leave_hidden_keys_out_and_empty_rows_at_zero():
    q, k, v = torch.rand(1, 1, 2, 3), torch.rand(1, 1, 2, 3), torch.rand(1, 1, 2, 5)
    mask = torch.tensor([[False, True], [False, False]])
    out, weights = attention_by_loops(q, k, v, mask)
    assert weights.tolist() == [[[[0.0, 1.0], [0.0, 0.0]]]]
    assert_close(out[0, 0, 0], v[0, 0, 1].double())
    assert not out[0, 0, 1].any()


def test_split_and_merge_undo_each_other_and_cut_in_order():
    x = torch.arange(2 * 5 * 6).view(2, 5, 6)
    assert split(x, 3)[1, 2, 4].tolist() == x[1, 4, 4:6].tolist()
    assert torch.equal(merge(split(x, 3)), x)


def test_the_cotangent_sees_through_rows_that_sum_to_one():
    scores = torch.rand(3, 5, requires_grad=True)
    (found,) = gradients([scores.softmax(-1)], [scores])
    assert found.abs().max() > 1e-3
