"""Landlock and seccomp on this system: what is given up is gone, what Python needs is not."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from glassformer.school.practice import exercise, landlock
from glassformer.school.practice.isolation import readable_paths
from glassformer.school.practice.landlock import landlock_version
from glassformer.school.practice.seccomp import _program, seccomp_is_available

PACKAGE = Path(landlock.__file__).parents[2]


def isolated(body):
    """Run code in a process that has shut itself in; returns what it prints."""
    code = "import ctypes, errno, os, socket, subprocess, sys\nimport numpy\n"
    code += "from glassformer.school.practice import seccomp\n"
    code += "from glassformer.school.practice.isolation import isolate\nlayers = isolate()\n"
    words = [sys.executable, "-c", code + textwrap.dedent(body)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_files_are_out_of_reach_but_for_pythons_own(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x")
    solution = exercise.EXERCISES / "05_attention" / "solution.py"
    said = isolated(f"""
        for path, flags in (({str(secret)!r}, os.O_RDONLY), ({str(solution)!r}, os.O_RDONLY),
                            ({str(tmp_path / "new")!r}, os.O_CREAT | os.O_WRONLY),
                            ({str(secret)!r}, os.O_WRONLY), ("/proc/self/mem", os.O_RDWR)):
            try: os.open(path, flags)
            except PermissionError: print("refused")
        print(open(os.__file__).readable(), open(os.devnull, "w").writable())
        import xml.dom.minidom
    """)
    assert said == ["refused"] * 5 + ["True", "True"]
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


@pytest.mark.skipif(not seccomp_is_available(), reason="this system cannot filter calls")
def test_every_call_on_the_list_is_refused():
    said = isolated("""
        libc = ctypes.CDLL(None, use_errno=True)
        column = list(seccomp._AUDIT).index(os.uname().machine)
        for name, numbers in seccomp.REFUSED.items():
            if numbers[column] != seccomp.NONE:
                # With arguments that would do nothing if the call were made.
                result = libc.syscall(numbers[column], -1, -1, -1, -1, -1, -1)
                if (result, ctypes.get_errno()) != (-1, errno.EPERM): print(name)
        for call in (os.fork, socket.socket, lambda: subprocess.run(["true"])):
            try: call()
            except PermissionError: print("refused")
        print(os.getpid() > 0)
    """)
    assert said == ["refused"] * 3 + ["True"]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_jump_of_the_filter_lands_in_it(machine):
    program = _program(machine, 7)
    for place, (_, if_so, if_not, _) in enumerate(program):
        assert place + 1 + max(if_so, if_not) < len(program) or place == len(program) - 1
    assert len(program) < 4096  # what the kernel takes


def test_our_package_is_not_among_the_readable_paths():
    for path in readable_paths():
        assert path not in (PACKAGE, *PACKAGE.parents) and PACKAGE not in path.parents
    assert any(path in Path(pytest.__file__).resolve().parents for path in readable_paths())


def test_no_landlock_is_version_zero(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert (landlock_version(), seccomp_is_available()) == (0, False)
    with pytest.raises(OSError, match="not supported"):
        landlock.Ruleset()
