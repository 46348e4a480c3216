"""Tokens that C chooses are those of PyTorch: greedily, and the candidates of a beam search."""

import math

import pytest
import torch
from torch import Tensor

import glassformer as gf
from closeness import assert_close
from generation.step_models import CHANGES, PROMPTS, SOURCES, V, make
from glassformer.errors import ConfigError
from glassformer.generation import beam_search, generate_tokens
from glassformer.generation.choice_rule import Rule
from glassformer.generation.direct import DirectSession
from glassformer.generation.native_structures import find_stack_library
from glassformer.generation.sampling import exclude_tokens
from glassformer.generation.sessions import DecodingSession
from glassformer.models import EncoderDecoder

_library = find_stack_library()
pytestmark = pytest.mark.skipif(
    _library is None or not _library.is_tuned(),
    reason="needs a C compiler, and NEON or AVX2",
)


def start(model, prompts=PROMPTS, copies: int = 1) -> DirectSession:
    source = SOURCES[: len(prompts)] if isinstance(model, EncoderDecoder) else None
    options = {"source": source, "max_new_tokens": 40, "copies": copies}
    session = DirectSession(model, prompts, **options)
    assert session.reading is not None
    return session


def draw_mask(prompts: int) -> Tensor:
    """About half of all tokens; never all of them."""
    mask = torch.rand(prompts, V, generator=torch.Generator().manual_seed(prompts)) < 0.5
    mask[:, 7] = False
    return mask


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("is_int8", [False, True])
@pytest.mark.parametrize("is_masked", [False, True])
def test_greedily_as_step_by_step(name: str, is_int8: bool, is_masked: bool) -> None:
    model = make(name, torch.float32)
    model = gf.quantize(model, "int8") if is_int8 else model
    forbidden = draw_mask(len(PROMPTS)) if is_masked else None
    rule = Rule([4, 5], forbidden)
    session, plain = start(model), start(model)
    written = [*session.write(1, rule), *session.write(19, rule)]
    assert len(written) == 20 and session.length == plain.prompt.shape[1] + 19
    for tokens in written:
        logits = exclude_tokens(plain.next_logits(), [4, 5], forbidden)
        assert tokens == logits.argmax(-1).tolist()
        plain.append(logits.argmax(-1))
    assert len(set(map(tuple, written))) > 1


def test_it_stops_where_a_row_ends() -> None:
    model = make("translator", torch.float32)
    written = start(model).write(20, Rule([]))
    n, row = next(
        (n, row)
        for n in range(3, 20)
        for row in range(3)
        if all(written[n][row] not in each for each in written[:n])
    )
    stopped = start(model).write(20, Rule([], None, [written[n][row]]))
    assert stopped == written[: n + 1]
    whole = generate_tokens(model, PROMPTS, max_new_tokens=20, source=SOURCES)
    assert whole == [list(each) for each in zip(*written, strict=True)]
    ended = generate_tokens(
        model, PROMPTS, max_new_tokens=20, source=SOURCES, stop=[written[n][row]]
    )
    assert ended[row] == whole[row][:n]


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("is_masked", [False, True])
def test_the_best_tokens_and_their_logarithms(name: str, is_masked: bool) -> None:
    model = make(name, torch.float32)
    forbidden = draw_mask(len(PROMPTS)) if is_masked else None
    session, plain = start(model, copies=3), start(model, copies=3)
    found = session.rank(6, Rule([4, 5], forbidden))
    assert found is not None
    logits = exclude_tokens(plain.next_logits(), [4, 5]).double()
    expected = logits.log_softmax(-1)
    if forbidden is not None:
        expected = exclude_tokens(expected, [], forbidden.repeat_interleave(3, 0))
    best = expected.topk(6)
    assert found[1] == best.indices.tolist()
    assert_close(torch.tensor(found[0], dtype=torch.float64), best.values, 1e-6)


