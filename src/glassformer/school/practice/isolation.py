"""What a learner's process can reach: as little as the system lets us enforce.

| system | files | network, processes | solutions |
|---|---|---|---|
| Linux 5.13+: Landlock, seccomp | the Python installation, read only | none | out of reach |
| older Linux, macOS | what the audit hook in `limits` lets by | the same | can be read on purpose |

The second row is a learning aid: it stops accidents and shortcuts, not a program written to get
around it.
"""

import contextlib
import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from glassformer.school.practice.landlock import Ruleset, landlock_version
from glassformer.school.practice.seccomp import refuse_calls, seccomp_is_available

LANDLOCK, SECCOMP = "landlock", "seccomp"
LAYERS = (LANDLOCK, SECCOMP)
_PACKAGE = Path(__file__).parents[2]
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/random", "/dev/zero")


def available_layers() -> tuple[str, ...]:
    """The layers that `isolate` would apply on this system."""
    found = {LANDLOCK: landlock_version() > 0, SECCOMP: seccomp_is_available()}
    return tuple(layer for layer in LAYERS if found[layer])


def isolate() -> tuple[str, ...]:
    """Shut this process in, for good; returns the layers that the system offers."""
    layers = []
    with contextlib.suppress(OSError):
        if landlock_version():
            with Ruleset() as rules:
                rules.allow_reading(readable_paths())
                rules.allow_writing([Path(os.devnull)])
                rules.apply()
            layers.append(LANDLOCK)
    with contextlib.suppress(OSError):
        if seccomp_is_available():
            refuse_calls()
            layers.append(SECCOMP)
    return tuple(layers)


@cache
def readable_paths() -> tuple[Path, ...]:
    """Everything that Python may have to load, except this package, wherever it is installed."""
    paths = sysconfig.get_paths()
    roots = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    roots += [*sys.path, *_SYSTEM, f"{sys.base_prefix}/lib", f"{sys.prefix}/lib"]
    folders = {Path(root).resolve() for root in roots if root}
    closed = {folder / _PACKAGE.name for folder in folders} | {_PACKAGE.resolve()}
    found = [path for folder in sorted(folders) for path in _paths_outside(folder, closed)]
    return (*dict.fromkeys(found), *map(Path, _FILES))


def _paths_outside(folder: Path, closed: set[Path]) -> Iterator[Path]:
    """A folder, or, where a closed one lies in it, all that is beside that."""
    if any(each == folder or each in folder.parents for each in closed):
        return
    if not any(folder in each.parents and each.exists() for each in closed):
        yield folder
        return
    with contextlib.suppress(OSError):
        for child in folder.iterdir():
            # A link may lead back; Landlock's rules hold for what it leads to.
            yield from _paths_outside(child.resolve(), closed)
