"""One thread works alone where the barrier says that others wait in vain; several come back."""

import subprocess
import sys

import pytest
import torch

import glassformer as gf
from glassformer.generation import generate_tokens, native_stack
from glassformer.generation.native_structures import Barrier
from glassformer.generation.thread_count import ThreadCount

pytestmark = pytest.mark.usefixtures("two_threads")


@pytest.fixture
def in_c() -> None:
    library = native_stack.find_stack_library()
    if library is None or not library.is_tuned():
        pytest.skip("needs a C compiler, and NEON or AVX2")


def count_after(threads: ThreadCount, *, slept: int, passed: int = 1000) -> int:
    return threads.count(Barrier(n_passed=passed, n_slept=slept))


def test_waiting_doubles_until_there_is_room_again() -> None:
    threads, silent = ThreadCount(), Barrier()
    assert threads.count(silent) == 2
    assert count_after(threads, slept=300) == 2
    for n in (16, 32, 64, 64):
        assert count_after(threads, slept=900) == 1 and not threads.is_trial
        assert [threads.count(silent) for _ in range(n)] == [1] * (n - 1) + [2]
        assert threads.is_trial
    assert count_after(threads, slept=0) == 2 and not threads.is_trial
    assert count_after(threads, slept=900) == 1
    assert [threads.count(silent) for _ in range(16)] == [1] * 15 + [2]


def test_few_phases_are_no_opinion_and_are_added_up() -> None:
    threads, barrier = ThreadCount(), Barrier(n_passed=100, n_slept=100)
    assert threads.count(barrier) == 2 and barrier.n_passed == 100
    barrier.n_passed = barrier.n_slept = 200
    assert threads.count(barrier) == 1 and barrier.n_passed == barrier.n_slept == 0


@pytest.mark.usefixtures("in_c")
def test_a_trial_is_short_and_writes_the_same(monkeypatch) -> None:
    writer, asked, written = gf.load("writer"), [], []
    usual = native_stack.Reading.write

    def write(self, tokens, length, n_steps, rule):
        found = usual(self, tokens, length, n_steps, rule)
        asked.append(n_steps), written.append(len(found))
        return found

    monkeypatch.setattr(native_stack.Reading, "write", write)
    expected = generate_tokens(writer, [[5, 6, 7]], max_new_tokens=20)
    assert written == asked

    def try_again(self, _barrier) -> int:
        self.is_trial = True
        return torch.get_num_threads()

    asked.clear(), written.clear()
    monkeypatch.setattr(ThreadCount, "count", try_again)
    assert generate_tokens(writer, [[5, 6, 7]], max_new_tokens=20) == expected
    assert written == [min(n, native_stack._TRIAL) for n in asked]


@pytest.mark.usefixtures("in_c")
@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_more_threads_than_processors_beside_a_busy_program(n_threads: int, monkeypatch) -> None:
    """They all pass the barrier, whoever sleeps, and write the same text."""
    monkeypatch.setattr(native_stack, "_ONE_THREAD", 0)
    monkeypatch.setattr(ThreadCount, "count", lambda *_: torch.get_num_threads())
    writer = gf.load("writer")
    torch.set_num_threads(1)
    alone = generate_tokens(writer, [[5, 6, 7]], max_new_tokens=24)
    torch.set_num_threads(n_threads)
    loop = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
    other = subprocess.Popen([sys.executable, "-c", loop])
    try:
        assert generate_tokens(writer, [[5, 6, 7]], max_new_tokens=24) == alone
    finally:
        other.kill()
        other.wait()
