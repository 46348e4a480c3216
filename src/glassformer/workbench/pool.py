"""Worker processes, their queues, and what happens when a job is given up or a worker dies.

Jobs with the same key go to the same worker, which may have the model and the run at hand; jobs
that need neither go to the worker with the least to do. A queue that is full refuses. A job that
nobody waits for any more is dropped from the queue, or asked to stop; one that does not stop in
time, or runs too long, ends with its worker, which is replaced.
"""

import asyncio
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection
from threading import Thread, current_thread, main_thread
from typing import Any, NamedTuple
from zlib import crc32

from glassformer.workbench.jobs import Job, Message, work
from glassformer.workbench.routes import ANYWHERE, Route

Progress = Callable[[float], None]
_GRACE = 2.0  # seconds in which a job that is given up must stop
_LONGEST_END = 5.0  # seconds in which a process must end when the server does
_MOST_STARTS = 3  # in a row that fail
_ENDED = "The server has ended."
_DOES_NOT_START = (
    "The process that would compute this ends as soon as it starts. The terminal in which the "
    "server runs says why."
)


class Refused(Exception):
    """Too many jobs are waiting."""


class Mistake(Exception):
    """The job was asked for in a way that cannot be done; the text is for the user."""


class Fault(Exception):
    """The job failed for a reason that is not the user's."""


class WorkerDied(Fault):
    """The worker ended while it did the job; another one has taken its place."""


class FirstJob(NamedTuple):
    """What workers do before anybody asks."""

    name: str
    arguments: dict[str, Any]
    route: Route


@dataclass(eq=False)
class _Waiting:
    job: Job
    result: asyncio.Future[bytes]
    progress: Progress | None = None
    partial: Callable[[bytes], None] | None = None
    is_apart: bool = False
    is_given_up: bool = False


@dataclass(eq=False)
class _Worker:
    """One process, the job that it does, and those that wait for it."""

    process: Any
    connection: Connection
    stop: Any  # a shared integer: the number of the job that is to end
    listener: Thread | None = None
    queue: deque[_Waiting] = field(default_factory=deque)
    current: _Waiting | None = None
    is_begun: bool = False  # it imports what it needs, which takes a core for seconds
    is_ready: bool = False
    n_failed: int = 0  # starts in a row that came to nothing

    @property
    def load(self) -> int:
        """How many jobs it does or has to do."""
        return len(self.queue) + (self.current is not None)


