"""Methods that report their calls for as long as someone listens.

A method is replaced on the class that defines it, never on the object: whatever is copied, pickled
or saved meanwhile carries nothing of ours, and threads that run the same object find either method,
never half of one. Calls on other objects are passed through. Only where an object has a method
of its own (torch.compile and accelerate set `forward` so) is that one replaced.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial, wraps
from types import SimpleNamespace
from typing import Any, NamedTuple
from weakref import ref

from glassformer.tracing.guard import Guard

FAILED = object()  # instead of a result: the method raised
_lock = threading.RLock()
_replaced: dict[tuple[int, str], "_Replacement"] = {}  # by owner, a class or an object
_taps: dict[tuple[int, str], tuple[ref, tuple["Tap", ...]]] = {}  # by object and method
_crowds: list["_Crowd"] = []
_running = threading.local()  # methods being called, so that super() is not reported twice


class Tap(NamedTuple):
    """A listener to a method: in one thread, before and after each call.

    `around` is given the method and runs in place of it. It changes what the model
    computes, so its errors are raised, while those of listeners never are.
    """

    name: str  # of what is recorded
    guard: Guard
    refuse: Callable[[str], None]
    before: Callable[[Any, tuple, dict[str, Any]], None] | None = None
    after: Callable[[Any, tuple, dict[str, Any], Any], None] | None = None
    around: Callable[[Callable[..., Any], Any, tuple, dict[str, Any]], Any] | None = None
    group: str = ""
    thread: int | None = None

    def notify(self, callback: Callable[..., None] | None, *arguments: Any) -> None:
        if callback is not None:
            with self.guard.catch(self.name, self.refuse):
                callback(*arguments)


class _Crowd(NamedTuple):
    """Many objects with one listener; none is touched, which takes longer than to compare ids."""

    name: str
    ids: frozenset[int]
    things: list[Any]  # alive, so that no other object gets an id of theirs
    tap: Tap


class _Replacement(NamedTuple):
    owner: Any
    before: Any  # the owner's own method; this class where it had none
    ours: Any
    users: int


def replace_method(owner: Any, name: str, make: Callable[[Any], Any]) -> Callable[[], None]:
    """Put `make(original)` in place of a method of a class or an object; returns how to undo it."""
    with _lock:
        key = id(owner), name
        found = _replaced.get(key)
        if found is None:
            before = vars(owner).get(name, _Replacement)
            found = _Replacement(owner, before, make(getattr(owner, name)), 0)
            setattr(owner, name, found.ours)
        _replaced[key] = found._replace(users=found.users + 1)
    return partial(_put_back, owner, name)


def _put_back(owner: Any, name: str) -> None:
    with _lock:
        found = _replaced.pop((id(owner), name))
        if found.users > 1:
            _replaced[id(owner), name] = found._replace(users=found.users - 1)
        elif vars(owner).get(name) is found.ours:  # otherwise somebody has wrapped it since
            if found.before is _Replacement:
                delattr(owner, name)
            else:
                setattr(owner, name, found.before)


def listen(thing: Any, name: str, tap: Tap) -> Callable[[], None]:
    """Report this thread's calls of a method of this object to `tap`; returns how to stop."""
    key, tap = (id(thing), name), tap._replace(thread=threading.get_ident())
    undo = _report_calls(thing, name)
    with _lock:
        _taps[key] = ref(thing), (*_find_present(thing, name), tap)
    return partial(_stop_listening, key, tap, undo)


def _stop_listening(key: tuple[int, str], tap: Tap, undo: Callable[[], None]) -> None:
    """May be called again: the second time it does nothing."""
    with _lock:
        is_removed = _remove_tap(key, tap)
    if is_removed:
        undo()


def listen_to_all(things: Iterable[Any], name: str, tap: Tap) -> Callable[[], None]:
    """The same for many objects at once, whose calls of that name are reported by other means."""
    things = list(things)
    tap = tap._replace(thread=threading.get_ident())
    crowd = _Crowd(name, frozenset(map(id, things)), things, tap)
    with _lock:
        _crowds.append(crowd)

    def stop() -> None:
        with _lock:
            _crowds[:] = [each for each in _crowds if each is not crowd]

    return stop


