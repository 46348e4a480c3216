"""Coroutines in tests: an event loop of their own."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run_apart(run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """In a thread: a browser that other tests drive may have a loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(run())).result()
