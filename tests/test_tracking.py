"""Trackers: what they hear of runs, that a kill leaves no step out and none double, and that they change nothing."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from agcd.cli import app
from agcd.errors import ConfigError, InstallError
from agcd.lab.bench import make_cells, run_bench
from agcd.run_store import NumberedRuns
from agcd.session import Session
from agcd.tracking import Tracking, open_tracking
from agcd.training.loop import read_log
from support.blobs import FAST, fast_config, make_blobs
from support.projects import make_project
from support.training_jobs import Killed, killer

HEARD: list[tuple[Any, ...]] = []


@pytest.fixture(autouse=True)
def nothing_heard() -> None:
    HEARD.clear()


class Recorder:
    """Keeps all that it hears."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, name: str, settings: Mapping[str, Any]) -> None:
        HEARD.append(("start", name, settings["train"]["trainer"]))

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        HEARD.append(("log", step, dict(numbers)))

    def finish(self) -> None:
        HEARD.append(("finish",))


class Broken(Recorder):
    """Fails where its folder's name says."""

    def _fail(self, where: str) -> None:
        if self.folder.name == where:
            raise SystemExit("no\nserver") if where == "finish" else RuntimeError("no\nserver")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._fail("init")

    def start(self, name: str, settings: Mapping[str, Any]) -> None:
        self._fail("start")

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        numbers.clear()  # type: ignore[attr-defined]  # of a copy
        self._fail("log")

    def finish(self) -> None:
        self._fail("finish")


def session(folder: Path | None, tracker: str | None, track_to: Path, **more: Any) -> Session:
    blobs, train = make_blobs(), more.pop("train", {})
    store = None if folder is None else NumberedRuns(folder)
    track = open_tracking(tracker, track_to)
    track = track and track.about("blobs")
    return Session(blobs.features, blobs.labels, fast_config(**train), 6, store, track=track, **more)


def heard_steps() -> list[int]:
    """The steps since the last start."""
    last = max(i for i, event in enumerate(HEARD) if event[0] == "start")
    return [event[1] for event in HEARD[last:] if event[0] == "log"]


def test_a_run_is_told_from_its_start_to_its_figures(tmp_path: Path) -> None:
    done = session(tmp_path, f"{__name__}:Recorder", tmp_path).train()
    lines = read_log(tmp_path / "runs" / "000" / "log.jsonl")
    assert [event[0] for event in HEARD] == ["start", "log", "log", "log", "log", "finish"]
    assert HEARD[0] == ("start", f"blobs round 0 {done.key[-8:]}", "simgcd")
    assert [event[1] for event in HEARD[1:-1]] == [0, 1, 2, 3]
    assert [event[2] for event in HEARD[1:4]] == [{"loss": line["loss"]} for line in lines]
    assert HEARD[4][2]["round/agreement"] == done.metrics["agreement"]
    session(tmp_path, f"{__name__}:Recorder", tmp_path).train()
    assert len(HEARD) == 6, "a finished round is only loaded, and nobody is told"


@pytest.mark.parametrize("killed_at", [0, 1, 2])
def test_a_run_that_is_killed_and_resumed_tells_every_step_once(killed_at: int, tmp_path: Path) -> None:
    name = f"{__name__}:Recorder"
    with pytest.raises(Killed):
        session(tmp_path / "killed", name, tmp_path, echo=killer(killed_at)).train()
    session(tmp_path / "killed", name, tmp_path).train()
    assert heard_steps() == [0, 1, 2, 3]
    names = {event[1] for event in HEARD if event[0] == "start"}
    assert len(names) == 1, "the run has one name before and after"
    resumed = [event for event in HEARD if event[0] == "log"][-4:]
    HEARD.clear()
    session(tmp_path / "unbroken", name, tmp_path).train()
    unbroken = [event for event in HEARD if event[0] == "log"]
    assert resumed[:3] == unbroken[:3]


