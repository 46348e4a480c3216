"""Runs a function on several ranks: one process has imported all, and each rank is forked from it.

torchrun would start each from nothing, and importing takes most of such a process's time.
"""

import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable

import torch.distributed as dist


def run_ranks(n_ranks: int, main: Callable[[], None]) -> int:
    """The exit code of them all; each finds its number where torchrun puts it."""
    listener = socket.create_server(("127.0.0.1", 0))
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(listener.getsockname()[1]),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the store is this process's
        "WORLD_SIZE": str(n_ranks),
        "LOCAL_WORLD_SIZE": str(n_ranks),
    }
    pids = [_fork(rank, main, listener) for rank in range(n_ranks)]
    # Only now: threads do not survive a fork.
    port, fd = listener.getsockname()[1], listener.detach()
    store = dist.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
        "127.0.0.1", port, is_master=True, wait_for_workers=False, master_listen_fd=fd
    )
    code = _wait(set(pids))
    del store
    return code


def _wait(pids: set[int]) -> int:
    """The exit code of the first rank that fails, which ends the others; 0 if none does."""
    failed = 0
    while pids:
        pid, status = os.wait()
        pids.remove(pid)
        code = os.waitstatus_to_exitcode(status)
        if code and not failed:
            failed = abs(code)
            for other in pids:
                os.kill(other, signal.SIGKILL)
    return failed


def _fork(rank: int, main: Callable[[], None], listener: socket.socket) -> int:
    pid = os.fork()
    if pid:
        return pid
    listener.close()
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    code = 1
    try:
        main()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