def listen_to_each(things: Iterable[Any], name: str, tap: Tap) -> Callable[[], None]:
    """`listen` for many objects at once: a class is made to report their calls once."""
    things = list(things)
    owners = {id(thing if name in vars(thing) else type(thing)): thing for thing in things}
    undo = [_report_calls(thing, name) for thing in owners.values()]
    undo.append(listen_to_all(things, name, tap))

    def stop() -> None:
        while undo:
            undo.pop()()

    return stop


def _remove_tap(key: tuple[int, str], tap: Tap) -> bool:
    """Whether the tap was there."""
    known, present = _taps.get(key, (None, ()))
    left = tuple(each for each in present if each is not tap)
    if len(left) == len(present):
        return False
    if known is not None and left:
        _taps[key] = known, left
    else:
        del _taps[key]
    return True


def _find_present(thing: Any, name: str) -> tuple[Tap, ...]:
    known, present = _taps.get((id(thing), name), (None, ()))
    return present if known is not None and known() is thing else ()


def find_taps(thing: Any, name: str) -> list[Tap]:
    """The listeners to a method of this object in this thread."""
    present = _find_present(thing, name)
    if _crowds:
        here = (each.tap for each in _crowds[:] if each.name == name and id(thing) in each.ids)
        present = (*present, *here)
    if not present:
        return []
    only = _running.__dict__.get("only")
    return [
        tap
        for tap in present
        if tap.thread == threading.get_ident() and (only is None or tap.group == only)
    ]


@contextmanager
def only_group(group: str) -> Iterator[None]:
    """Notify the taps of one group alone, in this thread."""
    before = _running.__dict__.get("only")
    _running.only = group
    try:
        yield
    finally:
        _running.only = before


def _report_calls(thing: Any, name: str) -> Callable[[], None]:
    if name in vars(thing):
        return replace_method(thing, name, partial(_OwnMethod, thing, name))
    owner = next((kind for kind in type(thing).__mro__ if name in vars(kind)), None)
    if owner is None:  # nothing calls it
        return lambda: None
    return replace_method(owner, name, partial(_wrap_method, name))


def _wrap_method(name: str, original: Any) -> Any:
    @wraps(original)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        taps = find_taps(self, name)
        if not taps:
            return original(self, *args, **options)
        return _call_and_report(self, name, taps, partial(original, self), args, options)

    return method


class _OwnMethod:
    """The same for a method that an object has of its own; copies carry that one, not ours."""

    def __init__(self, thing: Any, name: str, original: Any) -> None:
        self.thing, self.name, self.original = ref(thing), name, original
        wraps(original)(self)

    def __call__(self, *args: Any, **options: Any) -> Any:
        thing = self.thing()
        taps = find_taps(thing, self.name)
        if not taps:
            return self.original(*args, **options)
        return _call_and_report(thing, self.name, taps, self.original, args, options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return deepcopy(self.original, memo)

    def __reduce__(self) -> Any:
        return getattr, (SimpleNamespace(original=self.original), "original")


def _call_and_report(
    thing: Any, name: str, taps: list[Tap], call: Any, args: tuple, options: dict[str, Any]
) -> Any:
    active: set[tuple[int, str]] = _running.__dict__.setdefault("active", set())
    key = id(thing), name
    if key in active:  # by super(): already reported
        return call(*args, **options)
    active.add(key)
    out, notified = FAILED, []
    try:
        for tap in taps:
            notified.insert(0, tap)
            tap.notify(tap.before, thing, args, options)
        for tap in taps:
            if tap.around is not None:
                call = surround(call, thing, tap.around)
        out = call(*args, **options)
    finally:
        active.discard(key)
        for tap in notified:
            tap.notify(tap.after, thing, args, options, out)
    return out


def surround(
    call: Callable[..., Any], thing: Any, around: Callable[..., Any]
) -> Callable[..., Any]:
    """A method as a tap computes it."""
    return lambda *args, **options: around(call, thing, args, options)
