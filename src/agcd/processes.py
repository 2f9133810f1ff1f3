"""What the systems do differently with processes: whether one lives, how one is ended, started apart, made to wait.

Windows has neither sessions nor signals nor niceness: its own calls are made through ``ctypes``.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

APART: dict[str, Any] = {
    "start_new_session": True,
    "creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0),
}
"""Options of ``subprocess.Popen``: neither Ctrl-C nor closing the window of this process reaches the other."""
ENDINGS: tuple[signal.Signals, ...] = (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM))
"""The signals that end a process: first the friendly one."""
_WINDOWS = os.name == "nt"
_QUERY, _STILL_ACTIVE, _BELOW_NORMAL, _ACCESS_DENIED = 0x1000, 259, 0x4000, 5


def is_running(pid: int) -> bool:
    """Whether a process with this number lives, whoever's it is."""
    if _WINDOWS:  # where signal 0 is Ctrl-C
        return _is_running_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def step_back(niceness: int) -> None:
    """Let whatever else runs on this machine go first; 0 is not at all."""
    if _WINDOWS:
        if niceness > 0:
            kernel = _kernel()
            kernel.SetPriorityClass(kernel.GetCurrentProcess(), _BELOW_NORMAL)
        return
    with suppress(OSError):  # where sessions share the machine fairly, this is the word that counts (Linux)
        Path("/proc/self/autogroup").write_text(str(niceness), encoding="ascii")
    # Linux counts every thread for itself, others the process: 0 is the caller.
    tasks = Path("/proc/self/task")
    for number in [int(thread.name) for thread in tasks.iterdir()] if tasks.is_dir() else [0]:
        with suppress(OSError):  # it may have ended
            os.setpriority(os.PRIO_PROCESS, number, niceness)


def _is_running_on_windows(pid: int) -> bool:
    import ctypes

    kernel, code = _kernel(), ctypes.c_ulong()
    handle = kernel.OpenProcess(_QUERY, False, pid)
    if not handle:
        return bool(ctypes.get_last_error() == _ACCESS_DENIED)  # type: ignore[attr-defined]  # somebody else's
    try:
        return bool(kernel.GetExitCodeProcess(handle, ctypes.byref(code))) and code.value == _STILL_ACTIVE
    finally:
        kernel.CloseHandle(handle)


def _kernel() -> Any:
    """Windows' own functions; handles are as wide as pointers, which ctypes must be told."""
    import ctypes

    kernel = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]
    kernel.OpenProcess.restype = kernel.GetCurrentProcess.restype = ctypes.c_void_p
    kernel.GetExitCodeProcess.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    kernel.SetPriorityClass.argtypes = [ctypes.c_void_p, ctypes.c_ulong]
    kernel.CloseHandle.argtypes = [ctypes.c_void_p]
    return kernel
