"""What the learner's process may say to the judge, checked word by word.

Learner's code runs in the process that sends, so nothing it sends is believed: each line must fit
the grammar below, at its place in the order, within its size. What does not fit is no fault of
parsing but a finding: the program interfered with grading. A forged line that does fit gains
nothing, since the judge compares values with a solution that the sender has never seen.

    ready, then for each case: begin n, case n; at the end: done, or at any point: stop
    for a case to be followed step by step: ready, then trail with weights and repairs
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from glassformer.school.practice.call_trail import (
    MOST_STEPS,
    MOST_VALUES,
    TrailStep,
    TrailValue,
)
from glassformer.school.practice.isolation import LAYERS
from glassformer.school.practice.outcome import FAILURES, Outcome
from glassformer.school.practice.plain_values import (
    MOST_BYTES,
    MOST_TEXT,
    from_data,
    replace_unprintable,
)
from glassformer.school.practice.source_repairs import MOST_REPAIRS

MOST_SENT = 1 << 26  # bytes of all messages together
MOST_LINE = 2 * MOST_BYTES  # of one of them: base64 takes a third more, names a little
MOST_MESSAGE = 300  # characters of an error
MOST_NAMES = 20
BLOCKED = ("files", "solutions", "processes", "network")
# Why a file did not run to its end, as far as its own process knows.
STOPS = (
    "syntax",
    "forbidden",
    "required",
    "missing",
    "import",
    "raised",
    "time",
    "exit",
    "memory",
    "blocked",
    "replaced",
    "switched",
)


class Interference(Exception):
    """A message that our own code would never send."""


@dataclass(slots=True)
class Transcript:
    """What was sent, as far as it makes sense."""

    isolation: tuple[str, ...] = ()
    got: list[Outcome] = field(default_factory=list)
    trail: tuple[TrailStep, ...] = ()
    weights: Outcome | None = None  # what came out with v = identity
    repairs: tuple[int, ...] = ()  # the number of a change, and how many cases hold after it
    stop: dict[str, Any] | None = None
    done: bool = False
    _ready: bool = False
    _begun: int = 0

    def add(self, line: bytes, n_cases: int) -> None:
        """Take one line, or raise Interference."""
        if self.done or self.stop is not None:
            _refuse("nothing follows the end")
        message = _parse(line)
        match list(message):
            case ["ready"] if not self._ready:
                self.isolation, self._ready = _read_layers(message["ready"]), True
            case ["begin"] if self._ready and self._begun == len(self.got):
                _check_next(message["begin"], self._begun, n_cases)
                self._begun += 1
            case ["case", "outcome"] if self._begun == len(self.got) + 1:
                _check_next(message["case"], len(self.got), n_cases)
                self.got.append(read_outcome(message["outcome"]))
            case ["trail", "weights", "repairs"] if self._ready and self._begun == 0:
                self.trail, self.done = _read_steps(message["trail"]), True
                self.repairs = _read_repairs(message["repairs"])
                if message["weights"] is not None:
                    self.weights = read_outcome(message["weights"])
            case ["done"] if len(self.got) == self._begun == n_cases:
                self.done = True
            case ["stop", *_]:
                self.stop = {**_read_stop(message), "begun": self._begun > 0}
            case _:
                _refuse("out of order")


def read_transcript(sent: bytes, n_cases: int) -> Transcript:
    """All lines that were sent; the last one may be cut off, if its process was ended."""
    transcript = Transcript()
    *lines, _ = sent.split(b"\n")
    for line in lines:
        transcript.add(line, n_cases)
    return transcript


def one_line(text: object) -> str:
    """One short line, as an error or a name is sent."""
    begin = str(text)[: 4 * MOST_MESSAGE]  # a hundred megabytes are not looked through
    return replace_unprintable(" ".join(begin.split())[:MOST_MESSAGE])


def _refuse(why: str) -> NoReturn:
    raise Interference(why)


def _parse(line: bytes) -> dict[str, Any]:
    if len(line) > MOST_LINE:
        _refuse("too long")
    try:
        message = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        _refuse("not JSON")
    if not isinstance(message, dict):
        _refuse("not an object")
    return message


def _check_next(number: Any, expected: int, n_cases: int) -> None:
    if type(number) is not int or number != expected or number >= n_cases:
        _refuse("not the next case")


def _read_layers(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(name in LAYERS for name in names):
        _refuse("unknown isolation")
    return tuple(names)


def read_outcome(data: Any) -> Outcome:
    """An outcome as data, checked."""
    _check_fields(data, ("value", "failure", "error", "message", "line"))
    failure = data["failure"]
    if failure not in FAILURES or (data["value"] is None) != bool(failure):
        _refuse("neither a value nor a failure")
    return Outcome(
        value=None if data["value"] is None else _read_value(data["value"]),
        failure=failure,
        error=_read_text(data["error"]),
        message=_read_text(data["message"]),
        line=_read_line(data["line"]),
    )


def _read_value(data: Any) -> Any:
    try:
        return from_data(data)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Interference("not a value") from error


def _read_steps(data: Any) -> tuple[TrailStep, ...]:
    if not isinstance(data, list) or len(data) > MOST_STEPS:
        _refuse("too many steps")
    return tuple(map(_read_step, data))


def _read_repairs(data: Any) -> tuple[int, ...]:
    if not isinstance(data, list) or len(data) not in (0, 2):
        _refuse("not a repair")
    if any(type(each) is not int or not 0 <= each < MOST_REPAIRS for each in data):
        _refuse("no number of a repair")
    return tuple(data)


def _read_step(data: Any) -> TrailStep:
    _check_fields(data, ("name", "defined", "line", "depth", "given", "result", "values"))
    if type(data["depth"]) is not int or not isinstance(data["given"], list):
        _refuse("not a step")
    if not isinstance(data["values"], list) or len(data["values"]) > MOST_VALUES:
        _refuse("too many values")
    return TrailStep(
        name=_read_text(data["name"]),
        defined=_read_line(data["defined"]) or 1,
        line=_read_line(data["line"]),
        depth=data["depth"],
        given=tuple(map(_read_value, data["given"])),
        result=None if data["result"] is None else _read_value(data["result"]),
        values=tuple(map(_read_trail_value, data["values"])),
    )


def _read_trail_value(data: Any) -> TrailValue:
    _check_fields(data, ("name", "line", "value"))
    line = _read_line(data["line"])
    return TrailValue(_read_text(data["name"]), line or 1, _read_value(data["value"]))


def _read_stop(message: Mapping[str, Any]) -> dict[str, Any]:
    known = {"stop", "message", "line", "names", "error"}
    kind = message["stop"]
    if kind not in STOPS or not set(message) <= known:
        _refuse("unknown stop")
    stop = {
        "stop": kind,
        "message": _read_text(message.get("message", "")),
        "error": _read_text(message.get("error", "")),
        "names": _read_names(message.get("names", [])),
        "line": _read_line(message.get("line")),
    }
    if kind == "blocked" and stop["message"] not in BLOCKED:
        _refuse("unknown block")
    return stop


def _read_names(names: Any) -> list[str]:
    if not isinstance(names, list) or len(names) > MOST_NAMES:
        _refuse("too many names")
    return [_read_text(name) for name in names]


def _check_fields(data: Any, names: Sequence[str]) -> None:
    if not isinstance(data, dict) or set(data) != set(names):
        _refuse("other fields")


def _read_text(text: Any) -> str:
    if not isinstance(text, str) or len(text) > MOST_TEXT or not text.isprintable():
        _refuse("not a line of text")
    return text


def _read_line(number: Any) -> int | None:
    if number is not None and (type(number) is not int or not 0 < number < 1 << 31):
        _refuse("not a line number")
    return number
