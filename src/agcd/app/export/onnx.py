"""The classifier as one ONNX file, from pixels or embeddings to named classes, for programs without torch."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agcd.app.export.classifier import SlotClassifier, describe
from agcd.errors import AgcdError, ConfigError
from agcd.features.onnx_graph import to_onnx
from agcd.io import atomic_write

ML_OPSET = 3
_LARGEST = 2**31 - 2**20
"""Bytes in one ONNX file: protobuf reads no more than 2 GB."""
_TOLERANCE = 1e-3
_KEPT_FACTS = ("format", "agcd_version", "model_id", "classes", "preprocessing")


def write_onnx(path: Path, classifier: SlotClassifier) -> None:
    """One file that maps ``image`` to ``probabilities``, ``slot`` and ``class``; it is tried before it is written.

    ``image`` is uint8 (n, size, size, 3): at least one test view, in RGB; of texts and of given embeddings the input is
    ``embedding``, float32 (n, dim), and their encoder is not in the file. ``probabilities`` is float32 (n, K), ``slot``
    int64 (n,) and ``class`` strings (n,), the name of the most probable slot. Metadata tell names and preprocessing.
    """
    onnx = require_onnx()
    n_bytes = sum(tensor.nbytes for tensor in classifier.state_dict().values())
    if n_bytes > _LARGEST:
        raise ConfigError(f"The model has {n_bytes / 1e9:.1f} GB: one ONNX file holds less than 2.")
    model = to_onnx(classifier, classifier.sample(2), classifier.input_name, ["probabilities"])
    _add_outputs(onnx, model, [slot.name for slot in classifier.slots])
    _describe(onnx, model, classifier)
    onnx.checker.check_model(model, full_check=True)
    content = model.SerializeToString()
    _check_against_torch(content, classifier)
    with atomic_write(path) as aside:
        aside.write_bytes(content)


def require_onnx() -> Any:
    """The onnx package, if all that is needed to write and to try ONNX files is installed."""
    try:
        for name in ("onnxruntime", "onnxscript"):
            import_module(name)
        return import_module("onnx")
    except ImportError:
        raise ConfigError("Install agcd[onnx] to write ONNX files.") from None


def _add_outputs(onnx: Any, model: Any, names: list[str]) -> None:
    """The most probable slot, and the name of its class by ONNX's own table look-up."""
    helper, types = onnx.helper, onnx.TensorProto
    look_up = {"keys_int64s": list(range(len(names))), "values_strings": names, "default_string": ""}
    model.graph.node.extend(
        [
            helper.make_node("ArgMax", ["probabilities"], ["slot"], axis=1, keepdims=0),
            helper.make_node("LabelEncoder", ["slot"], ["class"], domain="ai.onnx.ml", **look_up),
        ]
    )
    model.graph.output.extend(
        [
            helper.make_tensor_value_info("slot", types.INT64, ["n"]),
            helper.make_tensor_value_info("class", types.STRING, ["n"]),
        ]
    )
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", ML_OPSET))


def _describe(onnx: Any, model: Any, classifier: SlotClassifier) -> None:
    """Facts into the metadata; the exporter's notes go, for they name files of this machine."""
    del model.graph.value_info[:]
    for part in (model, model.graph, *model.graph.node, *model.graph.initializer, *model.graph.input):
        del part.metadata_props[:]
        part.doc_string = ""
    for value in (*model.graph.input, *model.graph.output):
        del value.metadata_props[:]
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    model.graph.name = "agcd"
    facts = describe(classifier)
    prefix = {name: facts[name]["name"] for name in ("backbone", "encoder") if name in facts}
    texts = {name: facts[name] for name in _KEPT_FACTS} | prefix
    onnx.helper.set_model_props(
        model, {f"agcd.{name}": value if isinstance(value, str) else json.dumps(value) for name, value in texts.items()}
    )


def _check_against_torch(content: bytes, classifier: SlotClassifier) -> None:
    """A file that would predict something else than the classifier is not worth writing."""
    inputs = classifier.sample(3)
    session = import_module("onnxruntime").InferenceSession(content, providers=["CPUExecutionProvider"])
    (found,) = session.run(["probabilities"], {classifier.input_name: inputs.numpy()})
    with torch.inference_mode():
        expected = classifier(inputs).numpy()
    worst = float(np.abs(found - expected).max())
    if not worst < _TOLERANCE:
        raise AgcdError(f"The ONNX file was not written: its probabilities differ from the model's by {worst:.2g}.")
