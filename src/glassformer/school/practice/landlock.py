"""Linux Landlock: a process gives up, for good, every file it has not named.

The three system calls, through ctypes. A binding of our own because PyPI has none that is kept:
what there is are development releases, and the interface is three calls that Linux never changes.
https://docs.kernel.org/userspace-api/landlock.html
"""

import ctypes
import errno
import os
import sys
from collections.abc import Iterable
from pathlib import Path

# The same numbers on every architecture.
_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_TRUNCATE = 1 << 14
# How many of the file rights each version knows: version 2 added REFER, 3 TRUNCATE, 5 IOCTL_DEV.
_N_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_N_FILE_RIGHTS_NOW = 16
_TCP = 0b11  # bind, connect: from version 4
_SCOPES = 0b11  # abstract sockets and signals to processes outside: from version 6
_PR_SET_NO_NEW_PRIVS = 38


class _RulesetAttr(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def landlock_version() -> int:
    """Which version of Landlock the kernel offers; 0 if none."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        return _call(_CREATE, None, 0, _VERSION_FLAG)
    except OSError:  # not built in, switched off, or refused by a container
        return 0


class Ruleset:
    """What this process may still do; everything else that Landlock knows of is refused.

    rules = Ruleset()
    rules.allow_reading([Path("/usr/lib")])
    rules.apply()
    """

    def __init__(self) -> None:
        version = landlock_version()
        if not version:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        n_rights = _N_FILE_RIGHTS.get(version, _N_FILE_RIGHTS_NOW)
        self._handled = (1 << n_rights) - 1
        wanted = _RulesetAttr(self._handled, _TCP * (version >= 4), _SCOPES * (version >= 6))
        size = 24 if version >= 6 else 16 if version >= 4 else 8
        self._descriptor = _call(_CREATE, ctypes.byref(wanted), size, 0)

    def allow_reading(self, paths: Iterable[Path]) -> None:
        """Allow files, and folders with all that is below them, to be read."""
        for path in paths:
            self._allow(path, _READ_FILE | _READ_DIR)

    def allow_writing(self, paths: Iterable[Path]) -> None:
        """Allow files to be read and written; nothing is created."""
        for path in paths:
            self._allow(path, _READ_FILE | _WRITE_FILE | _TRUNCATE)

    def _allow(self, path: Path, rights: int) -> None:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return  # what is not there need not be allowed
        try:
            # A file knows no rights of folders.
            rights &= self._handled if path.is_dir() else self._handled & ~_READ_DIR
            rule = _PathBeneathAttr(rights, descriptor)
            _call(_ADD_RULE, self._descriptor, _PATH_BENEATH, ctypes.byref(rule), 0)
        finally:
            os.close(descriptor)

    def apply(self) -> None:
        """Apply the rules to this thread and what it starts; there is no way back."""
        forgo_privileges()
        _call(_RESTRICT, self._descriptor, 0)

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> "Ruleset":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def forgo_privileges() -> None:
    """No program that this process starts gains rights; Linux asks for it before any filter."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = libc.syscall(ctypes.c_long(number), *given)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
