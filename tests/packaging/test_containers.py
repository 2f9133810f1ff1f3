"""What the container and the unit are told to do, done without an engine: the lines of the files themselves are run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agcd.app.web.people import Role, add_person
from agcd.cli import main
from support.killing import wait_for
from support.servers import trained_project

ROOT = Path(__file__).parents[2]
HOST = "label.example.org"


def instructions(word: str) -> list[str]:
    """What follows ``word`` in the Dockerfile, lines joined."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
    return re.findall(rf"^{word} +(.*)$", text, re.MULTILINE)


def listed(text: str) -> list[str]:
    found: list[str] = json.loads(text)
    return found


def health(port: int, **env: str) -> int:
    """The exit code of the health check, with the paths of the image as they are here."""
    python, script = listed(instructions("HEALTHCHECK")[0].partition("CMD ")[2])
    (copied,) = [line.split()[0] for line in instructions("COPY") if line.endswith(script)]
    assert python == "python"
    return subprocess.run(
        [sys.executable, ROOT / copied], env=os.environ | {"AGCD_PORT": str(port)} | env, check=False
    ).returncode


@contextmanager
def serving(python: Path | str, words: list[str], user: int | None = None, **env: str) -> Iterator[int]:
    """``agcd`` with these words, on a free port that is given back."""
    command = [str(python), "-m", "agcd.cli", *words, "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, text=True, env=os.environ | env, user=user, group=user) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            assert line.startswith("Label here: "), line
            yield listening_port(server.pid)
        finally:
            server.terminate()


def listening_port(pid: int) -> int:
    """Of a process that told its public name alone."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        if found := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link)):
            inodes.add(found[1])
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return next(int(line[1].rpartition(":")[2], 16) for line in lines if line[3] == "0A" and line[9] in inodes)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = trained_project(tmp_path)
    add_person(project, "ann", Role.LABEL)
    return project


linux = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="finds the port in /proc")


@linux
def test_the_health_check_of_the_image_tells_up_from_down(project: Path) -> None:
    assert listed(instructions("ENTRYPOINT")[0]) == ["agcd"]
    words = [str(project) if word == "/project" else word for word in listed(instructions("CMD")[-1])]
    with serving(sys.executable, [*words, "--by-hand"]) as port:
        assert health(port, AGCD_HOST=f"127.0.0.1:{port}") == 0
        assert health(port, AGCD_HOST="other.example.org") == 1
    assert health(port, AGCD_HOST=f"127.0.0.1:{port}") == 1


@linux
def test_the_command_of_compose_serves_behind_its_proxy(project: Path) -> None:
    text = (ROOT / "compose.yaml").read_text()
    (command,) = re.findall(r"^    command: (\[.*\])$", text, re.MULTILINE)
    words = [re.sub(r"\$\{AGCD_HOST[^}]*\}", HOST, word).replace("/project", str(project)) for word in listed(command)]
    with serving(sys.executable, [*words, "--by-hand"]) as port:
        assert health(port, AGCD_HOST=HOST) == 0
        assert health(port) == 1, "the server goes by its public name alone"
    proxy = re.findall(r"ipv4_address: (\S+)", text)
    assert words[words.index("--proxy-address") + 1] == proxy[1], "only the proxy is believed about addresses"


def test_nobody_is_let_in_without_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image opens a port to others, so a project without people must not start."""
    words = [str(trained_project(tmp_path)) if word == "/project" else word for word in listed(instructions("CMD")[-1])]
    monkeypatch.setattr(sys, "argv", ["agcd", *words])
    monkeypatch.delenv("AGCD_PASSWORD", raising=False)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2


def test_the_image_runs_as_nobody_special() -> None:
    user = instructions("USER")[-1]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert f"--uid {user.partition(':')[0]} " in instructions("RUN")[-1]
    for source in (part for line in instructions("COPY") if "--from" not in line for part in line.split()[:-1]):
        assert (ROOT / source).exists(), source
        assert f"!{source}" in (ROOT / ".dockerignore").read_text().splitlines(), source


def test_compose_understands_its_file() -> None:
    """hadolint and the schema, which registries have, are asked by ``make release-check``."""
    if shutil.which("docker-compose") is None:
        pytest.skip("no docker-compose here (Debian's package has that name)")
    subprocess.run(
        ["docker-compose", "--env-file", ".env.example", "-f", "compose.yaml", "config", "--quiet"],
        cwd=ROOT,
        check=True,
    )


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd here")
    command = ["systemd-analyze", "verify", str(unit_with(tmp_path, sys.executable))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def unit_with(folder: Path, python: str) -> Path:
    """The unit with a program that is here, which systemd looks for."""
    text = (ROOT / "packaging/systemd/agcd.service").read_text()
    unit = folder / "agcd.service"
    unit.write_text(text.replace("/opt/agcd/bin/agcd ", f"{python} -m agcd.cli "))
    return unit


@linux
def test_the_command_of_the_unit_serves(project: Path) -> None:
    (line,) = re.findall(r"^ExecStart=\S+ (.*)$", (ROOT / "packaging/systemd/agcd.service").read_text(), re.MULTILINE)
    words = shlex.split(line.replace("/srv/agcd/project", str(project)))
    with serving(sys.executable, [*words, "--by-hand"]) as port:
        assert health(port, AGCD_HOST=HOST) == 0


@pytest.mark.slow
@linux
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="changes the user")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs a Python that others may run")
def test_the_image_can_be_built_and_run_as_its_user(project: Path, tmp_path: Path) -> None:
    """The steps of the build in a scratch folder, for labelling alone; the code is read-only and somebody else's."""
    source, prefix = tmp_path / "src-of-image", tmp_path / "opt"
    for line in (line for line in instructions("COPY") if "--from" not in line and "/opt/" not in line):
        *parts, target = line.split()
        for part in parts:
            to = source / (target if len(parts) == 1 else part)
            to.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copyfile
            copy(ROOT / part, to)
    env = os.environ | {"DISTRIBUTION": "serve"}
    for line in instructions("RUN")[:-1]:
        step = line.replace("/opt/agcd", str(prefix)).replace("python -m", "/usr/bin/python3 -m")
        subprocess.run(["sh", "-ec", step], cwd=source, env=env, check=True, capture_output=True)
    user = int(instructions("USER")[-1].partition(":")[0])
    home = tmp_path / "home"
    home.mkdir()
    for path in (home, project, *project.rglob("*")):
        os.chown(path, user, user)
    for folder in [tmp_path, *tmp_path.parents]:  # pytest's own folders are private
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o055)
    subprocess.run(["chmod", "-R", "a-w", prefix], check=True)
    words = [str(project) if word == "/project" else word for word in listed(instructions("CMD")[-1])]
    own = {"HOME": str(home), "AGCD_CACHE": str(home / "cache"), "PYTHONPATH": ""}
    with serving(prefix / "bin" / "python", words, user, **own) as port:
        wait_for("the health check", lambda: health(port, AGCD_HOST=f"127.0.0.1:{port}") == 0, 0.2)
    doctor = [str(prefix / "bin" / "agcd"), "doctor"]
    done = subprocess.run(doctor, env=env | own, user=user, group=user, capture_output=True, text=True, check=False)
    assert "for labelling alone" in done.stdout