def test_a_run_that_was_killed_after_its_last_epoch_is_told_whole(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        session(tmp_path, None, tmp_path, evaluate=killer_after(3)).train()
    session(tmp_path, f"{__name__}:Recorder", tmp_path).train()
    assert heard_steps() == [0, 1, 2, 3]


def killer_after(n_epochs: int) -> Any:
    """Lets as many measurements pass as there are epochs."""
    seen: list[None] = []

    def evaluate(fitted: Any) -> dict[str, Any]:
        seen.append(None)
        if len(seen) > n_epochs:
            raise Killed
        return {"acc_all": 0.5}

    return evaluate


def test_a_run_without_epochs_tells_its_figures(tmp_path: Path) -> None:
    session(None, f"{__name__}:Recorder", tmp_path, train={"base_epochs": 0}).train()
    assert [event[0] for event in HEARD] == ["start", "log", "finish"]
    assert HEARD[1][2]["round/n_labels"] > 0


@pytest.mark.parametrize("where", ["init", "start", "log", "finish"])
def test_a_broken_tracker_is_one_line_and_changes_nothing(
    where: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = session(tmp_path / "plain", None, tmp_path).train()
    with caplog.at_level(logging.WARNING, "agcd"):
        told = session(tmp_path / "told", f"{__name__}:Broken", tmp_path / where).train()
    assert told.fitted.model_id == plain.fitted.model_id
    assert [record.getMessage() for record in caplog.records] == [
        f"The tracker '{__name__}:Broken' failed and hears no more of 'blobs round 0 {told.key[-8:]}': "
        f"{'SystemExit' if where == 'finish' else 'RuntimeError'}: no server"
    ]


def test_a_run_that_fails_is_finished_for_the_tracker_as_well(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        session(tmp_path, f"{__name__}:Recorder", tmp_path, evaluate=killer_after(2)).train()
    assert HEARD[-1] == ("finish",)


@pytest.mark.usefixtures("in_this_process")
def test_a_benchmark_tells_its_runs_and_the_rounds_of_its_cells(tmp_path: Path) -> None:
    settings = {"train": {**FAST, "base_epochs": 2, "round_epochs": 1}, "query": {"rounds": 1, "budget": 4}}
    cells = make_cells(["toy"], ["random", "margin"], 1, settings, {})
    track = open_tracking(f"{__name__}:Recorder", tmp_path)
    records = run_bench(cells, tmp_path / "out", tmp_path, progress=lambda line: None, track=track)
    starts = [event[1].rpartition(" ")[0] for event in HEARD if event[0] == "start"]
    assert starts == [
        "toy seed 0 round 0", "toy seed 0 round 1", "toy random seed 0", "toy seed 0 round 1", "toy margin seed 0",
    ]  # fmt: skip
    cell = [event[2] for event in HEARD if event[0] == "log" and "acc_all" in event[2]]
    assert [line["acc_all"] for line in cell] == [record["acc_all"] for record in records]
    HEARD.clear()
    run_bench(cells, tmp_path / "out", tmp_path, progress=lambda line: None, track=track)
    assert not HEARD


@pytest.mark.usefixtures("in_this_process")
def test_the_commands_that_train_tell_a_tracker(tmp_path: Path) -> None:
    small = [f"--set=train.{name}={value}" for name, value in {**FAST, "base_epochs": 2, "round_epochs": 1}.items()]
    grid = ["--data", "toy", "--seeds", "1", *small, "--cache", str(tmp_path / "cache")]
    track = ["--track", f"{__name__}:Recorder"]
    bench = ["bench", "run", *grid, "--strategies", "random", "--rounds", "1", "--budget", "4", "--metrics", "nmi"]
    done = CliRunner().invoke(app, [*bench, *track, "--out", str(tmp_path / "bench")])
    assert done.exit_code == 0, done.output
    assert "| nmi |" in done.stdout
    assert [event[0] for event in HEARD].count("start") == 3
    HEARD.clear()
    table = ["paper", "table", "main", "--quick", *grid, "--set", "query.rounds=1"]
    done = CliRunner().invoke(app, [*table, *track, "--out", str(tmp_path / "paper")])
    assert done.exit_code == 0, done.output
    assert any(event[0] == "start" and event[1].startswith("toy none seed 0") for event in HEARD)
    HEARD.clear()
    with make_project(tmp_path / "made") as project:
        folder = project.folder
    done = CliRunner().invoke(app, ["train", str(folder), *track])
    assert done.exit_code == 0, done.output
    assert HEARD[0][1].startswith("round 0 ")
    assert heard_steps()[0] == 0


def test_a_missing_or_unknown_tracker_is_told_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_tracking(None, tmp_path) is None
    with pytest.raises(ConfigError, match=r"Unknown tracker 'mlfow'\. Did you mean 'mlflow'"):
        open_tracking("mlfow", tmp_path)
    monkeypatch.setattr("agcd.tracking.find_spec", lambda name: None)
    with pytest.raises(InstallError, match=r"pip install 'agcd\[wandb\]'"):
        open_tracking("wandb", tmp_path)


# ------------------------------------------------------------------------------------ those of agcd


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What agcd has to say about a tracker; what the tracker itself logs does not count."""
    return [record.getMessage() for record in caplog.records if record.name == "agcd"]


def tell_twice(tracking: Tracking) -> None:
    """A run that was broken off after step 1, and told again by the process that went on."""
    settings = {"train": {"lr": 0.1}, "seed": 3}
    lines = {step: {"loss": 1.0 / (step + 1), "evaluation": {"acc_all": 0.5}} for step in range(4)}
    tracking.tell_all("run a", settings, dict(list(lines.items())[:2]))
    tracking.tell_all("run a", settings, lines)
    tracking.tell_all("run b", settings, lines)


@pytest.mark.filterwarnings("ignore")
def test_tensorboard_reads_what_was_told_once_each(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    tell_twice(Tracking("tensorboard", tmp_path))
    assert not complaints(caplog)
    assert sorted(folder.name for folder in (tmp_path / "tensorboard").iterdir()) == ["run-a", "run-b"]
    events = reader.EventAccumulator(str(tmp_path / "tensorboard" / "run-a")).Reload()
    assert [(event.step, round(event.value, 3)) for event in events.Scalars("loss")] == [
        (0, 1.0), (1, 0.5), (2, 0.333), (3, 0.25),
    ]  # fmt: skip
    assert events.Tags()["scalars"] == ["loss", "evaluation/acc_all"]
    assert '"lr": 0.1' in events.Tensors("settings/text_summary")[0].tensor_proto.string_val[0].decode()


@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_one_run_with_every_step_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With mlflow where it is installed, else with what stands for it here."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    try:
        from mlflow.tracking import MlflowClient
    except ModuleNotFoundError:
        MlflowClient = stand_in_for_mlflow(monkeypatch)
    tell_twice(Tracking("mlflow", tmp_path))
    assert not complaints(caplog)
    client = MlflowClient((tmp_path / "mlruns").as_uri())
    runs = {run.info.run_name: run for run in client.search_runs([client.get_experiment_by_name("agcd").experiment_id])}
    assert set(runs) == {"run a", "run b"}
    assert runs["run a"].data.params == {"train.lr": "0.1", "seed": "3"}
    assert runs["run a"].info.status == "FINISHED"
    history = client.get_metric_history(runs["run a"].info.run_id, "loss")
    assert [(point.step, point.value) for point in history] == [(0, 1.0), (1, 0.5), (2, 1 / 3), (3, 0.25)]


class FakeMlflow:
    """The methods of ``MlflowClient`` that are used, with the arguments that it documents."""

    experiments: dict[str, SimpleNamespace]
    runs: dict[str, SimpleNamespace]

    def __init__(self, tracking_uri: str | None = None, registry_uri: str | None = None) -> None:
        assert tracking_uri is not None
        assert tracking_uri.startswith("file:")

    def get_experiment_by_name(self, name: str) -> SimpleNamespace | None:
        return self.experiments.get(name)

    def create_experiment(self, name: str, artifact_location: str | None = None, tags: Any = None) -> str:
        self.experiments[name] = SimpleNamespace(experiment_id=str(len(self.experiments)))
        return str(self.experiments[name].experiment_id)

    def search_runs(self, experiment_ids: list[str], filter_string: str = "") -> list[SimpleNamespace]:
        wanted = filter_string.removeprefix("tags.agcd_run = ").strip("'")
        return [run for run in self.runs.values() if not wanted or run.data.tags["agcd_run"] == wanted]

    def delete_run(self, run_id: str) -> None:
        del self.runs[run_id]

    def create_run(
        self, experiment_id: str, start_time: int | None = None, tags: Any = None, run_name: str | None = None
    ) -> SimpleNamespace:
        info = SimpleNamespace(run_id=f"{run_name} {len(self.runs)}", run_name=run_name, status="RUNNING")
        run = SimpleNamespace(info=info, data=SimpleNamespace(params={}, tags=tags, metrics=[]))
        self.runs[info.run_id] = run
        return run

    def log_batch(self, run_id: str, metrics: Any = (), params: Any = (), tags: Any = ()) -> None:
        self.runs[run_id].data.metrics += metrics
        self.runs[run_id].data.params |= {param.key: param.value for param in params}

    def get_metric_history(self, run_id: str, key: str) -> list[SimpleNamespace]:
        return [point for point in self.runs[run_id].data.metrics if point.key == key]

    def set_terminated(self, run_id: str, status: str | None = None, end_time: int | None = None) -> None:
        self.runs[run_id].info.status = status or "FINISHED"


def stand_in_for_mlflow(monkeypatch: pytest.MonkeyPatch) -> Any:
    FakeMlflow.experiments, FakeMlflow.runs = {}, {}
    package, tracking, entities = (ModuleType(name) for name in ("mlflow", "mlflow.tracking", "mlflow.entities"))
    tracking.MlflowClient = FakeMlflow  # type: ignore[attr-defined]
    entities.Param = lambda key, value: SimpleNamespace(key=key, value=value)  # type: ignore[attr-defined]
    entities.Metric = lambda key, value, timestamp, step: SimpleNamespace(key=key, value=value, step=step)  # type: ignore[attr-defined]
    for module in (package, tracking, entities):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return FakeMlflow


class FakeWandbRun:
    def __init__(self, folder: Path, step: int) -> None:
        self.folder, self.step, self.lines = folder, step, list[tuple[int, dict[str, float]]]()

    def log(self, data: dict[str, float], step: int | None = None, commit: bool | None = None) -> None:
        assert step is not None
        self.lines.append((step, data))

    def finish(self, exit_code: int | None = None, quiet: bool | None = None) -> None:
        (self.folder / "files").mkdir()


def test_wandb_is_offline_unless_somebody_says_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what stands for it: ``wandb.init`` with the arguments that it documents."""
    made: list[tuple[dict[str, Any], FakeWandbRun]] = []

    def init(
        *, project: str, id: str, name: str, config: Any, dir: str, mode: str, resume: Any, reinit: str, settings: Any
    ) -> FakeWandbRun:
        folder = Path(dir) / "wandb" / f"{mode}-run-{len(made)}-{id}"
        folder.mkdir(parents=True)
        made.append((vars() | {"folder": folder}, FakeWandbRun(folder, 2 if mode == "online" and made else 0)))
        return made[-1][1]

    wandb = SimpleNamespace(init=init, Settings=lambda silent: None)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    tell_twice(Tracking("wandb", tmp_path))
    assert [(given["mode"], given["resume"], given["name"]) for given, _ in made] == [
        ("offline", None, "run a"), ("offline", None, "run a"), ("offline", None, "run b"),
    ]  # fmt: skip
    assert made[0][0]["id"] == made[1][0]["id"] != made[2][0]["id"]
    assert [step for step, _ in made[1][1].lines] == [0, 1, 2, 3]
    assert [given["folder"].exists() for given, _ in made] == [False, True, True], "of one run one folder is left"
    made.clear()
    monkeypatch.setenv("WANDB_MODE", "online")
    tell_twice(replace(Tracking("wandb", tmp_path), title="x"))
    assert [given["resume"] for given, _ in made] == ["allow"] * 3
    assert [step for step, _ in made[1][1].lines] == [2, 3], "a server keeps the steps that it has"


@pytest.mark.filterwarnings("ignore")
def test_wandb_writes_every_step_once_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    tell_twice(Tracking("wandb", tmp_path))
    assert not complaints(caplog)
    assert len(list((tmp_path / "wandb").glob("offline-run-*"))) == 2
