"""Where learners' code is run: a grader that is kept, and a thread that can be given up.

Learners' code runs where the grader shuts it in: a process of its own, without files, network and
other processes, with so much time and memory. The thread that waits for it can be given up at any
moment, and then the grader ends with everything that it has started.
"""

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

from glassformer.school.practice.grading import Grader

Result = TypeVar("Result")
_BLINK = 0.1  # seconds between two looks at whether anybody still waits
graders: list[Grader] = []  # none or one: it has torch loaded, and is kept for the next check


def run_with_grader(run: Callable[[Grader], Result], look: Callable[[], None]) -> Result:
    """What `run` returns, in a thread; `look` is called here meanwhile, and may raise to end it."""
    if not graders:
        graders.append(Grader())
    grader = graders[0]
    found: list[Result] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(run(grader))
        except BaseException as error:  # re-raised in the waiting thread
            failed.append(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            look()
            thread.join(_BLINK)
    except BaseException:
        graders.clear()
        grader.close()
        raise
    if failed:
        raise failed[0]
    return found[0]
