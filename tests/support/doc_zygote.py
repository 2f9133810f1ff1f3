"""Runs the blocks of the documentation: a process that has loaded torch once, and forks for every command.

``python -m support.doc_zygote SOCKET`` listens there. A command comes from the script ``agcd`` that a shell finds
first in its path; it hands over its three streams and gets an exit code back. Blocks of Python come page by page, each
page in a fork of its own that keeps what they define.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.doc_scenes import fill_in

CHEAP = {
    "train.base_epochs": "2",
    "train.round_epochs": "1",
    "train.projector_width": "16",
    "train.projector_dim": "8",
    "backbone.image_size": "32",
    "backbone.views": "2",
    "backbone.runner": "torch",
}
"""Settings that a command gets unless the documentation says otherwise: a block is to show that it works."""
CLIENT = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    asked = json.dumps({{"argv": sys.argv, "cwd": os.getcwd(), "environ": dict(os.environ)}}).encode()
    socket.send_fds(line, [asked], [0, 1, 2])
    sys.exit(int(line.recv(16) or b"1"))
"""
"""The script ``agcd``; without site-packages it starts in some milliseconds."""


class Zygote:
    """The process, from the side of a test; ``folder`` gets its socket and the script."""

    def __init__(self, folder: Path) -> None:
        self._address = str(folder / "zygote")
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "agcd").write_text(CLIENT.format(python=sys.executable, address=self._address))
        (self.bin / "pip").write_text(
            "#!/bin/sh\n# What is to be installed is: the extras are looked up by another test.\n"
        )
        for script in self.bin.iterdir():
            script.chmod(0o755)
        self.environ = {
            **os.environ,
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "OMP_NUM_THREADS": "1",
            "AGCD_NICENESS": "0",
            "AGCD_CACHE": str(folder / "cache"),
        }
        command = [sys.executable, "-m", "support.doc_zygote", self._address]
        self._process = subprocess.Popen(command, env=self.environ, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def shell(self, script: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """A script as bash runs it, in a folder; the first command that fails ends it."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    @contextmanager
    def python(self, folder: Path) -> Iterator[Python]:
        """A fork that runs blocks of Python in a folder, one after the other."""
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(self._address)
            socket.send_fds(line, [json.dumps({"cwd": str(folder)}).encode()], [0, 1, 2])
            yield Python(line)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        assert self._process.stdout is not None
        self._process.stdout.close()


class Python:
    """Runs blocks of Python; what one defines the next one knows."""

    def __init__(self, line: socket.socket) -> None:
        self._lines = line.makefile("rw", encoding="utf-8")

    def run(self, code: str, place: str) -> str | None:
        """The traceback of what went wrong, or None."""
        self._lines.write(json.dumps([code, place]) + "\n")
        self._lines.flush()
        told = self._lines.readline()
        answer: str | None = json.loads(told) if told else f"{place} ended the process"
        return answer


def main(address: str) -> None:
    import agcd.api
    import agcd.app.model
    import agcd.cli
    import agcd.lab.experiment  # noqa: F401
    from agcd.config import BackboneConfig
    from agcd.engine.local import LocalEngine
    from agcd.features.backbones import load_backbone
    from support.engines import run_here

    setattr(LocalEngine, "run", run_here)  # noqa: B010
    load_backbone(BackboneConfig(image_size=32), "cpu")  # for what it imports

    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks: they answer by themselves
        print("ready", flush=True)
        while True:
            line, _ = door.accept()
            asked, streams, _, _ = socket.recv_fds(line, 1 << 20, 3)
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                door.close()
                _answer(line, json.loads(asked), streams)
            line.close()
            for stream in streams:
                os.close(stream)


def _answer(line: socket.socket, asked: dict[str, Any], streams: list[int]) -> None:
    """The rest of a fork's life."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(asked["cwd"])
    if "argv" not in asked:
        _python(line)
    os.environ.clear()
    os.environ.update(asked["environ"])
    sys.path[:0] = [path for path in asked["environ"].get("PYTHONPATH", "").split(os.pathsep) if path]
    code = _command(asked["argv"][1:])
    line.sendall(str(code).encode())
    os._exit(0)


def _command(words: list[str]) -> int:
    """What the command ends with. What needs a model, in a project that was only served, is given one first."""
    if words[0] == "serve":
        return _once([*words, "--port", "0", "--by-hand"])
    if words[0] in ("export", "predict", "query") and Path(words[1]).is_dir() and not Path(words[1], "runs").exists():
        _once(["train", words[1]])  # as the page does by itself
    if words[0] == "label":
        fill_in(Path(words[words.index("--from") + 1]))  # as somebody does between two commands
    return _once(cheap(words))


def _once(words: list[str]) -> int:
    import uvicorn

    import agcd.cli

    setattr(uvicorn.Server, "main_loop", _visited)  # noqa: B010
    sys.argv = ["agcd", *words]
    code = 0
    try:
        agcd.cli.main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


async def _visited(server: Any) -> None:
    """In place of serving until Ctrl-C: one request over the network, whatever its answer."""
    import asyncio
    import ssl

    host, port = server.servers[0].sockets[0].getsockname()[:2]
    secure = ssl._create_unverified_context() if server.config.is_ssl else None
    reader, writer = await asyncio.open_connection(host.replace("0.0.0.0", "127.0.0.1"), port, ssl=secure)
    writer.write(f"GET /login HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
    status = await reader.readline()
    writer.close()
    assert status.startswith(b"HTTP/1.1 "), f"the server answers {status!r}"


def _python(line: socket.socket) -> None:
    lines, namespace = line.makefile("rw", encoding="utf-8"), {"__name__": "__main__"}
    sys.path.insert(0, "")
    while asked := lines.readline():
        code, place = json.loads(asked)
        told = None
        try:
            exec(compile(code, place, "exec"), namespace)
        except BaseException:
            told = traceback.format_exc()
        sys.stdout.flush()
        lines.write(json.dumps(told) + "\n")
        lines.flush()
    os._exit(0)


def cheap(words: list[str]) -> list[str]:
    """A command with settings that make it quick, where it takes settings and none of them is given."""
    takes = {("init",), ("bench", "run"), ("bench", "ask"), ("bench", "beyond"), ("paper",)}
    if not {tuple(words[:1]), tuple(words[:2])} & takes:
        return words
    given = {one.partition("=")[0] for one in words}
    small = [f"--set={name}={value}" for name, value in CHEAP.items() if name not in given]
    if words[0] == "bench":
        counts = ("--seeds", "--rounds", "--jobs") if words[1] == "run" else ("--seeds",)
        small += [f"{name}=1" for name in counts if name not in given]
    return [*words, *small]


if __name__ == "__main__":
    main(sys.argv[1])
