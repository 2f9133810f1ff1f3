"""MLflow: runs in the folder ``mlruns/``, or wherever MLFLOW_TRACKING_URI says; nothing is sent unless it says so."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agcd.tracking.flat import flat, short_id

_EXPERIMENT = "agcd"
_TAG = "agcd_run"
_LONGEST = 500
"""Characters of a parameter that every version takes."""
_MOST = 100
"""Parameters that one request takes."""


class MLflow:
    """Logs metrics by step, and the settings as parameters."""

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        # The store of files is all that mlflow-skinny brings; newer versions want to be told that it is meant.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or (folder / "mlruns").as_uri())

    def start(self, name: str, settings: Mapping[str, Any]) -> None:
        from mlflow.entities import Param

        experiment, run_id = self._experiment(), short_id(name)
        for earlier in self._client.search_runs([experiment], f"tags.{_TAG} = '{run_id}'"):
            self._client.delete_run(earlier.info.run_id)  # broken off: all of it comes again
        self._run = self._client.create_run(experiment, run_name=name, tags={_TAG: run_id}).info.run_id
        params = [Param(key, str(value)[:_LONGEST]) for key, value in flat(settings)]
        for start in range(0, len(params), _MOST):
            self._client.log_batch(self._run, params=params[start : start + _MOST])

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._client.log_batch(self._run, metrics=[Metric(name, value, now, step) for name, value in numbers.items()])

    def finish(self) -> None:
        self._client.set_terminated(self._run)

    def _experiment(self) -> str:
        """The experiment of all runs, which several processes may want to make at once."""
        found = self._client.get_experiment_by_name(_EXPERIMENT)
        if found is None:
            try:
                return str(self._client.create_experiment(_EXPERIMENT))
            except Exception:  # what a store raises then depends on the store
                found = self._client.get_experiment_by_name(_EXPERIMENT)
                if found is None:
                    raise
        return str(found.experiment_id)
