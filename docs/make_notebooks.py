"""Run the notebooks and store what they show: ``python docs/make_notebooks.py [NAME …]``, all of them without names.

Each runs from its first cell to its last in a folder of its own, so that nothing of this machine gets into it but
numbers and pictures. Needs what ``pip install -e ".[dev,demo,text,lab]"`` installs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbclient
import nbformat

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def run(path: Path, folder: Path) -> Any:
    """The notebook with what its cells show; it runs in ``folder``. A cell that fails is an error."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    metadata, resources = dict(notebook.metadata), {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    notebook.metadata = nbformat.from_dict(metadata)  # without the versions of this machine
    return notebook


def to_store(notebook: Any) -> Any:
    """Without the times of this run, and without what packages said on the error stream."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [shown for shown in cell.outputs if shown.get("name") != "stderr"]
    return notebook


def main(names: list[str]) -> None:
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not names or path.stem in names:
            with TemporaryDirectory() as folder:
                os.environ["AGCD_CACHE"] = str(Path(folder, "cache"))
                notebook = run(path, Path(folder))
            nbformat.write(to_store(notebook), path)
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
