"""The faults of an exercise, tried by judges who share what is expected.

A grading takes several processes for one file that nobody knows. Faults are code of our own: here
one process runs them all, and one judge serves all that get the same inputs. They may loop or die
nevertheless, so call this in a process that may be ended.
"""

import resource
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from glassformer.school.practice.exercise import EXERCISES, Exercise
from glassformer.school.practice.judge import Judge
from glassformer.school.practice.limits import MEMORY, AuditGuard, address_space
from glassformer.school.practice.originals import Originals
from glassformer.school.practice.outcome import Outcome
from glassformer.school.practice.report import SOLUTION, STUB
from glassformer.school.practice.runner import find_refusal, run_trusted

_STOPPED = Outcome(failure="raised", error="stopped")  # like nothing that code raises


def try_faults(
    exercise: Exercise, seeds: Sequence[int], send: Callable[[dict[str, Any]], None]
) -> None:
    """Judge the solution, a stub with a planted fault, and every fault, with inputs of each seed.

    What is about to run is sent first, so that whoever waits knows what did not come back. The
    last message is `done`, or what stopped all the rest.
    """
    most = address_space() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    warnings.simplefilter("ignore")
    watch, originals = AuditGuard(closed=(EXERCISES,)), Originals([])
    sys.addaudithook(watch)
    faults = {fault.name: fault.source for fault in exercise.faults()}
    sources = {SOLUTION: exercise.solution, **faults}
    if exercise.planted is not None:
        sources[STUB] = exercise.stub
    refused = {
        subject: find_refusal(exercise, exercise.file_name, source)
        for subject, source in sources.items()
    }
    for seed in seeds:
        is_first = seed == seeds[0]
        # Which functions code calls hardly depends on its inputs, and to watch them is slow.
        guarded = exercise if is_first else replace(exercise, forbid=())
        send({"begin": SOLUTION, "seed": seed})
        judge = Judge(exercise, exercise.solution, seed)
        ran: dict[str, tuple[list[Outcome], dict[str, Any] | None]] = {}
        for subject, source in sources.items():
            send({"begin": subject, "seed": seed})
            if (stop := refused[subject]) is not None:
                ran[subject] = [], stop
            else:
                ran[subject] = run_trusted(guarded, source, judge.cases, watch)
            if replaced := originals.find_replaced():  # nothing that follows can be trusted
                stop = {"stop": "replaced", "message": replaced}
                send({"begin": subject, "seed": seed, "stop": stop})
                return
        for name, source in faults.items():
            got, stop = ran[name]
            # Run again only once: code that does now this and now that shows at once.
            is_rerun = is_first and stop is None
            judge.known[source] = judge.load(source) if is_rerun else partial(_recall, got)
        for subject, source in sources.items():
            send({"begin": subject, "seed": seed})
            report = replace(judge.share(source).report(*ran[subject]), tables=None)
            send({"subject": subject, "seed": seed, "report": report.as_data()})
    send({"done": True})


def _recall(got: Sequence[Outcome], number: int) -> Outcome:
    return got[number] if number < len(got) else _STOPPED
