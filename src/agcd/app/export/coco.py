"""Labels as COCO-style JSON: whole images with a category each, so annotations have neither box nor mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agcd import __version__


def to_coco(
    images: Mapping[int, str],
    labels: Mapping[str, Sequence[Any]],
    classes: Sequence[tuple[str, bool]],
    description: str,
) -> dict[str, Any]:
    """All images, all classes, and one annotation per labelled image; skip, unsure and junk are no annotations.

    Parameters
    ----------
    images : the path of each image by row, which is the image's id
    labels : columns as in ``labels.csv``
    classes : name of each class, and whether it was known from the start
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
        "images": [{"id": row, "file_name": path} for row, path in images.items()],
        "categories": [
            {"id": number, "name": name, "supercategory": "known" if is_known else "found"}
            for number, (name, is_known) in enumerate(classes, start=1)
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
