"""Weights & Biases: runs in the folder ``wandb/``, offline unless WANDB_MODE says otherwise (``wandb sync``)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agcd.tracking.flat import short_id


class WandB:
    """Logs metrics by step, and the settings as the run's config."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, name: str, settings: Mapping[str, Any]) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb

        run_id, mode = short_id(name), os.environ.get("WANDB_MODE", "offline")
        if mode == "offline":
            for earlier in self._folder.glob(f"wandb/offline-run-*-{run_id}"):  # broken off: all of it comes again
                shutil.rmtree(earlier)
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "agcd"),
            id=run_id,
            name=name,
            config=dict(settings),
            dir=str(self._folder),
            mode=mode,
            resume="allow" if mode == "online" else None,
            reinit="create_new",
            settings=wandb.Settings(silent=True),
        )
        self._known = int(self._run.step)  # what a server has of it already

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        if step >= self._known:
            self._run.log(dict(numbers), step=step)

    def finish(self) -> None:
        self._run.finish()
