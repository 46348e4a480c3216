"""A session in a terminal: keys, saved files and gradings meet in one queue, and each is drawn."""

import contextlib
import importlib
import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from rich.console import Console

from glassformer.errors import ConfigError
from glassformer.installation import install_command
from glassformer.languages import Language
from glassformer.school.practice.exercise import Exercise
from glassformer.school.practice.grading import Grader
from glassformer.school.practice.session import Event, Graded, Key, PracticeSession, Saved
from glassformer.school.practice.terminal import draw_screen

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
_KEYS = {"\x1b[A": "up", "\x1b[B": "down", "\r": "enter", "\n": "enter", "\x1b": "escape"}
_MOST_COLUMNS = 100
_BLINK = 0.2  # seconds between two looks at whether to stop


class Resized:
    """The window has another size."""


def watch(session: PracticeSession, folder: Path, language: Language) -> None:
    """Run a session until it ends; the terminal is left as it was found."""
    try:
        importlib.import_module("watchfiles")
    except ImportError:
        raise ConfigError(
            language.say("practice.error.watchfiles", command=install_command("practice"))
        ) from None
    events: SimpleQueue[Event | Resized | BaseException] = SimpleQueue()
    stop = threading.Event()

    def files() -> None:
        for paths in watch_saves(folder, stop):
            events.put(Saved(paths or frozenset(map(session.workspace.file, session.exercises))))

    def keys() -> None:
        for key in read_pressed_keys(stop):
            events.put(Key(key))

    with Grader() as grader, _raw_terminal(), _on_resize(events):
        threads = [
            threading.Thread(target=_forward_errors(events, run), daemon=True)
            for run in (files, keys)
        ]
        for thread in threads:
            thread.start()
        try:
            _loop(session, grader, events, language)
        except KeyboardInterrupt:
            pass
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def _forward_errors(events: "SimpleQueue[Any]", run: Any) -> Any:
    """Run a thread's work and forward its errors to the main thread."""

    def work() -> None:
        try:
            run()
        except Exception as error:
            events.put(error)

    return work


def _loop(
    session: PracticeSession, grader: Grader, events: "SimpleQueue[Any]", language: Language
) -> None:
    busy = False
    while not session.ended:
        if session.wanted is not None and not busy:
            busy = True
            _grade(session.wanted, session, grader, events)
        size = _draw(session, language)
        while (event := _next_event(events)) is None and size == os.get_terminal_size():
            continue
        if event is None:
            continue
        # Several at once are drawn once.
        while True:
            if isinstance(event, BaseException):
                raise event
            if isinstance(event, Graded):
                busy = False
            if not isinstance(event, Resized):
                session.handle(event)
            if events.empty() or session.ended:
                break
            event = events.get()


def _next_event(events: "SimpleQueue[Any]") -> Any:
    """The next event, or None after a while: a signal may be lost, a window's size is not."""
    try:
        return events.get(timeout=1.0)
    except Empty:
        return None


def _grade(
    exercise: Exercise, session: PracticeSession, grader: Grader, events: "SimpleQueue[Any]"
) -> None:
    path = session.workspace.file(exercise)

    def work() -> None:
        events.put(Graded(grader.grade(exercise, path)))

    threading.Thread(target=_forward_errors(events, work), daemon=True).start()


def _draw(session: PracticeSession, language: Language) -> os.terminal_size:
    size = width, height = os.get_terminal_size()
    console = Console(
        markup=False, emoji=False, highlight=False, width=min(width, _MOST_COLUMNS), height=height
    )
    drawn = draw_screen(session.screen(), language, width=width, height=height)
    with console.capture() as captured:
        console.print(drawn)
    sys.stdout.write(_CLEAR + captured.get())
    sys.stdout.flush()
    return size


def watch_saves(folder: Path, stop: threading.Event) -> Iterator[frozenset[Path]]:
    """Sets of changed, created or deleted files; an empty set if the folder itself changed."""
    from watchfiles import watch

    is_another = False
    while not stop.is_set():
        try:
            handle = os.open(folder, os.O_RDONLY)
        except OSError:
            stop.wait(_BLINK)
            continue
        changes = watch(
            folder,
            stop_event=stop,
            recursive=False,
            rust_timeout=int(1000 * _BLINK),
            yield_on_timeout=True,
            raise_interrupt=False,
        )
        try:
            for found in changes:
                if found or is_another:
                    yield frozenset(Path(path) for _, path in ([] if is_another else found))
                elif not _is_same_folder(folder, handle):
                    break
                is_another = False
        except FileNotFoundError:  # gone before the first look
            pass
        finally:
            os.close(handle)
        is_another = True
        yield frozenset()


def _is_same_folder(folder: Path, handle: int) -> bool:
    """Whether a name still leads to an open folder, which no other can be mistaken for."""
    try:
        return os.path.samestat(folder.stat(), os.fstat(handle))
    except OSError:
        return False


def read_pressed_keys(stop: threading.Event) -> Iterator[str]:
    """Keys as they are pressed: letters, and the names of those that have none."""
    descriptor = sys.stdin.fileno()
    while not stop.is_set():
        if not select.select([descriptor], [], [], _BLINK)[0]:
            continue
        data = os.read(descriptor, 64)
        if not data:  # the terminal is gone
            yield "q"
            return
        yield from read_keys(data.decode("utf-8", errors="ignore"))


def read_keys(text: str) -> list[str]:
    """What was pressed, from what a terminal sends.

    >>> read_keys("n\\x1b[B\\r")
    ['n', 'down', 'enter']
    """
    keys = []
    while text:
        code = next((code for code in _KEYS if text.startswith(code)), text[0])
        keys.append(_KEYS.get(code, code.lower()))
        text = text[len(code) :]
    return keys


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    """Keys come one by one and are not shown; afterwards all is as it was."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        sys.stdout.write("\x1b[?25l")
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        sys.stdout.write("\x1b[?25h")
        sys.stdout.flush()


@contextlib.contextmanager
def _on_resize(events: "SimpleQueue[Any]") -> Iterator[None]:
    before = signal.signal(signal.SIGWINCH, lambda *_: events.put(Resized()))
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
