"""Stops one thread of a program, and only that: a loop that hangs."""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

# From sys/ptrace.h and sys/wait.h.
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_LIBC.ptrace.restype = ctypes.c_long


def _trace(request: int, thread: int) -> None:
    if _LIBC.ptrace(request, thread, None, None) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{os.strerror(code)}: is CAP_SYS_PTRACE missing?")


@contextmanager
def stopped(process: int, name: str) -> Iterator[None]:
    """Stops the thread of that name until the end of the block."""
    threads = [int(one.parent.name) for one in Path(f"/proc/{process}/task").glob("*/comm") if one.read_text().strip() == name]
    assert len(threads) == 1, f"threads with the name {name}: {threads}"
    _trace(PTRACE_SEIZE, threads[0])
    try:
        _trace(PTRACE_INTERRUPT, threads[0])
        os.waitpid(threads[0], WALL)
        yield
    finally:
        _trace(PTRACE_DETACH, threads[0])