@pytest.mark.parametrize("n", [1, 5, 63, 64, 65, 1000])
def test_equal_logits_and_every_length(n: int) -> None:
    """The first of equals comes first; −0 equals 0, and −∞ comes last."""
    torch.manual_seed(n)
    logits = torch.randint(-3, 3, (4, n)) / 2
    logits[0] = -torch.inf
    logits[0, n // 2] = -5.0
    logits[1] = torch.where(torch.rand(n) < 0.5, -0.0, 0.0)
    k = min(n, 9)
    values, tokens = find_best(logits, k)
    order = (logits + 0.0).sort(descending=True, stable=True)
    if n > 1:
        assert tokens[1:].tolist() == order.indices[1:, :k].tolist()
    assert values.tolist() == order.values[:, :k].tolist()
    assert tokens[0, 0] == n // 2


def find_best(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """By a model whose logits are the bias of its head."""
    values, tokens = [], []
    for row in logits:
        config = gf.Config(
            family="decoder",
            vocab_size=max(len(row), 4),
            dim=4,
            n_layers=1,
            n_heads=1,
            max_len=4,
            output=gf.models.Output(tied=False, bias=True),
        )
        model = gf.build(config).eval()
        with torch.no_grad():
            model.head.weight.zero_()
            model.head.bias.fill_(-torch.inf)
            model.head.bias[: len(row)] = row
        session = DirectSession(model, [[0]], source=None, max_new_tokens=2)
        found = session.rank(k, Rule([]))
        assert found is not None
        total = float(row.double().exp().sum().log())
        values.append([math.inf if log == math.inf else log + total for log in found[0][0]])
        tokens.append(found[1][0])
    return torch.tensor(values).round(decimals=4), torch.tensor(tokens)


@pytest.mark.parametrize("name", CHANGES)
def test_copies_change_places_as_often_as_they_like(name: str) -> None:
    model = make(name, torch.float32)
    source = SOURCES if isinstance(model, EncoderDecoder) else None
    session = start(model, copies=3)
    plain = DecodingSession(
        model,
        [each for each in PROMPTS for _ in range(3)],
        source=source and [each for each in source for _ in range(3)],
        max_new_tokens=40,
    )
    torch.manual_seed(1)
    for _ in range(12):
        ours = session.next_logits()
        with torch.no_grad():
            expected = plain.next_logits()
        assert_close(ours, expected, 2e-5 * float(expected.abs().max()))
        tokens = torch.randint(V, (9,))
        parents = torch.randint(3, (9,)) + torch.arange(3).repeat_interleave(3) * 3
        session.append(tokens, parents=parents)
        plain.append(tokens, parents=parents)
    session.keep(torch.tensor([0, 2]))
    rows = [0, 1, 2, 6, 7, 8]
    with torch.no_grad():
        expected = plain.next_logits()[rows]
    assert_close(session.next_logits(), expected, 2e-5 * float(expected.abs().max()))


@pytest.mark.parametrize("name", ["rotary", "translator"])
@pytest.mark.parametrize("way", ["C", "PyTorch"])
def test_what_is_not_a_number_is_reported(name: str, way: str) -> None:
    model = make(name, torch.float32 if way == "C" else torch.float64)
    source = SOURCES if isinstance(model, EncoderDecoder) else None
    with torch.no_grad():
        model.head.weight[3] = torch.nan
    with pytest.raises(ConfigError, match="got NaN in row 0"):
        generate_tokens(model, PROMPTS, max_new_tokens=4, source=source)
    with pytest.raises(ConfigError, match="must be numbers; got NaN"):
        beam_search(model, PROMPTS, max_new_tokens=4, source=source, beams=2)


def test_when_nothing_may_be_written() -> None:
    model = make("rotary", torch.float32)
    with pytest.raises(ConfigError, match="nothing but -inf in row 0"):
        generate_tokens(model, PROMPTS, max_new_tokens=4, never=range(V))
    with pytest.raises(ConfigError, match=r"from 0 to 36; got \(37,\)"):
        generate_tokens(model, PROMPTS, max_new_tokens=4, never=[V])


def test_the_default_dtype_does_not_matter() -> None:
    model = make("translator", torch.float32)
    options = {"max_new_tokens": 12, "source": SOURCES}
    greedy = generate_tokens(model, PROMPTS, **options)
    best = beam_search(model, PROMPTS, beams=3, **options)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert generate_tokens(model, PROMPTS, **options) == greedy
        assert beam_search(model, PROMPTS, beams=3, **options) == best
    finally:
        torch.set_default_dtype(before)


def test_learned_positions_that_change_in_place_are_read_anew() -> None:
    model = make("learned", torch.float32)
    before = start(model).next_logits()
    model.decoder.positions.weight.data.mul_(3.0)  # no version counts this
    after = start(model).next_logits()
    with torch.no_grad():
        options = {"source": None, "max_new_tokens": 9}
        expected = DecodingSession(model, PROMPTS, **options).next_logits()
    assert_close(after, expected, 2e-5 * float(expected.abs().max()))
    assert (after - before).abs().max() > 0.01
