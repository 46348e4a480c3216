import doctest
import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from glassformer.errors import ConfigError, ShapeError
from glassformer.models import recurrent as module
from glassformer.models.parameters import count_parameters
from glassformer.models.recurrent import (
    AdditiveAttention,
    AdditiveCore,
    LSTMLanguageModel,
    LSTMSeq2Seq,
    additive_weights,
)

SOURCE_V, V, C, N, S, L = 17, 13, 5, 2, 7, 11
LENGTHS = torch.tensor([3, 7, 1])
B = len(LENGTHS)
both = pytest.mark.parametrize("attention", [False, True], ids=["plain", "attention"])
ties = pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])


def close(actual, expected):
    torch.testing.assert_close(actual, expected, atol=1e-10, rtol=0)


def language_model(**settings):
    return LSTMLanguageModel(V, C, N, **settings).double()


def seq2seq(**settings):
    return LSTMSeq2Seq(SOURCE_V, V, C, N, **settings).double()


def some_tokens(vocab_size, *shape):
    return torch.randint(vocab_size, shape)


def test_doctests():
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


# ── language model ──


@ties
def test_token_by_token_is_the_whole(tied):
    model, tokens = language_model(tied=tied), some_tokens(V, B, L)
    whole, last = model(tokens)
    assert whole.shape == (B, L, V)
    state, steps = None, []
    for t in range(L):
        logits, state = model(tokens[:, t : t + 1], state)
        steps.append(logits)
    close(torch.cat(steps, dim=1), whole)
    for part, expected in zip(state, last, strict=True):
        close(part, expected)


def test_pieces_are_the_whole():
    model, tokens = language_model(), some_tokens(V, B, L)
    state, pieces = None, []
    for start, end in pairwise([0, 4, 5, L]):
        logits, state = model(tokens[:, start:end], state)
        pieces.append(logits)
    close(torch.cat(pieces, dim=1), model(tokens)[0])


def test_batch_is_one_by_one():
    model, tokens = language_model(), some_tokens(V, B, L)
    close(torch.cat([model(row[None])[0] for row in tokens]), model(tokens)[0])


@pytest.mark.parametrize("place", range(L))
def test_the_future_cannot_change_the_past(place):
    model, tokens = language_model(), some_tokens(V, B, L)
    changed = tokens.clone()
    changed[:, place] = (changed[:, place] + 1) % V
    before, after = model(tokens)[0], model(changed)[0]
    assert torch.equal(before[:, :place], after[:, :place])
    assert (before[:, place:] != after[:, place:]).any(dim=-1).all()


def test_tied_logits_are_the_embedding_times_the_state():
    model, tokens = language_model(), some_tokens(V, B, L)
    logits, (hidden, _) = model(tokens)
    close(logits[:, -1], hidden[-1] @ model.embedding.weight.T)


def test_forget_gates_start_open():
    model = LSTMSeq2Seq(SOURCE_V, V, C, N)
    for lstm in (model.encoder, model.decoder):
        biases = [p for name, p in lstm.named_parameters() if name.startswith("bias_ih")]
        assert len(biases) == N * (1 + lstm.bidirectional)
        for bias in biases:
            assert (bias[C : 2 * C] == 1).all()
            assert (bias[:C] != 1).all()


def test_dropout_acts_in_training_alone():
    model, tokens = language_model(dropout=0.5), some_tokens(V, B, L)
    assert not torch.equal(model(tokens)[0], model(tokens)[0])
    model.eval()
    assert torch.equal(model(tokens)[0], model(tokens)[0])


# ── sequence to sequence ──


def pair():
    return some_tokens(SOURCE_V, B, S), some_tokens(V, B, L)


@both
@ties
def test_decoding_token_by_token_is_the_whole(attention, tied):
    model, (source, target) = seq2seq(attention=attention, tied=tied), pair()
    whole = model(source, LENGTHS, target)
    assert whole.shape == (B, L, V)
    memory, state, steps = model.encode(source, LENGTHS), None, []
    for t in range(L):
        logits, state = model.decode(target[:, t : t + 1], memory, state)
        steps.append(logits)
    close(torch.cat(steps, dim=1), whole)


