"""The process that forks for gradings: what it imports when, and how long it waits."""

import os
import signal
import subprocess
import sys

from glassformer.school.practice import find_exercise
from glassformer.school.practice.grading import Grader
from glassformer.school.practice.server import _read_all


def test_an_optimizer_works_in_the_very_first_grading():
    exercise = find_exercise("translate_letters")
    with Grader() as grader:
        assert grader.grade_source(exercise, exercise.solution).passed


def test_a_process_that_stays_silent_is_ended():
    read_end, write_end = os.pipe()
    words = [sys.executable, "-c", f"import os, time; os.write({write_end}, b'1'); time.sleep(600)"]
    with subprocess.Popen(words, pass_fds=[write_end]) as process:
        os.close(write_end)
        try:
            assert _read_all(read_end, process.pid, 3.0, renews=True) == (b"1", True)
            assert process.wait() == -signal.SIGKILL
        finally:
            process.kill()
    os.close(read_end)
