"""The faults of an exercise, tried by judges who share what is expected.

A grading takes several processes for one file that nobody knows. Faults are code of our own: here
one process runs them all, and one judge serves all that get the same inputs. They may loop or die
nevertheless, so call this in a process that may be ended.
"""

import resource
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any

from glassformer.school.practice.exercise import EXERCISES, Exercise
from glassformer.school.practice.judge import Judge
from glassformer.school.practice.limits import (
    MEMORY,
    AuditGuard,
    TimeUp,
    address_space,
    start_clock,
    stop_clock,
)
from glassformer.school.practice.originals import Originals
from glassformer.school.practice.outcome import Outcome
from glassformer.school.practice.report import SOLUTION, STUB, GradingReport
from glassformer.school.practice.runner import find_refusal, run_trusted
from glassformer.school.practice.stops import report_stop

_STOPPED = Outcome(failure="raised", error="stopped")  # like nothing that code raises
_FEW = 2  # cases, which tell most faults from each other
Send = Callable[[dict[str, Any]], None]


def try_faults(exercise: Exercise, seeds: Sequence[int], send: Send) -> None:
    """Judge the solution, a stub with a planted fault, and every fault, with inputs of each seed.

    What is about to run is sent first, so that whoever waits knows what did not come back. The
    last message is `done`, or what stopped all the rest.
    """
    most = address_space() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    warnings.simplefilter("ignore")
    sources = {SOLUTION: exercise.solution}
    sources |= {fault.name: fault.source for fault in exercise.faults()}
    if exercise.planted is not None:
        sources[STUB] = exercise.stub
    first, *others = seeds
    stopped = _try_wholly(exercise, sources, first, send)
    if stopped is None:
        return
    for seed in others:
        _try_briefly(exercise, sources, stopped, seed, send)
    send({"done": True})


def _try_wholly(
    exercise: Exercise, sources: Mapping[str, str], seed: int, send: Send
) -> set[str] | None:
    """Run each source as a learner's file is run; returns which of them stopped.

    None if one left behind what would spoil the next.
    """
    watch, originals = AuditGuard(closed=(EXERCISES,)), Originals([])
    sys.addaudithook(watch)
    send({"begin": SOLUTION, "seed": seed})
    judge = Judge(exercise, exercise.solution, seed)
    ran: dict[str, tuple[list[Outcome], dict[str, Any] | None]] = {}
    for subject, source in sources.items():
        send({"begin": subject, "seed": seed})
        if (stop := find_refusal(exercise, exercise.file_name, source)) is not None:
            ran[subject] = [], stop
        else:
            ran[subject] = run_trusted(exercise, source, judge.cases, watch)
        if replaced := originals.find_replaced():
            stop = {"stop": "replaced", "message": replaced}
            send({"begin": subject, "seed": seed, "stop": stop})
            return None
        got, stop = ran[subject]
        # It runs again to be compared with itself, unless it would not come back.
        judge.known[source] = judge.load(source) if stop is None else partial(_recall, got)
    for subject, source in sources.items():
        send({"begin": subject, "seed": seed})
        _send_report(subject, seed, judge.share(source).report(*ran[subject]), send)
    return {subject for subject, (_, stop) in ran.items() if stop is not None}


def _try_briefly(
    exercise: Exercise, sources: Mapping[str, str], stopped: Set[str], seed: int, send: Send
) -> None:
    """Run each source on as many cases as tell it from the solution and from the other faults.

    Not those that stopped before: they may loop, and once is enough.
    """
    send({"begin": SOLUTION, "seed": seed})
    judge = Judge(exercise, exercise.solution, seed)
    absent = partial(_recall, ())
    judge.known = {
        source: absent if subject in stopped else judge.load(source)
        for subject, source in sources.items()
    }
    for subject, source in sources.items():
        if subject in stopped:
            continue
        send({"begin": subject, "seed": seed})
        name = exercise.planted if subject == STUB else subject
        n_cases = len(judge.cases) if subject == SOLUTION else _FEW
        start_clock(exercise.seconds)
        try:
            report = _report_cases(judge.share(source), n_cases)
            while report.faults != (name,) and n_cases < len(judge.cases):
                n_cases *= 2
                report = _report_cases(judge.share(source), n_cases)
        except BaseException as error:
            judge.known[source] = absent
            raised = {"stop": "raised", "error": type(error).__name__}
            report = report_stop(exercise, {"stop": "time"} if type(error) is TimeUp else raised)
        finally:
            stop_clock()
        _send_report(subject, seed, report, send)


def _report_cases(judge: Judge, n_cases: int) -> GradingReport:
    outcome = judge.known[judge.source]
    return judge.report([outcome(i) for i in range(min(n_cases, len(judge.cases)))], None)


def _recall(got: Sequence[Outcome], number: int) -> Outcome:
    return got[number] if number < len(got) else _STOPPED


def _send_report(subject: str, seed: int, report: GradingReport, send: Send) -> None:
    data = replace(report, tables=None).as_data()
    send({"subject": subject, "seed": seed, "report": data})