@both
def test_padding_cannot_change_the_answer(attention):
    model, (source, target) = seq2seq(attention=attention), pair()
    expected = model(source, LENGTHS, target)
    padding = torch.arange(S) >= LENGTHS[:, None]
    for shift in (1, 5, 11):
        perturbed = torch.where(padding, (source + shift) % SOURCE_V, source)
        assert torch.equal(model(perturbed, LENGTHS, target), expected)
    wider = torch.cat((source, some_tokens(SOURCE_V, B, 4)), dim=1)
    close(model(wider, LENGTHS, target), expected)


@both
def test_every_source_token_matters(attention):
    model, (source, target) = seq2seq(attention=attention), pair()
    expected = model(source, LENGTHS, target)
    for row, length in enumerate(LENGTHS):
        for place in range(length):
            perturbed = source.clone()
            perturbed[row, place] = (source[row, place] + 1) % SOURCE_V
            changed = (model(perturbed, LENGTHS, target) != expected).flatten(1).any(dim=1)
            assert changed.nonzero().flatten().tolist() == [row]


@both
def test_batch_is_one_by_one_without_padding(attention):
    model, (source, target) = seq2seq(attention=attention), pair()
    alone = [
        model(source[i : i + 1, :n], LENGTHS[i : i + 1], target[i : i + 1])
        for i, n in enumerate(LENGTHS)
    ]
    close(torch.cat(alone), model(source, LENGTHS, target))


@both
@pytest.mark.parametrize("place", [0, 4, L - 1])
def test_the_targets_future_cannot_change_its_past(attention, place):
    model, (source, target) = seq2seq(attention=attention), pair()
    changed = target.clone()
    changed[:, place] = (changed[:, place] + 1) % V
    before, after = model(source, LENGTHS, target), model(source, LENGTHS, changed)
    assert torch.equal(before[:, :place], after[:, :place])
    assert (before[:, place:] != after[:, place:]).any(dim=-1).all()


# ── attention ──


def test_weights_sum_to_one_over_the_source_and_are_zero_on_padding():
    model, (source, target) = seq2seq(attention=True), pair()
    weights = model.attend_weights(target, model.encode(source, LENGTHS))
    assert weights.shape == (B, L, S)
    for row, length in enumerate(LENGTHS):
        close(weights[row, :, :length].sum(dim=-1), torch.ones(L, dtype=torch.float64))
        assert (weights[row, :, :length] > 0).all()
        assert (weights[row, :, length:] == 0).all()


def test_weights_of_a_step_are_a_row_of_the_whole():
    model, (source, target) = seq2seq(attention=True), pair()
    memory = model.encode(source, LENGTHS)
    _, state = model.decode(target[:, :4], memory)
    step = model.attend_weights(target[:, 4:5], memory, state)
    close(step, model.attend_weights(target, memory)[:, 4:5])


def test_core_has_no_parameters_and_sees_what_the_weights_are_made_of():
    model, (source, target) = seq2seq(attention=True), pair()
    core, calls = model.attention.core, []
    assert count_parameters(core) == 0
    hook = core.register_forward_hook(
        lambda _, args, options, out: calls.append((args, options, out)), with_kwargs=True
    )
    watched = model(source, LENGTHS, target)
    hook.remove()
    assert torch.equal(watched, model(source, LENGTHS, target))
    [((q, k, v), options, out)] = calls
    weights = additive_weights(q, k, **options)
    assert torch.equal(weights, model.attend_weights(target, model.encode(source, LENGTHS)))
    close(out, weights @ v)


