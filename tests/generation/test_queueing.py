"""Prompts that take turns are continued as each would be alone."""

import pytest
import torch

import glassformer as gf
from generation.step_models import CHANGES, V, make
from glassformer.errors import ConfigError, ShapeError
from glassformer.generation import Sampling, generate_tokens, native_stack, queueing
from glassformer.generation.queueing import QueuedSession, count_slots

_library = native_stack.find_stack_library()
pytestmark = pytest.mark.skipif(
    _library is None or not _library.is_tuned(), reason="needs a C compiler, and NEON or AVX2"
)
DECODERS = [name for name in CHANGES if name != "translator"]


def draw_prompts(n: int, longest: int = 9) -> list[list[int]]:
    generator = torch.Generator().manual_seed(5)
    lengths = torch.randint(1, longest + 1, (n,), generator=generator).tolist()
    return [torch.randint(V, (k,), generator=generator).tolist() for k in lengths]


@pytest.fixture
def slots(monkeypatch) -> int:
    monkeypatch.setattr(queueing, "_MOST_SLOTS", 4)
    return 4


@pytest.fixture
def admitted(monkeypatch) -> list[int]:
    """How many prompts entered a running batch at a time."""
    found, admit = [], QueuedSession.admit

    def note(self, rows, prompts):
        found.append(len(prompts))
        return admit(self, rows, prompts)

    monkeypatch.setattr(QueuedSession, "admit", note)
    return found


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("is_int8", [False, True])
def test_texts_are_as_if_each_were_alone(name: str, is_int8: bool, slots, admitted) -> None:
    model = make(name, torch.float32)
    model = gf.quantize(model, "int8") if is_int8 else model
    prompts = draw_prompts(23)
    options = {"max_new_tokens": 30, "never": [7]}
    [whole] = generate_tokens(model, prompts[:1], **options)
    options |= {"stop": [whole[11], whole[20]]}  # at least this text is shorter
    alone = [generate_tokens(model, [prompt], **options)[0] for prompt in prompts]
    assert generate_tokens(model, prompts, **options) == alone
    assert sum(admitted) == len(prompts) - slots
    assert len({len(each) for each in alone}) > 1


def test_columns_move_to_the_left_when_they_are_used_up(slots, monkeypatch) -> None:
    model = make("rotary", torch.float32)
    shifts, move = [], QueuedSession.make_room

    def note(self, n):
        before = self.length
        move(self, n)
        shifts.append(before - self.length)
        assert self.length + n <= self.step.memory.shape[2]

    monkeypatch.setattr(QueuedSession, "make_room", note)
    prompts = draw_prompts(60)
    alone = [generate_tokens(model, [each], max_new_tokens=20, stop=[3])[0] for each in prompts]
    assert generate_tokens(model, prompts, max_new_tokens=20, stop=[3]) == alone
    assert sum(shift > 0 for shift in shifts) >= 3


def test_one_new_token_each(slots) -> None:
    model = make("learned", torch.float32)
    prompts = draw_prompts(9)
    alone = [generate_tokens(model, [each], max_new_tokens=1)[0] for each in prompts]
    assert generate_tokens(model, prompts, max_new_tokens=1) == alone


def test_prompts_longer_than_c_reads_at_once(slots) -> None:
    from glassformer.generation.native_step import MOST_ROWS
    from glassformer.models import Config, build

    torch.manual_seed(0)
    sizes = {"vocab_size": V, "dim": 16, "n_layers": 2, "n_heads": 2, "max_len": 400}
    model = build(Config(family="decoder", **sizes)).eval()
    prompts = [*draw_prompts(7, 40), *draw_prompts(3, MOST_ROWS + 60)]
    assert max(map(len, prompts)) > MOST_ROWS / 2
    alone = [generate_tokens(model, [each], max_new_tokens=12)[0] for each in prompts]
    assert generate_tokens(model, prompts, max_new_tokens=12) == alone


def test_samples_are_the_same_with_the_same_seed(slots, admitted) -> None:
    model = make("rotary", torch.float32)
    prompts = draw_prompts(23)
    options = {"max_new_tokens": 12, "sampling": Sampling(temperature=1.2), "stop": [3]}
    first, again, other = (generate_tokens(model, prompts, seed=s, **options) for s in (1, 1, 2))
    assert first == again != other
    assert sum(admitted) == 3 * (len(prompts) - slots)
    narrow = options | {"sampling": Sampling(temperature=1.0, top_k=1)}
    greedy = generate_tokens(model, prompts, max_new_tokens=12, stop=[3])
    assert generate_tokens(model, prompts, seed=4, **narrow) == greedy


def test_texts_with_stop_strings(slots, admitted) -> None:
    writer = gf.load("writer")
    texts = [f"{a} {b}" for a in ("The king", "A man", "She") for b in ("said", "was", "and the")]
    for stop in ([], ["the", ","]):
        options = {"max_new_tokens": 15, "stop": stop}
        alone = [gf.generate(writer, text, **options) for text in texts]
        admitted.clear()
        assert gf.generate(writer, texts, **options) == alone
        assert sum(admitted) == len(texts) - slots
    assert any("," not in each for each in alone)


def test_who_must_not_take_turns_does_not(slots, admitted) -> None:
    model = make("rotary", torch.float32)
    prompts = draw_prompts(9)
    expected = generate_tokens(model, prompts, max_new_tokens=8)
    assert admitted
    admitted.clear()
    forbidden = torch.zeros(9, V, dtype=torch.bool)
    assert generate_tokens(model, prompts, max_new_tokens=8, forbidden=forbidden) == expected
    assert generate_tokens(model, prompts, max_new_tokens=8, fixed=True) == expected
    generate_tokens(model, prompts, max_new_tokens=8, sampling=Sampling(repetition_penalty=1.2))
    handle = model.decoder.register_forward_hook(lambda *_: None)
    assert generate_tokens(model, prompts, max_new_tokens=8) == expected  # somebody watches
    handle.remove()
    assert generate_tokens(model, prompts[:4], max_new_tokens=8) == expected[:4]
    assert not admitted


def test_memory_limits_the_slots(monkeypatch) -> None:
    model = make("rotary", torch.float32)
    prompts = draw_prompts(200)
    assert count_slots(model, prompts, 30) == 64
    monkeypatch.setattr(queueing, "_MOST_MEMORY", 100_000)
    assert 1 < count_slots(model, prompts, 30) < 64
    monkeypatch.setattr(queueing, "_MOST_MEMORY", 1)
    assert count_slots(model, prompts, 30) == 1


def test_faults_are_named_before_anything_is_written(slots, admitted) -> None:
    model = make("rotary", torch.float32)
    prompts = draw_prompts(9)
    for wrong, error in (([V], ShapeError), ([], ShapeError), ([1] * 200, ShapeError)):
        with pytest.raises(error):
            generate_tokens(model, [*prompts, wrong], max_new_tokens=8)
    with pytest.raises(ConfigError):
        generate_tokens(model, prompts, max_new_tokens=0)
    assert not admitted
    with torch.no_grad():
        model.head.weight[0, 0] = torch.nan
    with pytest.raises(ConfigError, match="got NaN"):
        generate_tokens(model, prompts, max_new_tokens=8)
