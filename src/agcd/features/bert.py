"""Sentence encoders of the BERT family, from a folder as sentence-transformers saves it, computed by torch alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from agcd.errors import WeightsError
from agcd.features.products import Linear
from agcd.features.weights import read_tensors
from agcd.io import read_json

WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
_FILES = ("config.json", TOKENIZER, WEIGHTS)
_LAYER = {
    "attended": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "norm2": "output.LayerNorm",
}
"""What our layer calls its parts, and what BERT calls them."""


@dataclass(frozen=True)
class BertFacts:
    """What the files of a folder say of a network."""

    dim: int
    n_layers: int
    n_heads: int
    n_hidden: int
    n_words: int
    n_positions: int
    norm_eps: float
    max_tokens: int
    """Longest input, with its first and last token."""
    pools_first: bool
    """Whether the first token stands for the text; else the mean of all does."""

    @classmethod
    def read(cls, folder: Path) -> BertFacts:
        """The facts of the encoder in ``folder``; another kind of network is one sentence."""
        if lacking := [name for name in _FILES if not (folder / name).is_file()]:
            raise WeightsError(
                f"{folder} is no sentence encoder: it lacks {lacking[0]}; a folder as sentence-transformers saves it "
                f"({', '.join(_FILES)}) is expected."
            )
        config = _object(folder / "config.json")
        if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
            raise WeightsError(
                f"{folder} holds a network of the kind {config.get('model_type')!r}; 'bert' is expected. Others can be "
                "brought by a package of your own: see 'encoders' in CONTRIBUTING.md."
            )
        pooling = _object(folder / "1_Pooling" / "config.json", optional=True)
        limits = _object(folder / "sentence_bert_config.json", optional=True)
        try:
            return cls(
                dim=int(config["hidden_size"]),
                n_layers=int(config["num_hidden_layers"]),
                n_heads=int(config["num_attention_heads"]),
                n_hidden=int(config["intermediate_size"]),
                n_words=int(config["vocab_size"]),
                n_positions=int(config["max_position_embeddings"]),
                norm_eps=float(config["layer_norm_eps"]),
                max_tokens=int(limits.get("max_seq_length") or config["max_position_embeddings"]),
                pools_first=bool(pooling.get("pooling_mode_cls_token", False)),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise WeightsError(f"{folder / 'config.json'} does not describe a BERT: {error!r:.100}.") from None


def _object(path: Path, *, optional: bool = False) -> dict[str, Any]:
    if optional and not path.is_file():
        return {}
    try:
        found = read_json(path)
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path} cannot be read: {error!s:.200}.") from None
    if not isinstance(found, dict):
        raise WeightsError(f"{path} holds no JSON object.")
    return found


class Bert(nn.Module):
    """Token numbers (n, length) of texts of one length, without padding, to unit-length embeddings (n, dim)."""

    def __init__(self, facts: BertFacts) -> None:
        super().__init__()
        self.pools_first = facts.pools_first
        self.words = nn.Embedding(facts.n_words, facts.dim)
        self.positions = nn.Embedding(facts.n_positions, facts.dim)
        self.norm = nn.LayerNorm(facts.dim, eps=facts.norm_eps)
        self.layers = nn.Sequential(*(_Layer(facts) for _ in range(facts.n_layers)))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.norm(self.words(tokens) + self.positions.weight[: tokens.shape[1]])
        x = self.layers(x)
        return F.normalize(x[:, 0] if self.pools_first else x.mean(1), dim=1)


class _Layer(nn.Module):
    """Attention and a network of two layers, each added to its input and normalised: (n, length, dim) to the same.

    torch's own layer does the same by products that take twice the time on some processors.
    """

    def __init__(self, facts: BertFacts) -> None:
        super().__init__()
        if facts.dim % facts.n_heads:
            raise ValueError(f"{facts.n_heads} heads do not divide a width of {facts.dim}")
        self.n_heads = facts.n_heads
        self.qkv, self.attended = Linear(facts.dim, 3 * facts.dim), Linear(facts.dim, facts.dim)
        self.wide, self.narrow = Linear(facts.dim, facts.n_hidden), Linear(facts.n_hidden, facts.dim)
        self.norm1 = nn.LayerNorm(facts.dim, eps=facts.norm_eps)
        self.norm2 = nn.LayerNorm(facts.dim, eps=facts.norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(2, (3, self.n_heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = self.norm1(x + self.attended(mixed))
        normalised: Tensor = self.norm2(x + self.narrow(F.gelu(self.wide(x))))
        return normalised


def load_bert(folder: Path) -> Bert:
    """The network of a folder with its weights, ready to predict."""
    facts = BertFacts.read(folder)
    given = {name.removeprefix("bert."): value for name, value in read_tensors(folder / WEIGHTS).items()}
    try:
        network = Bert(facts)
        network.load_state_dict(_renamed(given, facts.n_layers))
    except (KeyError, RuntimeError, ValueError) as error:
        raise WeightsError(f"{folder / WEIGHTS} does not fit its config.json: {str(error).strip():.200}.") from None
    return network.eval().requires_grad_(False)


def _renamed(given: dict[str, Tensor], n_layers: int) -> dict[str, Tensor]:
    """The weights under our names; tokens are all of the first type, whose embedding joins that of the position."""
    state = {
        "words.weight": given["embeddings.word_embeddings.weight"],
        "positions.weight": given["embeddings.position_embeddings.weight"]
        + given["embeddings.token_type_embeddings.weight"][0],
    }
    for part in ("weight", "bias"):
        state[f"norm.{part}"] = given[f"embeddings.LayerNorm.{part}"]
        for i in range(n_layers):
            theirs, ours = f"encoder.layer.{i}", f"layers.{i}"
            attention = [given[f"{theirs}.attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            state[f"{ours}.qkv.{part}"] = torch.cat(attention)
            for mine, name in _LAYER.items():
                state[f"{ours}.{mine}.{part}"] = given[f"{theirs}.{name}.{part}"]
    return state