def test_core_is_a_loop_over_positions():
    q, k = torch.randn(2, 3, 5).double(), torch.randn(2, 7, 5).double()
    v, vector = torch.randn(2, 7, 4).double(), torch.randn(5).double()
    mask = torch.arange(7) < torch.tensor([[4], [7]])
    out = AdditiveCore()(q, k, v, mask=mask, score_weight=vector)
    for b in range(2):
        for i in range(3):
            keys = [s for s in range(7) if mask[b, s]]
            scores = [
                sum(vector[d].item() * math.tanh(q[b, i, d] + k[b, s, d]) for d in range(5))
                for s in keys
            ]
            total = sum(math.exp(score) for score in scores)
            for e in range(4):
                expected = sum(
                    math.exp(score) / total * v[b, s, e].item()
                    for s, score in zip(keys, scores, strict=True)
                )
                assert out[b, i, e].item() == pytest.approx(expected, abs=1e-12)


def test_a_row_with_nothing_allowed_takes_nothing():
    q = torch.randn(2, 3, 5).double().requires_grad_()
    k = torch.randn(2, 7, 5).double().requires_grad_()
    vector = torch.randn(5).double().requires_grad_()
    mask = torch.tensor([[False] * 7, [True] * 7])
    out = AdditiveCore()(q, k, k, mask=mask, score_weight=vector)
    assert (out[0] == 0).all()
    out.square().sum().backward()
    for x in (q, k):
        assert (x.grad[0] == 0).all()
        assert (x.grad[1] != 0).any()
    assert vector.grad.isfinite().all()


def test_low_precision_keeps_its_dtype():
    attend = AdditiveAttention(C, 4).bfloat16()
    hidden, context = torch.randn(B, L, C).bfloat16(), torch.randn(B, S, 4).bfloat16()
    mask = torch.ones(B, S, dtype=torch.bool)
    assert attend(hidden, context, mask=mask).dtype == torch.bfloat16
    assert attend.weights(hidden, context, mask=mask).dtype == torch.float32


# ── learning ──


def assert_gradients_everywhere(model, logits):
    logits.square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert (parameter.grad != 0).any(), name


@ties
def test_gradients_reach_every_parameter_of_the_language_model(tied):
    model = language_model(tied=tied)
    assert_gradients_everywhere(model, model(some_tokens(V, B, L))[0])


@both
@ties
def test_gradients_reach_every_parameter_of_seq2seq(attention, tied):
    model = seq2seq(attention=attention, tied=tied)
    source, target = pair()
    assert_gradients_everywhere(model, model(source, LENGTHS, target))


