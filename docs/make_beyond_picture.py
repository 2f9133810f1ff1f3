"""Draw what our rule of asking does, on points in the plane: ``python docs/make_beyond_picture.py``.

Seven groups of uneven size and density, of which three have labels. Strategies compare rows by cosine, so the points
are lifted with random Fourier features (Rahimi and Recht 2007): the cosine of two lifted points falls with their
distance in the plane, and near points are near by cosine. The labels, the beliefs and both strategies' questions are
what the package computes; the model that ``adaptive_novel`` asks is k-means with labels under a cosine head.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb

from agcd.asking import Asking
from agcd.plotting import FAINT, INK, MUTED, NEW, OLD, OURS, RIVALS, house_style, new_figure, png_bytes
from agcd.strategies import select
from agcd.training.kmeans import semi_supervised_kmeans
from agcd.types import FloatArray, IntArray, PoolView

OUT = Path(__file__).parent / "images" / "beyond-idea.png"
CENTRES = np.array([[-3.0, 1.5], [-3.2, -1.6], [-0.9, 2.2], [0.8, -0.6], [-1.4, -2.6], [2.6, 2.2], [3.1, -2.3]])
SPREADS = np.array([0.55, 0.45, 0.40, 0.80, 0.30, 0.35, 0.30])
SIZES = np.array([110, 80, 60, 260, 45, 70, 35])
N_OLD, N_LABELS_EACH, N_QUESTIONS = 3, 8, 6
COLOURS = (OLD, RIVALS[1], RIVALS[2], NEW, OURS, RIVALS[4], RIVALS[5])
HOT = LinearSegmentedColormap.from_list("hot", [FAINT, "#F4B183", NEW])


def make_points(rng: np.random.Generator) -> tuple[FloatArray, IntArray, IntArray]:
    """Points (n, 2), their group (n,), and what is known of it (n,): −1 where nothing is."""
    group = np.repeat(np.arange(len(SIZES)), SIZES)
    points = CENTRES[group] + rng.normal(size=(len(group), 2)) * SPREADS[group, None]
    y_class = np.full(len(group), -1)
    for c in range(N_OLD):
        y_class[rng.choice(np.flatnonzero(group == c), N_LABELS_EACH, replace=False)] = c
    return points, group, y_class


def lifted(points: FloatArray, rng: np.random.Generator, distance: float = 1.0, width: int = 1024) -> FloatArray:
    """Unit vectors (n, width) whose cosines are about exp(−(d / distance)² / 2), d the distance in the grid_map."""
    angles = points @ (rng.normal(size=(2, width // 2)) / distance)
    return np.asarray(np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(width / 2))


def pool_view(x: FloatArray, y_class: IntArray, rng: np.random.Generator) -> PoolView:
    """What strategies see of a model with one prototype per group, found by k-means that keeps labels together."""
    centres = semi_supervised_kmeans(x, y_class, len(SIZES), rng).centres
    cosine = x @ (centres / np.linalg.norm(centres, axis=1, keepdims=True)).T
    probs = np.exp(cosine / 0.1)
    probs /= probs.sum(1, keepdims=True)
    pool, known = np.flatnonzero(y_class < 0), np.flatnonzero(y_class >= 0)
    return PoolView(pool, probs[pool], x[pool], x[known], y_class[known], N_OLD, phase="confident")


def asked_one_by_one(asking: Asking, group: IntArray) -> IntArray:
    """Questions of which each is decided after the true answers to all before it."""
    rows = []
    for _ in range(N_QUESTIONS):
        rows.append(asking.next())
        asking.tell(rows[-1], int(group[rows[-1]]))
    return np.asarray(rows)


def mixed(colours: list[str], share: FloatArray) -> FloatArray:
    """Each colour mixed with grey; a share of one leaves it pure: → (n, 3)."""
    pure = np.array([to_rgb(colour) for colour in colours])
    return np.asarray(share[:, None] * pure + (1 - share[:, None]) * np.array(to_rgb(FAINT)))


def draw(axes: Axes, points: FloatArray, colours: FloatArray, title: str, caption: str) -> None:
    axes.scatter(points[:, 0], points[:, 1], s=13, c=colours, linewidths=0)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(caption, loc="left", color=MUTED, fontsize=9)
    axes.set(xticks=[], yticks=[], aspect="equal", xlim=(-5, 4.4), ylim=(-3.9, 3.7))
    for side in axes.spines.values():
        side.set(visible=True, color=FAINT)


def number(axes: Axes, points: FloatArray) -> None:
    """A numbered ring beside each point, with a line to it where rings would hide each other."""
    ring = {"boxstyle": "circle,pad=0.2", "facecolor": "white", "edgecolor": INK, "linewidth": 1.2}
    for i, (point, place) in enumerate(zip(points, apart(points), strict=True), 1):
        axes.plot([point[0], place[0]], [point[1], place[1]], color=INK, linewidth=0.8)
        axes.scatter(point[0], point[1], s=5, color=INK, zorder=2.5)
        axes.text(place[0], place[1], str(i), ha="center", va="center", fontsize=8.5, fontweight="bold", bbox=ring)


def apart(points: FloatArray, least: float = 0.75) -> FloatArray:
    """The points (n, 2), moved by little steps until no two are closer than ``least``."""
    places = points + np.random.default_rng(0).normal(size=points.shape) * 1e-3
    for _ in range(200):
        away = places[:, None] - places
        distance = np.linalg.norm(away, axis=2) + np.eye(len(points)) * least
        push = np.maximum(least - distance, 0) / distance
        places = places + 0.3 * (push[:, :, None] * away).sum(1)
    return places


@house_style()
def main() -> None:
    rng = np.random.default_rng(0)
    points, group, y_class = make_points(rng)
    x = lifted(points, rng)
    view = pool_view(x, y_class, rng)
    asking = Asking(x, y_class)
    belief, worth = asking.beliefs.at(), asking.gains()
    ours = asked_one_by_one(asking, group)
    papers = select(view, "adaptive_novel", N_QUESTIONS, rng)
    print("groups asked about:", group[ours], "by ours,", group[papers], "by adaptive_novel")

    figure = new_figure(9.6, 3.45)
    figure.set_dpi(115)
    first, second, third = figure.subplots(1, 3)
    told = mixed([COLOURS[c] for c in belief.y_class], np.asarray(belief.margin / belief.margin.max()))
    draw(first, points, told, "1. What labels say", "squares: labels of three old classes\ngrey: not certain")
    known = y_class >= 0
    marks = [COLOURS[c] for c in y_class[known]]
    first.scatter(points[known, 0], points[known, 1], s=24, c=marks, marker="s", edgecolors=INK, linewidths=0.8)
    caption = "orange: covers much that is not certain\nnumbers: six questions, each after the last answer"
    draw(second, points, HOT(worth / worth.max())[:, :3], "2. Where an answer covers most", caption)
    number(second, points[ours])
    slots = mixed([COLOURS[slot] for slot in view.probs.argmax(1)], np.full(len(view.rows), 0.6))
    caption = "colours: what a model takes for classes\nnumbers: Adaptive-Novel, confident phase"
    draw(third, points[view.rows], slots, "3. What the paper asks", caption)
    number(third, points[papers])
    OUT.write_bytes(png_bytes(figure))


if __name__ == "__main__":
    main()
