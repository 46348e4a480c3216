"""What the learner's process may say to the judge, checked word by word.

Learner's code runs in the process that sends, so nothing it sends is believed: each line must fit
the grammar below, at its place in the order, within its size. What does not fit is no fault of
parsing but a finding: the program interfered with grading. A forged line that does fit gains
nothing, since the judge compares values with a solution that the sender has never seen.

    ready, then for each case: begin n, case n; at the end: done, or at any point: stop
    for a case to be followed step by step: begin n, trail, and nothing after it
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from glassformer.school.practice.call_trail import MOST_STEPS, Step
from glassformer.school.practice.isolation import LAYERS
from glassformer.school.practice.outcome import FAILURES, Outcome
from glassformer.school.practice.plain_values import MOST_BYTES, MOST_TEXT, from_data, printable

MOST_SENT = 1 << 26  # bytes of all messages together
MOST_LINE = 2 * MOST_BYTES  # of one of them: base64 takes a third more, names a little
MOST_MESSAGE = 300  # characters of an error
MOST_NAMES = 20
BLOCKED = ("files", "solutions", "processes", "network")
# Why a file never came to its end, as its own process can know it.
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
    trail: tuple[Step, ...] = ()
    stop: dict[str, Any] | None = None
    done: bool = False
    _ready: bool = False
    _begun: int = 0

    def add(self, line: bytes, n_cases: int) -> None:
        """Take one line, or raise Interference."""
        if self.done or self.stop is not None:
            _refuse("nothing follows the end")
        message = _parsed(line)
        match list(message):
            case ["ready"] if not self._ready:
                self.isolation, self._ready = _layers(message["ready"]), True
            case ["begin"] if self._ready and self._begun == len(self.got):
                _is_next(message["begin"], self._begun, n_cases)
                self._begun += 1
            case ["case", "outcome"] if self._begun == len(self.got) + 1:
                _is_next(message["case"], len(self.got), n_cases)
                self.got.append(_outcome(message["outcome"]))
            case ["trail"] if self._begun == len(self.got) + 1:
                self.trail, self.done = _steps(message["trail"]), True
            case ["done"] if len(self.got) == self._begun == n_cases:
                self.done = True
            case ["stop", *_]:
                self.stop = {**_stop(message), "begun": self._begun > 0}
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
    return printable(" ".join(begin.split())[:MOST_MESSAGE])


def _refuse(why: str) -> NoReturn:
    raise Interference(why)


def _parsed(line: bytes) -> dict[str, Any]:
    if len(line) > MOST_LINE:
        _refuse("too long")
    try:
        message = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        _refuse("not JSON")
    if not isinstance(message, dict):
        _refuse("not an object")
    return message


def _is_next(number: Any, expected: int, n_cases: int) -> None:
    if type(number) is not int or number != expected or number >= n_cases:
        _refuse("not the next case")


def _layers(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(name in LAYERS for name in names):
        _refuse("unknown isolation")
    return tuple(names)


def _outcome(data: Any) -> Outcome:
    _has(data, ("value", "failure", "error", "message", "line"))
    failure = data["failure"]
    if failure not in FAILURES or (data["value"] is None) != bool(failure):
        _refuse("neither a value nor a failure")
    return Outcome(
        value=None if data["value"] is None else _value(data["value"]),
        failure=failure,
        error=_text(data["error"]),
        message=_text(data["message"]),
        line=_line(data["line"]),
    )


def _value(data: Any) -> Any:
    try:
        return from_data(data)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Interference("not a value") from error


def _steps(data: Any) -> tuple[Step, ...]:
    if not isinstance(data, list) or len(data) > MOST_STEPS:
        _refuse("too many steps")
    return tuple(map(_step, data))


def _step(data: Any) -> Step:
    _has(data, ("name", "defined", "line", "depth", "given", "result"))
    if type(data["depth"]) is not int or not isinstance(data["given"], list):
        _refuse("not a step")
    return Step(
        name=_text(data["name"]),
        defined=_line(data["defined"]) or 1,
        line=_line(data["line"]),
        depth=data["depth"],
        given=tuple(map(_value, data["given"])),
        result=None if data["result"] is None else _value(data["result"]),
    )


def _stop(message: Mapping[str, Any]) -> dict[str, Any]:
    known = {"stop", "message", "line", "names", "error"}
    kind = message["stop"]
    if kind not in STOPS or not set(message) <= known:
        _refuse("unknown stop")
    stop = {
        "stop": kind,
        "message": _text(message.get("message", "")),
        "error": _text(message.get("error", "")),
        "names": _names(message.get("names", [])),
        "line": _line(message.get("line")),
    }
    if kind == "blocked" and stop["message"] not in BLOCKED:
        _refuse("unknown block")
    return stop


def _names(names: Any) -> list[str]:
    if not isinstance(names, list) or len(names) > MOST_NAMES:
        _refuse("too many names")
    return [_text(name) for name in names]


def _has(data: Any, names: Sequence[str]) -> None:
    if not isinstance(data, dict) or set(data) != set(names):
        _refuse("other fields")


def _text(text: Any) -> str:
    if not isinstance(text, str) or len(text) > MOST_TEXT or not text.isprintable():
        _refuse("not a line of text")
    return text


def _line(number: Any) -> int | None:
    if number is not None and (type(number) is not int or not 0 < number < 1 << 31):
        _refuse("not a line number")
    return number
