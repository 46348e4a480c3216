"""Jobs for the tests of the pool: they live in worker processes."""

import os
import signal
import time
from typing import Any

from glassformer.errors import ConfigError

_KEPT: dict[str, Any] = {"calls": 0}


def handle(name: str, arguments: dict[str, Any], progress: Any) -> Any:
    _KEPT["calls"] += 1
    if name == "run":  # as the server asks: the text says what to do
        word, *rest = arguments["text"].split()
        if word == "steps":
            return handle("steps", {"n": int(rest[0])}, progress)
        if arguments["text"] in ("mistake", "fault", "die"):
            return handle(arguments["text"], {}, progress)
        return {"run": arguments}
    if name == "echo":
        return arguments
    if name == "who":
        return os.getpid()
    if name == "mistake":
        raise ConfigError("A number must be positive; got −1.")
    if name == "fault":
        raise ValueError("inside")
    if name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "steps":
        for i in range(arguments["n"]):
            progress(i / arguments["n"])
            time.sleep(0.01)
        return "all"
    if name == "grow":  # tells what it has before the end
        found: list[int] = []
        for i in range(arguments["n"]):
            if found:
                progress(i / arguments["n"], found)
            found.append(i)
        return found
    if name == "deaf":  # never looks up
        end = time.monotonic() + arguments["seconds"]
        while time.monotonic() < end:
            pass
        return "late"
    return _KEPT["calls"]
