"""Linux seccomp: system calls that a process gives up for good.

A list of refusals, not of permissions: which calls Python, torch and libc need differs between
their versions; which ones start processes, open sockets or reach into others does not. Refused
calls fail with EPERM, so Python raises PermissionError. Written by hand because the maintained
binding ships with the C library libseccomp, not on PyPI; a filter is an array of comparisons.
https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

import ctypes
import errno
import os
import platform
import struct
import sys

from glassformer.school.practice.landlock import forgo_privileges

_PR_GET_SECCOMP, _PR_SET_SECCOMP, _MODE_FILTER = 21, 22, 2
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
# Classic BPF: load a word, jump if equal, if any bit is set, if at least; return.
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # in struct seccomp_data
_CLONE_THREAD = 0x00010000
_X32 = 0x40000000  # on x86-64, the numbers of another calling convention begin here
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NONE = -1  # this architecture has no such call
# name: (x86_64, aarch64)
REFUSED: dict[str, tuple[int, int]] = {
    # other processes: start, signal, trace, read
    "fork": (57, NONE),
    "vfork": (58, NONE),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    # the network, and io_uring, which would do all of this behind the filter
    "socket": (41, 198),
    "socketpair": (53, 199),
    "io_uring_setup": (425, 425),
    # what Landlock does not cover: owners, permissions, times, attributes
    "chmod": (90, NONE),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, NONE),
    "fchown": (93, 55),
    "lchown": (94, NONE),
    "fchownat": (260, 54),
    "utime": (132, NONE),
    "utimes": (235, NONE),
    "futimesat": (261, NONE),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    # the machine, for whoever practises as root
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "sethostname": (170, 161),
    "add_key": (248, 217),
    "keyctl": (250, 219),
}
# Refused unless the first argument says otherwise.
CLONE, CLONE3, TGKILL = (56, 220), (435, 435), (234, 131)


def seccomp_is_available() -> bool:
    """Whether this system can filter system calls, and we know its numbers."""
    if not sys.platform.startswith("linux") or platform.machine() not in _AUDIT:
        return False
    return ctypes.CDLL(None).prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0


def refuse_calls() -> None:
    """Give up the calls above, in this thread and in what it starts; there is no way back."""
    program = _program(platform.machine(), os.getpid())
    array = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in program))
    # struct sock_fprog: how many steps, and where they are.
    head = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(array)))
    forgo_privileges()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, head, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _program(machine: str, pid: int) -> list[tuple[int, int, int, int]]:
    """The filter as steps: what to do, how far to jump if so and if not, with which number."""
    column = list(_AUDIT).index(machine)
    refuse = (_RETURN, 0, 0, _FAIL | errno.EPERM)
    allow = (_RETURN, 0, 0, _ALLOW)
    steps = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, _AUDIT[machine]), refuse]
    steps.append((_LOAD, 0, 0, _NUMBER))
    if machine == "x86_64":
        steps += [(_AT_LEAST, 0, 1, _X32), refuse]
    for numbers in REFUSED.values():
        if numbers[column] != NONE:
            steps += [(_EQUAL, 0, 1, numbers[column]), refuse]
    # Its flags lie in memory, where a filter cannot look: libc then falls back to clone.
    steps += [(_EQUAL, 0, 1, CLONE3[column]), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    steps += [(_EQUAL, 0, 4, CLONE[column]), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    steps += [(_ANY_BIT, 0, 1, _CLONE_THREAD), allow, refuse]
    # Whoever aborts sends a signal to himself.
    steps += [(_EQUAL, 0, 4, TGKILL[column]), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    steps += [(_EQUAL, 0, 1, pid), allow, refuse]
    return [*steps, allow]
