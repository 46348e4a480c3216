"""Prefetching: a thread prepares the next few batches while the model computes."""

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Prefetch(Generic[T]):
    """An iterator whose next `n` items are prepared in another thread.

    >>> with Prefetch(iter(range(3)), n=2) as numbers:
    ...     list(numbers)
    [0, 1, 2]
    """

    def __init__(self, items: Iterable[T], *, n: int) -> None:
        self._ready: queue.Queue = queue.Queue(maxsize=n)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(iter(items),), daemon=True)

    def __enter__(self) -> "Prefetch[T]":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        item, error, is_last = self._ready.get()
        if error is not None:
            raise error
        if is_last:
            raise StopIteration
        return item

    def _work(self, items: Iterator[T]) -> None:
        try:
            for item in items:
                if not self._put((item, None, False)):
                    return
            self._put((None, None, True))
        except Exception as error:  # raised again in __next__
            self._put((None, error, False))

    def _put(self, message: tuple) -> bool:
        while not self._stopped.is_set():
            try:
                self._ready.put(message, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False
