"""The long work: start, watch, cancel, and download what it made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse, Response

from agcd.app.create import set_n_classes
from agcd.app.export.files import export_file, light_files
from agcd.app.jobs import JobState, export_folder, problem_of_export
from agcd.app.web import schemas
from agcd.app.web.json_bodies import StrictRoute
from agcd.app.web.server_state import ServerState
from agcd.errors import ConfigError, StorageError

MODEL_FILES = ("model.safetensors", "model.json", "model.onnx", "MODEL_CARD.md", "report.html")
"""What the job "export" makes."""
_TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".xml": "application/xml",
    ".parquet": "application/octet-stream",
}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {kind.partition(";")[0]: {} for kind in _TYPES.values()}}
}


def routes(server: ServerState) -> APIRouter:
    """The work of one project, and its files."""
    router = APIRouter(route_class=StrictRoute)
    for add in (_jobs, _files):
        add(router, server)
    return router


def _jobs(router: APIRouter, server: ServerState) -> None:
    @router.get("/job")
    def job() -> schemas.Job:
        """What runs in the background, and how far it is."""
        return _shown(server.jobs.state())

    @router.post("/job")
    def start(body: schemas.StartJob) -> schemas.Job:
        """Begin work in a child process; labelling goes on meanwhile."""
        return _shown(server.jobs.start(body.kind, body.n_questions))

    @router.delete("/job")
    def cancel() -> schemas.Job:
        """Stop the work; what is finished stays, and starting again continues."""
        return _shown(server.jobs.cancel())

    @router.post("/n-classes")
    def choose_classes(body: schemas.ChooseClasses) -> schemas.State:
        """Overrule the number of classes to look for, before the first training."""
        with server.opened() as project:
            if project.store.runs():
                raise ConfigError("Training has begun: from now on the number of classes grows by naming them.")
            n_old = sum(info.is_old for info in project.labels().registry.infos)
            set_n_classes(project.folder, body.n, n_old)
            server.project.reload()
        with server.opened() as project:
            return server.state(project)


def _shown(state: JobState) -> schemas.Job:
    values = {name: getattr(state, name) for name in schemas.Job.model_fields}
    return schemas.Job(**values)


def _files(router: APIRouter, server: ServerState) -> None:

    def made(name: str) -> Path:
        """A file of the last round's model; those of earlier ones are out of date."""
        with server.opened() as project:
            return export_folder(project.folder, project.n_finished) / name

    @router.get("/export")
    def files() -> list[str]:
        """The files that can be downloaded now."""
        light = light_files(server.project.kind)
        with server.moment() as snapshot:
            if snapshot.round is None:  # before the first look there is nothing but what people said
                light = tuple(name for name in light if not name.startswith("predictions"))
        return [*light, *(name for name in MODEL_FILES if made(name).is_file())]

    @router.get("/export/{name}", response_class=Response, responses=_FILE)
    def download(name: str) -> Response:
        """One file, by its name in the list."""
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        if name in MODEL_FILES and made(name).is_file():
            if problem := problem_of_export(made(name).parent, name):
                raise StorageError(f"The exported files are damaged ({problem}): build them again.")
            return FileResponse(made(name), headers=headers, media_type="application/octet-stream")
        if name not in light_files():
            raise HTTPException(404, "There is no such file")
        with server.opened() as project:
            content = export_file(project, name)
        return Response(content, headers=headers, media_type=_TYPES[Path(name).suffix])
