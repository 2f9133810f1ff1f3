"""TensorBoard: an event file per run under ``tensorboard/``, to be looked at with ``tensorboard --logdir``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agcd.tracking.flat import file_name


class TensorBoard:
    """Writes scalars, and the settings as a text."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tensorboard"

    def start(self, name: str, settings: Mapping[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        place = self._folder / file_name(name)
        for file in place.glob("events.out.tfevents.*"):  # of a process that was broken off: all of it comes again
            file.unlink()
        self._writer: Any = SummaryWriter(str(place))
        words = json.dumps(settings, indent=2, default=str)
        self._writer.add_text("settings", f"```json\n{words}\n```")

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def finish(self) -> None:
        self._writer.close()
