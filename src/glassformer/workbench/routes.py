"""Which worker is to do a job: what belongs together meets what is remembered of it."""

from typing import Any, NamedTuple

from glassformer.workbench.library import Library, locate_sources


class Route(NamedTuple):
    """Which worker is to do a job.

    A job whose worker is held up by one that is apart goes to an idle worker, which makes the
    reading anew; unless it is bound to its own.
    """

    key: str | None  # one key, one worker; None: whichever has least to do
    is_bound: bool = False
    is_apart: bool = False  # may take a minute: beside the worker of its key, if there are two


ANYWHERE = Route(None)


def choose_route(name: str, arguments: dict[str, Any], library: Library) -> Route:
    """The route of a job; where the models are that it names is added to its arguments.

    What belongs together goes to one worker, which remembers the run; a large model is held by one
    worker alone. One worker keeps the learner's record, since two would overwrite each other;
    experiments and capstones wait for each other at another one.
    """
    sources = locate_sources(arguments, library)
    if name in ("learn/measure", "learn/join"):
        return Route("learn", is_apart=True)
    if name.startswith("learn/"):
        return Route("learn", is_bound=True)
    if arguments.get("model") is None:
        return ANYWHERE
    is_bound = any(each.is_large for each in sources)
    parts = ("model",) if is_bound else ("model", "text")
    return Route("\n".join(str(arguments.get(part, "")) for part in parts), is_bound=is_bound)
