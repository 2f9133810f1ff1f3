"""Label Studio: tasks with labels and predictions for it to import; ``agcd.data.label_studio`` reads what it exports.

The labelling page shows ``image`` through local storage, so ``data.image`` starts at the parent of the image folder;
``data.path`` is the path below the image folder, by which answers find their image again. Texts and excerpts of records
stand in the task itself, as ``data.text``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from agcd.data.label_studio import CLASS, IMAGE, NEW_CLASS, TEXT

ACCEPTED = "accepted by page"
"""Model version of classes that a person accepted by page: no label, but more than a prediction."""
Columns = Mapping[str, Sequence[Any]]


def to_label_studio(
    items: Iterable[tuple[int, str]],
    labels: Columns,
    predictions: Columns,
    classes: Iterable[str],
    folder: str,
    model_version: str,
    text_of: Callable[[int], str] | None = None,
) -> Iterator[dict[str, Any]]:
    """One task per item, as Label Studio imports them: with an annotation where it is answered, else a prediction.

    Parameters
    ----------
    items : row and path of each image, text or record that takes answers
    labels, predictions : columns as in ``labels.csv`` and ``predictions.csv``
    classes : names that the labelling config lists; a group without a name is told in ``data.predicted`` alone
    folder : name of the image folder; Label Studio's document root is its parent
    text_of : what the page shows of a row; None where it shows its picture
    """
    label_of = {row: number for number, row in enumerate(labels["row"])}
    prediction_of = {row: number for number, row in enumerate(predictions["row"])}
    listed, shown = set(classes), IMAGE if text_of is None else TEXT
    for row, path in items:
        what = text_of(row) if text_of else f"/data/local-files/?d={quote(f'{folder}/{path}')}"
        data: dict[str, Any] = {shown: what, "path": path, "row": row}
        task: dict[str, Any] = {"data": data}
        if (number := label_of.get(row)) is not None:
            answer = labels["class"][number] or labels["answer"][number]
            data |= {"known_answer": answer, "known_by": labels["who"][number]}
            task["annotations"] = [_annotation(row, answer, shown)]
        elif (number := prediction_of.get(row)) is not None:
            name = data["predicted"] = predictions["class"][number]
            if name in listed:
                by_page = predictions["by"][number] == "page"
                version = ACCEPTED if by_page else model_version
                score = 1.0 if by_page else round(predictions["probability"][number], 6)
                task["predictions"] = [
                    {"model_version": version, "score": score, "result": [_choice(row, name, shown)]}
                ]
        yield task


def labelling_config(classes: Iterable[str], shown: str = IMAGE) -> str:
    """The XML of a labelling page with these classes, ``unsure``, ``junk`` and a field for new names, about what is
    ``shown``: a picture, or a text as it stands, of which nothing is fetched or rendered."""
    item = f'Image name="{IMAGE}" value="${IMAGE}" zoom="true"'
    if shown == TEXT:
        item = f'Text name="{TEXT}" value="${TEXT}" valueType="text"'
    choices = "".join(f"    <Choice value={quoteattr(name)}/>\n" for name in (*classes, "unsure", "junk"))
    return (
        "<View>\n"
        f"  <{item}/>\n"
        f'  <Choices name="{CLASS}" toName="{shown}" choice="single" showInline="true">\n{choices}  </Choices>\n'
        f'  <TextArea name="{NEW_CLASS}" toName="{shown}" maxSubmissions="1" '
        'placeholder="a class that is not listed"/>\n'
        "</View>\n"
    )


def _annotation(row: int, answer: str, shown: str) -> dict[str, Any]:
    """``completed_by`` is left out: Label Studio refuses people that it does not know."""
    if answer == "skip":
        return {"was_cancelled": True, "result": []}
    return {"was_cancelled": False, "result": [_choice(row, answer, shown)]}


def _choice(row: int, name: str, shown: str) -> dict[str, Any]:
    value = {"choices": [name]}
    return {"id": f"row-{row}", "from_name": CLASS, "to_name": shown, "type": "choices", "value": value}
