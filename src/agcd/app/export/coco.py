"""Labels as COCO-style JSON: whole images with a category each, so annotations have neither box nor mask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agcd import __version__


def to_coco(
    paths: Iterable[str], labels: Mapping[str, Sequence[Any]], classes: Sequence[tuple[str, str]], description: str
) -> dict[str, Any]:
    """All images, all classes, and one annotation per labelled image; skip, unsure and junk are no annotations.

    Parameters
    ----------
    paths : the images by row; the row is the image's id
    labels : columns as in ``labels.csv``
    classes : name, and "old" or "new", of each class
    """
    number_of = {name: number for number, (name, _) in enumerate(classes, start=1)}
    columns = (labels[name] for name in ("row", "class", "who", "at", "source"))
    labelled = [values for values in zip(*columns, strict=True) if values[1] is not None]
    last = max(labels["at"], default="")
    return {
        "info": {
            "description": description,
            "url": "",
            "version": __version__,
            "year": int(last[:4] or 0),
            "contributor": ", ".join(sorted({who for _, _, who, _, _ in labelled if who})),
            "date_created": last,
        },
        "licenses": [],
        "images": [{"id": row, "file_name": path} for row, path in enumerate(paths)],
        "categories": [
            {"id": number, "name": name, "supercategory": kind} for number, (name, kind) in enumerate(classes, start=1)
        ],
        "annotations": [
            {
                "id": number,
                "image_id": row,
                "category_id": number_of[name],
                "iscrowd": 0,
                "attributes": {"who": who, "at": at, "source": source},
            }
            for number, (row, name, who, at, source) in enumerate(labelled, start=1)
        ],
    }
