"""Windows and macOS, as far as Linux can tell: what only POSIX has is taken away, and what Windows says is played."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import agcd.io as agcd_io
from agcd import processes
from agcd.app.web import serve
from agcd.app.web.connections import Listener
from agcd.cli.demo import agcd_command
from agcd.cli.terminal import printable_output
from agcd.errors import ConfigError, StorageError
from agcd.io import atomic_write, read_json, write_json
from agcd.words import typed

IMPORT_ALL = """
import importlib, pkgutil, sys
class Missing:
    def find_spec(self, name, *more):
        if name in ("fcntl", "resource", "pwd", "grp", "termios", "torch", "torchvision"):
            raise ModuleNotFoundError(name, name=name)
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
import agcd
done = []
for found in pkgutil.walk_packages(agcd.__path__, "agcd."):
    if found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
        done.append(found.name)
    except ModuleNotFoundError as error:
        assert error.name in ("torch", "torchvision"), (found.name, error)
print(*done)
"""


def test_every_module_without_torch_can_be_loaded_where_posix_is_missing() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert {"agcd.cli", "agcd.app.jobs", "agcd.app.work", "agcd.app.web.serve"} <= loaded
    assert len(loaded) > 100


class Kernel:
    """What Windows' library would say: processes by number with their exit codes."""

    def __init__(self, codes: dict[int, int]) -> None:
        self.codes = codes
        self.priorities: list[tuple[int, int]] = []
        self.closed: list[int] = []
        for name in ("OpenProcess", "GetCurrentProcess", "GetExitCodeProcess", "SetPriorityClass", "CloseHandle"):
            setattr(self, name, self._function(getattr(self, f"_{name}")))

    @staticmethod
    def _function(call: Any) -> Any:
        class Function:
            def __call__(self, *arguments: Any) -> Any:
                return call(*arguments)

        return Function()

    def _OpenProcess(self, access: int, inherit: bool, pid: int) -> int:
        return pid if pid in self.codes else 0

    def _GetCurrentProcess(self) -> int:
        return -1

    def _GetExitCodeProcess(self, handle: int, code: Any) -> bool:
        code._obj.value = self.codes[handle]
        return True

    def _SetPriorityClass(self, handle: int, priority: int) -> bool:
        self.priorities.append((handle, priority))
        return True

    def _CloseHandle(self, handle: int) -> bool:
        self.closed.append(handle)
        return True


def test_windows_is_asked_in_its_own_way_whether_a_process_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, denied = Kernel({7: 259, 8: 0}), 5
    monkeypatch.setattr(processes, "_WINDOWS", True)
    monkeypatch.setattr(ctypes, "WinDLL", lambda name, use_last_error: kernel, raising=False)
    monkeypatch.setattr(ctypes, "get_last_error", lambda: denied, raising=False)
    monkeypatch.setattr(os, "kill", None)  # there, signal 0 is Ctrl-C
    assert processes.is_running(7)
    assert not processes.is_running(8)
    assert kernel.closed == [7, 8]
    assert processes.is_running(9), "somebody else's"
    monkeypatch.setattr(ctypes, "get_last_error", lambda: 87, raising=False)
    assert not processes.is_running(9)
    processes.step_back(15)
    processes.step_back(0)
    assert kernel.priorities == [(-1, 0x4000)]


def test_a_system_without_a_list_of_threads_steps_back_as_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "setpriority", lambda *words: told.append(words))
    monkeypatch.setattr(processes, "Path", lambda place: Path("/nowhere") / place.strip("/"))
    processes.step_back(15)
    assert told == [(os.PRIO_PROCESS, 0, 15)]


def test_processes_live_or_have_ended() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert processes.is_running(os.getpid())
    assert not processes.is_running(ended.pid)
    assert processes.ENDINGS == (signal.SIGTERM, signal.SIGKILL)


def test_a_file_that_somebody_reads_just_now_is_replaced_a_moment_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals, replace = iter((True, True)), os.replace

    def refused(source: Any, target: Any) -> None:
        if next(refusals, False):
            raise PermissionError(13, "The process cannot access the file because it is being used by another process")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refused)
    monkeypatch.setattr(agcd_io, "_WINDOWS", True)
    write_json(tmp_path / "progress.json", {"done": 1})
    assert read_json(tmp_path / "progress.json") == {"done": 1}
    assert next(refusals, None) is None
    refusals = iter((True,))
    monkeypatch.setattr(agcd_io, "_WINDOWS", False)
    with pytest.raises(StorageError, match="could not be written"):
        write_json(tmp_path / "progress.json", {"done": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["progress.json"]


def test_what_is_flushed_is_open_for_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows refuses to flush a file that was opened to be read."""
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append(os.write(handle, b"x")))
    with atomic_write(tmp_path / "a") as aside:
        aside.write_bytes(b"yz")
    assert flushed == [1]
    assert (tmp_path / "a").read_bytes() == b"xz"


@pytest.mark.parametrize(
    ("text", "posix", "windows"),
    [
        ("birds", "birds", "birds"),
        ("my birds", "'my birds'", '"my birds"'),
        (r"D:\\photos\\birds", r"'D:\\photos\\birds'", r"D:\\photos\\birds"),
        ("cats & dogs", "'cats & dogs'", '"cats & dogs"'),
    ],
)
def test_a_command_that_is_shown_can_be_typed(text: str, posix: str, windows: str) -> None:
    assert typed(text, windows=False) == posix
    assert typed(text, windows=True) == windows


def test_the_program_on_another_drive_is_called_by_its_whole_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert os.path.abspath(agcd_command()) == str(Path(sys.executable).parent / "agcd")
    monkeypatch.setattr(Path, "cwd", lambda: SimpleNamespace(drive="C:"))
    assert agcd_command() == str(Path(sys.executable).parent / "agcd")


@pytest.mark.parametrize(
    ("is_terminal", "written"), [(False, "Grün 啄".encode()), (True, "Grün \\u5544".encode("cp1252"))]
)
def test_no_letter_is_a_reason_to_fail_in_an_old_code_page(
    is_terminal: bool, written: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = io.BytesIO()
    stream = io.TextIOWrapper(below, "cp1252")
    monkeypatch.setattr(below, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    with printable_output():
        print("Grün 啄", end="")
    stream.flush()
    assert below.getvalue() == written


def test_a_port_belongs_to_one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    listening = serve._listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    with pytest.raises(ConfigError, match=f"Port {port} of 127.0.0.1 cannot be used"):
        serve._listen("127.0.0.1", port)
    listening.close()
    options: list[int] = []
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", -5, raising=False)
    monkeypatch.setattr(Listener, "setsockopt", lambda self, level, option, value: options.append(option))
    with suppress(ConfigError):
        serve._listen("127.0.0.1", 0).close()
    assert options == [-5], "what Windows calls as others call it lets two servers share a port"