@pytest.fixture
def one_thread():
    """Threads cost more than they bring at these sizes, and far more on a busy machine."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def fall(model, batch, steps):
    """The loss at the first and at the last step; `batch` gives logits and what they should say."""
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=1e-2), []
    for _ in range(steps):
        logits, expected = batch()
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), expected.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1]


def test_the_language_model_learns_to_copy(one_thread):
    model = LSTMLanguageModel(5, 32, 1)

    def batch():
        word = some_tokens(5, 64, 3)
        tokens = torch.cat((word, word), dim=1)
        return model(tokens[:, :-1])[0][:, 2:], tokens[:, 3:]  # only the copy can be foretold

    first, last = fall(model, batch, 150)
    assert first > 1.2
    assert last < 0.3


@both
def test_seq2seq_learns_to_reverse(attention, one_thread):
    model = LSTMSeq2Seq(6, 6, 24, 1, attention=attention)

    def batch():
        source = some_tokens(5, 64, 4)
        expected = source.flip(1)
        started = torch.cat((torch.full((64, 1), 5), expected[:, :-1]), dim=1)
        return model(source, torch.full((64,), 4), started), expected

    first, last = fall(model, batch, 200)
    assert first > 1.2
    assert last < 0.3


# ── what is refused ──


@pytest.mark.parametrize("name", ["vocab_size", "dim", "n_layers"])
@pytest.mark.parametrize("size", [0, -3])
def test_sizes_of_the_language_model(name, size):
    with pytest.raises(ConfigError, match=rf"^{name} must be at least 1; got {name}={size}\."):
        LSTMLanguageModel(**{"vocab_size": V, "dim": C, "n_layers": N, name: size})


@pytest.mark.parametrize("name", ["source_vocab_size", "target_vocab_size", "dim", "n_layers"])
def test_sizes_of_seq2seq(name):
    sizes = {"source_vocab_size": 3, "target_vocab_size": 3, "dim": 3, "n_layers": 3, name: 0}
    with pytest.raises(ConfigError, match=rf"^{name} must be at least 1; got {name}=0\."):
        LSTMSeq2Seq(**sizes)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, math.nan])
def test_dropout_must_be_a_share(dropout):
    with pytest.raises(ConfigError, match=rf"less than 1; got dropout={dropout}\."):
        LSTMLanguageModel(V, C, N, dropout=dropout)


@pytest.mark.parametrize("token", [-1, V, 99])
def test_tokens_outside_the_vocabulary(token):
    tokens = some_tokens(V, B, L)
    tokens[1, 2] = token
    sentence = rf"^tokens must hold ids from 0 to {V - 1}, in padding too; got {token}\."
    with pytest.raises(ConfigError, match=sentence):
        language_model()(tokens)
    model, (source, _) = seq2seq(), pair()
    with pytest.raises(ConfigError, match=sentence):
        model(source, LENGTHS, tokens)
    source[0, 6] = 17
    with pytest.raises(ConfigError, match=r"^source must hold ids from 0 to 16.*; got 17\."):
        model.encode(source, LENGTHS)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
def test_there_must_be_tokens(shape):
    with pytest.raises(ShapeError, match=rf"both at least 1; got \({shape[0]}, {shape[1]}\)\."):
        language_model()(some_tokens(V, *shape))


@pytest.mark.plain
def test_tokens_must_have_two_dimensions():
    with pytest.raises(ShapeError, match=r"^tokens must be \(batch, length\).*; got \(4,\)\."):
        language_model()(some_tokens(V, 4))
    with pytest.raises(ShapeError, match=r"^source must be \(batch, length\).*; got \(4, 2, 3\)\."):
        seq2seq().encode(some_tokens(V, 4, 2, 3), torch.ones(4).long())


@pytest.mark.plain
def test_lengths_must_match_the_batch():
    source, _ = pair()
    with pytest.raises(ShapeError, match=r"got lengths \(2,\) for source \(3, 7\)\."):
        seq2seq().encode(source, LENGTHS[:2])
    with pytest.raises(ShapeError, match=r"got lengths \(3, 1\) for source \(3, 7\)\."):
        seq2seq().encode(source, LENGTHS[:, None])


@pytest.mark.parametrize("lengths", [[0, 7, 1], [3, 8, 1], [-2, 3, 9]])
def test_lengths_must_lie_within_the_source(lengths):
    source, _ = pair()
    sentence = rf"length of source, 7; got lengths from {min(lengths)} to {max(lengths)}\."
    with pytest.raises(ShapeError, match=sentence):
        seq2seq().encode(source, torch.tensor(lengths))


def test_targets_must_match_the_sources():
    model, (source, target) = seq2seq(), pair()
    with pytest.raises(ShapeError, match=r"got 2 targets for 3 sources\."):
        model.decode(target[:2], model.encode(source, LENGTHS))


@pytest.mark.plain
def test_state_must_be_of_the_same_batch():
    model, tokens = language_model(), some_tokens(V, B, L)
    _, state = model(tokens)
    with pytest.raises(ShapeError, match=r"= \(2, 1, 5\); got \(2, 3, 5\) and \(2, 3, 5\)\."):
        model(tokens[:1], state)


def test_without_attention_there_are_no_weights():
    model, (source, target) = seq2seq(), pair()
    with pytest.raises(ConfigError, match=r"attention=False\. Build it with attention=True"):
        model.attend_weights(target, model.encode(source, LENGTHS))


@pytest.mark.plain
def test_the_language_model_compiles_whole():
    model, tokens = language_model(), some_tokens(V, B, L)
    with torch._dynamo.config.patch(allow_rnn=True):
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        close(compiled(tokens)[0], model(tokens)[0])
