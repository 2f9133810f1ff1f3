"""The trained part of the network: a tail, a classifier and a projector for the contrastive losses."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agcd.features.products import Linear, linear

HeadKind = Literal["cosine", "linear"]
"""``cosine``: logits are cosines to the prototypes. ``linear``: inner products with them as they are, plus biases."""


class Output(NamedTuple):
    features: Tensor
    """(n, d), unit length."""
    logits: Tensor
    """(n, K), as ``DiscoveryModel.classify`` gives them."""
    projections: Tensor
    """(n, p), not normalised."""


# Shorter vectors are not brought to unit length: the gradient of normalising grows as one over the length.
SHORTEST = 1e-3

# The logit of a slot that is not used: no probability at all, and finite, so that zero times it is zero.
UNUSED_LOGIT = -1e4

# Length of a direction drawn by torch's default linear init: the shorter a prototype, the faster it turns, so
# prototypes that are placed get the length of those that are drawn.
PROTOTYPE_LENGTH = math.sqrt(1 / 3)


class DiscoveryModel(nn.Module):
    """Tail → features → classifier with one prototype per slot, and a projector beside it.

    ``center`` and ``scale`` standardise the tail's output: zero and one reproduce the paper; the mean and spread
    of the frozen features let cosines use their whole range whatever the backbone. ``biases`` belong to the linear
    head alone; they are set, not trained. ``unused`` (K,) marks slots that are never predicted, so that the others
    keep their numbers; None while all are used.
    """

    center: Tensor
    scale: Tensor
    biases: Tensor
    unused: Tensor | None

    def __init__(
        self,
        tail: nn.Module,
        dim: int,
        n_slots: int,
        projector: tuple[int, int],
        seed: int,
        kind: HeadKind = "cosine",
    ):
        super().__init__()
        width, out = projector
        self.kind: HeadKind = kind
        self.tail = tail
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.prototypes = nn.Parameter(torch.empty(n_slots, dim).uniform_(-1, 1) / math.sqrt(dim))
            self.projector = nn.Sequential(
                Linear(dim, width), nn.GELU(), Linear(width, width), nn.GELU(), Linear(width, out)
            )
            for layer in self.projector:
                if isinstance(layer, nn.Linear):
                    nn.init.trunc_normal_(layer.weight, std=0.02)
                    nn.init.zeros_(layer.bias)
        self.register_buffer("center", torch.zeros(dim))
        self.register_buffer("scale", torch.ones(()))
        if kind == "linear":
            self.register_buffer("biases", torch.zeros(n_slots))
        self.register_buffer("unused", None)

    @property
    def n_slots(self) -> int:
        return len(self.prototypes)

    @property
    def device(self) -> torch.device:
        return self.prototypes.device

    def forward(self, inputs: Tensor) -> Output:
        raw = self.embed(inputs)
        features = F.normalize(raw, dim=1, eps=SHORTEST)
        return Output(features, self.classify(features), self.projector(raw).float())

    def embed(self, inputs: Tensor) -> Tensor:
        """Standardised tail output (n, d), not normalised."""
        outputs: Tensor = self.tail(inputs)
        return (outputs.float() - self.center) * self.scale

    def classify(self, features: Tensor) -> Tensor:
        """Logits (n, K) of unit-length features, in float32 whatever the tail is computed in: cosines are divided by
        temperatures, and three digits of them would not do."""
        kind = features.device.type
        if torch.is_autocast_enabled(kind):
            with torch.autocast(kind, enabled=False):
                return self.classify(features)
        if self.kind == "cosine":
            logits = linear(features, F.normalize(self.prototypes, dim=1))
        else:
            logits = linear(features, self.prototypes, self.biases)
        return logits if self.unused is None else logits.masked_fill(self.unused, UNUSED_LOGIT)

    @torch.no_grad()
    def linear_weights(self) -> tuple[Tensor, Tensor]:
        """Weights (K, d) and biases (K,) such that logits = features @ weights.T + biases, whatever the head."""
        cosine = self.kind == "cosine"
        weights = F.normalize(self.prototypes, dim=1) if cosine else self.prototypes.clone()
        biases = self.prototypes.new_zeros(self.n_slots) if cosine else self.biases.clone()
        if self.unused is None:
            return weights, biases
        return weights.masked_fill(self.unused[:, None], 0), biases.masked_fill(self.unused, UNUSED_LOGIT)

    @torch.no_grad()
    def place_prototypes(self, slots: list[int], vectors: Tensor) -> None:
        """Give the slots these prototypes (len(slots), d), to be used: a cosine head takes their direction alone."""
        if self.kind == "cosine":
            vectors = F.normalize(vectors, dim=1) * PROTOTYPE_LENGTH
        places = torch.tensor(slots, dtype=torch.int64).to(self.device)
        self.prototypes.index_copy_(0, places, vectors.to(self.device))
        if self.unused is not None:
            self.unused.index_fill_(0, places, False)

    def disuse(self, slots: list[int]) -> None:
        """Never predict these slots again."""
        if not slots:
            return
        if self.unused is None:
            self.unused = self.prototypes.new_zeros(self.n_slots, dtype=torch.bool)
        self.unused.index_fill_(0, torch.tensor(slots).to(self.device), True)

    @torch.no_grad()
    def grow(self, vectors: Tensor) -> None:
        """Append one slot per row of ``vectors`` (m, d), with bias zero."""
        first = self.n_slots
        self.prototypes = nn.Parameter(torch.cat([self.prototypes, self.prototypes.new_empty(vectors.shape)]))
        if self.unused is not None:
            self.unused = torch.cat([self.unused, self.unused.new_zeros(len(vectors))])
        self.place_prototypes(list(range(first, self.n_slots)), vectors)
        if self.kind == "linear":
            self.biases = torch.cat([self.biases, self.biases.new_zeros(len(vectors))])

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        """Make room for ``unused`` where it is stored; a buffer that is None has none."""
        if f"{prefix}unused" in state_dict and self.unused is None:
            self.unused = self.prototypes.new_zeros(self.n_slots, dtype=torch.bool)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def trainable(self) -> list[nn.Parameter]:
        return [p for p in self.parameters() if p.requires_grad]


@torch.no_grad()
def ema_update(ema: nn.Module, student: nn.Module, decay: float) -> None:
    """ema ← decay·ema + (1 − decay)·student, over trained parameters (the others never move)."""
    pairs = [(a, b) for a, b in zip(ema.parameters(), student.parameters(), strict=True) if b.requires_grad]
    torch._foreach_lerp_([a for a, _ in pairs], [b.detach() for _, b in pairs], 1 - decay)