class Pool:
    """A fixed number of workers; `open` starts them, `close` ends them.

    `module` has a function `handle(name, arguments, progress)`; it is imported in the workers only.
    `first` is a job that each worker does before any other, so that what it needs is at hand. The
    worker of its route starts alone, with the whole machine; the others when it is done, or needed.
    """

    def __init__(
        self,
        module: str,
        *,
        size: int = 2,
        longest: float = 600.0,
        most_waiting: int = 32,
        first: FirstJob | None = None,
    ) -> None:
        self.module, self.size, self.first = module, size, first
        self.longest, self.most_waiting = longest, most_waiting
        self.replaced = 0  # how many workers have died
        self._numbers = count(1)
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        self._is_closed = False

    def prepare(self) -> None:
        """Start the processes; `open` does it, unless there is something else to do meanwhile."""
        self._workers = [self._spawn() for _ in range(self.size)]
        if self.first is not None:
            self._let_begin(self._select(self.first.route))

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        if not self._workers:
            self.prepare()
        for worker in self._workers:
            self._attend(worker)
            if self.first is None:
                self._let_begin(worker)

    async def close(self) -> None:
        """End every worker; jobs that still wait fail."""
        self._is_closed = True
        for worker in self._workers:
            for waiting in [worker.current, *worker.queue]:
                if waiting is not None and not waiting.result.done():
                    waiting.result.set_exception(Fault(_ENDED))
            worker.process.terminate()
        for worker in self._workers:
            await asyncio.to_thread(_bury, worker)

    async def ask(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        route: Route = ANYWHERE,
        progress: Progress | None = None,
        partial: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """The result of a job, as JSON; whoever stops waiting for it gives it up.

        `partial` receives what the job tells of its result before the end, as JSON too.
        """
        if self._is_closed:
            raise Fault(_ENDED)
        worker = self._select(route)
        if len(worker.queue) >= self.most_waiting:
            raise Refused
        job = Job(next(self._numbers), name, arguments)
        result = self._loop.create_future()
        waiting = _Waiting(job, result, progress, partial, is_apart=route.is_apart)
        worker.queue.append(waiting)
        if worker.n_failed >= _MOST_STARTS:
            worker.n_failed -= 1  # whatever was in its way may be gone
            self._replace(worker)
        self._let_begin(worker)
        self._begin(worker)
        try:
            return await asyncio.wait_for(asyncio.shield(waiting.result), self.longest)
        except (asyncio.CancelledError, TimeoutError) as error:
            self._give_up(worker, waiting)
            if isinstance(error, TimeoutError):
                raise Fault(f"It took more than {self.longest:.0f} seconds.") from None
            raise

    @property
    def waiting(self) -> int:
        """How many jobs are being done or wait."""
        return sum(worker.load for worker in self._workers)

    @property
    def process_ids(self) -> list[int]:
        return [worker.process.pid for worker in self._workers]

    def _select(self, route: Route) -> _Worker:
        idlest = min(self._workers, key=lambda worker: worker.load)
        if route.key is None:
            return idlest
        own = self._workers[(crc32(route.key.encode()) + route.is_apart) % self.size]
        is_held = own.current is not None and own.current.is_apart
        can_evade = not (route.is_bound or route.is_apart) and idlest.load == 0
        return idlest if is_held and can_evade else own

    def _spawn(self, worker: _Worker | None = None) -> _Worker:
        """A new process, in the place of one that has died if there was one."""
        ours, theirs = self._context.Pipe()
        stop = self._context.RawValue("q", 0)  # one number that only we write: no lock to leak
        process = self._context.Process(
            target=work, args=(self.module, theirs, stop), daemon=True, name="glassformer-worker"
        )
        with _ignoring_interrupts():
            process.start()
        theirs.close()
        if worker is None:
            worker = _Worker(process, ours, stop)
        worker.process, worker.connection, worker.stop = process, ours, stop
        worker.is_begun = False
        return worker

    def _let_begin(self, worker: _Worker) -> None:
        if not worker.is_begun:
            worker.is_begun = True
            with suppress(OSError):  # it has died already; `_mourn` is on its way
                worker.connection.send(None)

    def _attend(self, worker: _Worker) -> None:
        """Listen to a process, and give it its first job."""
        if self.first is not None:
            result = self._loop.create_future()
            result.add_done_callback(self._let_others_begin)
            job = Job(next(self._numbers), self.first.name, self.first.arguments)
            worker.queue.appendleft(_Waiting(job, result))
        heard = (worker, worker.connection)
        worker.listener = Thread(target=self._listen, args=heard, daemon=True)
        worker.listener.start()

    def _let_others_begin(self, ended: asyncio.Future[bytes]) -> None:
        _ = ended.cancelled() or ended.exception()  # nobody else looks at it
        if not self._is_closed:
            for worker in self._workers:
                self._let_begin(worker)

    def _replace(self, worker: _Worker) -> None:
        self._spawn(worker)
        self._attend(worker)
        self._let_begin(worker)

    def _listen(self, worker: _Worker, connection: Connection) -> None:
        """A thread for each process: what it says is passed on, and that it has ended."""
        try:
            while True:
                self._post(self._hear, worker, connection, connection.recv())
        except (EOFError, OSError):
            self._post(self._mourn, worker, connection)

    def _post(self, function: Callable[..., None], *args: Any) -> None:
        if not self._is_closed and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)

    def _hear(self, worker: _Worker, connection: Connection, message: Message) -> None:
        if connection is not worker.connection:
            return  # of a process that was replaced
        if message.kind == "ready":
            worker.is_ready, worker.n_failed = True, 0
            self._begin(worker)
            return
        waiting = worker.current
        if waiting is None or waiting.job.number != message.number:
            return
        if message.kind in ("progress", "partial"):
            hear = waiting.progress if message.kind == "progress" else waiting.partial
            if hear is not None and not waiting.is_given_up:
                hear(message.value)
            return
        worker.current = None
        if not waiting.result.done():
            if message.kind == "done":
                waiting.result.set_result(message.value)
            elif message.kind == "mistake":
                waiting.result.set_exception(Mistake(message.value))
            else:
                waiting.result.set_exception(Fault(message.value or message.kind))
        self._begin(worker)

    def _mourn(self, worker: _Worker, connection: Connection) -> None:
        """A worker has died: its job fails, the others wait for the one that replaces it."""
        if connection is not worker.connection or self._is_closed:
            return
        self.replaced += 1
        worker.n_failed += not worker.is_ready
        waiting, worker.current, worker.is_ready = worker.current, None, False
        if waiting is not None and not waiting.result.done():
            waiting.result.set_exception(WorkerDied("The worker that computed this has ended."))
        worker.process.join(0)
        worker.connection.close()
        if worker.n_failed < _MOST_STARTS:
            self._replace(worker)
            return
        while worker.queue:  # starting it again and again would help nobody
            waiting = worker.queue.popleft()
            if not waiting.result.done():
                waiting.result.set_exception(Fault(_DOES_NOT_START))

    def _begin(self, worker: _Worker) -> None:
        """Give a worker that has nothing to do the next job."""
        while worker.is_ready and worker.current is None and worker.queue:
            waiting = worker.queue.popleft()
            if waiting.is_given_up:
                continue
            worker.current = waiting
            try:
                worker.connection.send(waiting.job)
            except OSError:  # it has just died; `_mourn` is on its way
                return

    def _give_up(self, worker: _Worker, waiting: _Waiting) -> None:
        waiting.is_given_up = True
        if waiting in worker.queue:
            worker.queue.remove(waiting)
        elif worker.current is waiting:
            worker.stop.value = waiting.job.number
            self._loop.call_later(_GRACE, self._end, worker, waiting)
        if not waiting.result.done():
            waiting.result.cancel()

    def _end(self, worker: _Worker, waiting: _Waiting) -> None:
        """End a worker that still does what nobody waits for."""
        if worker.current is waiting and not self._is_closed:
            worker.process.kill()


def _bury(worker: _Worker) -> None:
    """Wait for a process that was asked to end; its connection is closed once nobody reads it."""
    worker.process.join(_LONGEST_END)
    if worker.process.is_alive():
        worker.process.kill()
    if worker.listener is not None:
        worker.listener.join(_LONGEST_END)
        if worker.listener.is_alive():
            return  # closing what a thread reads from would break it
    worker.connection.close()


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """A terminal sends Ctrl-C, and that it closes, to every process: those that start here not."""
    if current_thread() is not main_thread():  # only there can it be said
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
