"""The pool: jobs are done, given up, refused; workers that die are replaced."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from event_loop import run_apart
from glassformer.workbench.pool import Fault, FirstJob, Mistake, Pool, Refused, WorkerDied
from glassformer.workbench.routes import Route

JOBS = "workbench.sample_jobs"


async def ask(pool: Pool, name: str, arguments: dict[str, Any], **options: Any) -> Any:
    return json.loads(await pool.ask(name, arguments, **options))


def in_pool(body: Callable[[Pool], Awaitable[None]], *, module: str = JOBS, **options: Any) -> None:
    async def run() -> None:
        pool = Pool(module, **options)
        await pool.open()
        try:
            await asyncio.wait_for(body(pool), 60)
        finally:
            await pool.close()

    run_apart(run)


def test_results_mistakes_and_faults() -> None:
    async def body(pool: Pool) -> None:
        assert await ask(pool, "echo", {"a": [1, 2]}) == {"a": [1, 2]}
        with pytest.raises(Mistake, match="A number must be positive; got −1"):
            await ask(pool, "mistake", {})
        with pytest.raises(Fault, match="ValueError: inside"):
            await ask(pool, "fault", {})
        assert await ask(pool, "echo", {"b": 1}) == {"b": 1} and pool.replaced == 0

    in_pool(body, size=1)


def test_one_key_is_one_worker() -> None:
    async def body(pool: Pool) -> None:
        pids = [await ask(pool, "who", {}, route=Route("a")) for _ in range(3)]
        assert len(set(pids)) == 1
        both = {await ask(pool, "who", {}, route=Route(key)) for key in "abcdefgh"}
        assert both == set(pool.process_ids) and len(both) == 2

    in_pool(body, size=2)


def test_the_worker_of_the_first_job_starts_alone() -> None:
    async def body(pool: Pool) -> None:
        at_first = [worker.is_begun for worker in pool._workers]
        assert sorted(at_first) == [False, True]
        keys = {key: await ask(pool, "who", {}, route=Route(key)) for key in "abcdefgh"}
        assert set(keys.values()) == set(pool.process_ids)  # the other one when it is needed
        assert keys["a"] == pool.process_ids[at_first.index(True)]

    in_pool(body, size=2, first=FirstJob("deaf", {"seconds": 0.1}, route=Route("a")))


def test_the_others_start_when_the_first_job_is_done() -> None:
    async def body(pool: Pool) -> None:
        await ask(pool, "echo", {}, route=Route("a"))  # waits for the first job
        await asyncio.sleep(0)
        assert all(worker.is_begun for worker in pool._workers)

    in_pool(body, size=3, first=FirstJob("echo", {}, route=Route("a")))


def test_a_long_job_that_is_apart_holds_nothing_up() -> None:
    async def body(pool: Pool) -> None:
        own = await ask(pool, "who", {}, route=Route("a"))
        begun = asyncio.Event()
        long = asyncio.create_task(
            ask(
                pool,
                "steps",
                {"n": 100_000},
                route=Route("a", is_apart=True),
                progress=lambda _: begun.set(),
            )
        )
        await begun.wait()
        routes = [Route("a", is_bound=True), Route(None), *(Route(key) for key in "abcdefgh")]
        assert {await ask(pool, "who", {}, route=each) for each in routes} == {own}
        waiting = asyncio.create_task(ask(pool, "who", {}, route=Route("a", is_apart=True)))
        await asyncio.sleep(0)
        long.cancel()
        assert await waiting != own
        assert pool.replaced == 0

    in_pool(body, size=2)


def test_what_is_bound_waits_for_its_worker() -> None:
    async def body(pool: Pool) -> None:
        begun = asyncio.Event()
        route = Route("a", is_apart=True)
        long = asyncio.create_task(
            ask(pool, "steps", {"n": 100_000}, route=route, progress=lambda _: begun.set())
        )
        await begun.wait()
        keys = (Route(f"{n}", is_bound=True) for n in range(99))
        bound = next(each for each in keys if pool._select(each) is pool._select(route))
        waiting = asyncio.create_task(ask(pool, "who", {}, route=bound))
        await ask(pool, "who", {}, route=Route(None))
        assert not waiting.done()
        long.cancel()
        await waiting

    in_pool(body, size=2)


def test_what_is_known_before_the_end_is_passed_on() -> None:
    async def body(pool: Pool) -> None:
        seen: list[bytes] = []
        assert await ask(pool, "grow", {"n": 3}, partial=seen.append) == [0, 1, 2]
        assert [json.loads(each) for each in seen] == [[0], [0, 1]]
        assert await ask(pool, "grow", {"n": 3}) == [0, 1, 2]

    in_pool(body, size=1)


def test_progress_is_passed_on() -> None:
    async def body(pool: Pool) -> None:
        seen: list[float] = []
        assert await ask(pool, "steps", {"n": 5}, progress=seen.append) == "all"
        assert seen == [0.0, 0.2, 0.4, 0.6, 0.8]

    in_pool(body, size=1)


def test_a_job_that_is_given_up_stops_and_the_worker_goes_on() -> None:
    async def body(pool: Pool) -> None:
        before = pool.process_ids
        begun = asyncio.Event()
        task = asyncio.create_task(
            ask(pool, "steps", {"n": 100_000}, progress=lambda _: begun.set())
        )
        await begun.wait()
        waiting = asyncio.create_task(ask(pool, "echo", {}))
        dropped = asyncio.create_task(ask(pool, "echo", {}))
        await asyncio.sleep(0)
        dropped.cancel()
        task.cancel()
        assert await waiting == {}
        assert pool.process_ids == before and pool.replaced == 0 and pool.waiting == 0
        with pytest.raises(asyncio.CancelledError):
            await dropped

    in_pool(body, size=1)


def test_a_job_that_does_not_listen_ends_with_its_worker() -> None:
    async def body(pool: Pool) -> None:
        longest = pool.longest
        await ask(pool, "echo", {})  # a start may take longer than what follows
        pool.longest = 1.0
        with pytest.raises(Fault, match="It took more than 1 seconds"):
            await ask(pool, "deaf", {"seconds": 600})
        pool.longest = longest
        assert await ask(pool, "echo", {"again": True}) == {"again": True}
        assert pool.replaced == 1

    in_pool(body, size=1)


def test_a_worker_that_dies_is_replaced() -> None:
    async def body(pool: Pool) -> None:
        first = await ask(pool, "who", {})
        dying = asyncio.create_task(ask(pool, "die", {}))
        after = asyncio.create_task(ask(pool, "who", {}))
        with pytest.raises(WorkerDied, match="has ended"):
            await dying
        assert await after != first and pool.replaced == 1

    in_pool(body, size=1)


def test_a_full_queue_refuses() -> None:
    async def body(pool: Pool) -> None:
        await ask(pool, "echo", {})
        tasks = [asyncio.create_task(ask(pool, "steps", {"n": 3})) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Refused):
            await ask(pool, "echo", {})
        assert await asyncio.gather(*tasks) == ["all"] * 3
        assert await ask(pool, "echo", {}) == {}

    in_pool(body, size=1, most_waiting=2)


def test_closing_ends_what_waits() -> None:
    async def run() -> None:
        pool = Pool(JOBS, size=1)
        await pool.open()
        task = asyncio.create_task(ask(pool, "deaf", {"seconds": 600}))
        await asyncio.sleep(0)
        await pool.close()
        with pytest.raises(Fault, match="The server has ended"):
            await task

    run_apart(run)


def test_workers_that_cannot_start_are_not_started_for_ever(capfd: pytest.CaptureFixture) -> None:
    async def body(pool: Pool) -> None:
        for _ in range(2):  # the second asks for one more start
            with pytest.raises(Fault, match="ends as soon as it starts"):
                await pool.ask("echo", {})
        assert pool.replaced == 4

    in_pool(body, module="workbench.no_such_jobs", size=1)
    assert "no_such_jobs" in capfd.readouterr().err


def test_closing_waits_for_who_listens() -> None:
    """Closed under a thread that reads, a connection fails in ways of its own, or hands out
    another file's bytes."""
    listeners: list[Any] = []

    async def body(pool: Pool) -> None:
        listeners.extend((worker.listener, worker.connection) for worker in pool._workers)

    for _ in range(5):
        in_pool(body, size=3)  # some workers are still starting
    assert len(listeners) == 15
    assert all(not thread.is_alive() and connection.closed for thread, connection in listeners)
