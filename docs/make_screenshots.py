"""Take the pictures of the page that the documents show: ``python docs/make_screenshots.py PROJECT``, and those with
texts, which need no project: ``python docs/make_screenshots.py --texts``.

The project stays as it is: a new one is made of its images and first labels. The folders of the images must tell their
classes: that is where the answers come from. It takes a few minutes, for two trainings run in the background.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from agcd.app.create import read_settings
from agcd.app.export.files import label_table
from agcd.app.project import Project
from agcd.app.store.events import new_uid
from agcd.data.tables import write_table
from agcd.io import default_cache
from agcd.lab.datasets import load_data

MOST_BYTES = 300_000
TRAINING_MS = 900_000
N_EVEN = 64
"""Colours of the page itself, which are kept."""
N_AUDITED, N_ANSWERED = 30, 40
N_KNOWN, N_LABELS, N_SAID = 10, 5, 14
"""Of the texts: classes known at the start, their labels, and answers before the picture is taken."""
NOWHERE = (760, 60)
"""A place where nothing reacts to the mouse."""


class Studio:
    """One project served, a browser that looks at it, and what answers from the truth."""

    def __init__(self, browser: Browser, folder: Path, out: Path) -> None:
        command = [sys.executable, "-u", "-m", "agcd.cli", "serve", str(folder), "--port", "0"]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout is not None
        link = self.server.stdout.readline().split()[-1]
        self.url, _, token = link.partition("/login?token=")
        self.http = httpx2.Client(base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        self.folder, self.out = folder, out
        self.page: Page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        self.page.goto(link)
        self.page.wait_for_url(re.compile("/(label|start)$"))

    def close(self) -> None:
        self.page.close()
        self.http.delete("/api/v1/job")
        self.http.close()
        self.server.terminate()
        self.server.wait()

    def go(self, path: str) -> Page:
        self.page.goto(f"{self.url}/{path}")
        return self.page

    def get(self, path: str) -> Any:
        return self.http.get(f"/api/v1/{path}").raise_for_status().json()

    def shoot(self, name: str) -> None:
        """Save what is shown, once every picture has come."""
        if name != "map":  # there it points at a picture
            self.page.mouse.move(*NOWHERE)
        self.page.wait_for_load_state("networkidle")
        self.page.wait_for_function("() => [...document.images].every((image) => image.complete)")
        content = small_png(self.page.screenshot())
        (self.out / f"page-{name}.png").write_bytes(content)
        print(f"page-{name}.png: {len(content) // 1000} kB")

    def truth(self, row: int) -> str:
        with Project.open(self.folder) as project:
            return Path(project.paths[row]).parent.name

    def answer(self, n: int) -> None:
        """Answer the next live questions."""
        for _ in range(n):
            row = self.get("question?who=me&holder=a-studio&live=true")["row"]
            self.say({row: self.truth(row)})

    def answer_audit(self) -> None:
        self.http.post("/api/v1/audit", json={"uid": new_uid(), "n": N_AUDITED}).raise_for_status()
        with Project.open(self.folder) as project:
            audit = project.snapshot().asked.audit
        assert audit is not None
        self.say({question.row: self.truth(question.row) for question in audit.questions}, is_audit=True)

    def wait_for_training(self, n_finished: int) -> None:
        until = time.monotonic() + TRAINING_MS / 1000
        while self.get("state")["n_finished"] < n_finished or self.get("job")["state"] == "running":
            assert time.monotonic() < until, self.get("job")
            time.sleep(0.5)

    def say(self, names: dict[int, str], **more: Any) -> None:
        answers = [{"row": row, "kind": "label", "name": name} for row, name in names.items()]
        body = {"uid": new_uid(), "who": "me", "answers": answers, **more}
        self.http.post("/api/v1/answers", json=body).raise_for_status()

    def asked(self) -> int:
        """The row that the label page asks about."""
        picture = self.page.locator(".card:not(.is-waiting) .viewer img[alt*='which class']")
        found = re.search(r"\d+", picture.get_attribute("alt") or "")
        assert found is not None
        return int(found[0])


def small_png(content: bytes) -> bytes:
    """The picture with ever fewer colours until it is small; those of even areas stay what they are."""
    pixels = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
    small = b""
    for n_colours in (256, 224, 192, 160, 128, 96):
        buffer = io.BytesIO()
        with_palette(pixels, n_colours).save(buffer, "PNG", optimize=True)
        small = buffer.getvalue()
        if len(small) <= MOST_BYTES:
            break
    return small


def with_palette(pixels: np.ndarray, n_colours: int) -> Image.Image:
    """The picture (height, width, 3) with a palette: even colours as they are, the rest by k-means."""
    codes = pixels.astype(np.int64) @ np.array([65536, 256, 1])
    is_even = np.zeros(codes.shape, bool)
    is_even[:-1, :-1] = (codes[:-1, :-1] == codes[1:, :-1]) & (codes[:-1, :-1] == codes[:-1, 1:])
    colours, counts = np.unique(codes[is_even], return_counts=True)
    even = np.sort(colours[np.argsort(-counts)[:N_EVEN]])
    is_kept = np.isin(codes, even)
    rest = Image.fromarray(pixels[~is_kept][None])
    photos = rest.quantize(n_colours - len(even), Image.Quantize.MEDIANCUT, kmeans=4)
    kept = np.stack([even >> 16, even >> 8 & 255, even & 255], 1).ravel().tolist()
    palette = Image.new("P", (1, 1))
    palette.putpalette(kept + (photos.getpalette() or [])[: 3 * (n_colours - len(even))])
    indices = np.array(Image.fromarray(pixels).quantize(palette=palette, dither=Image.Dither.NONE))
    indices[is_kept] = np.searchsorted(even, codes[is_kept])
    image = Image.fromarray(indices.astype(np.uint8), "P")
    image.putpalette(palette.getpalette() or [])
    return image


# ---------------------------------------------------------------------------------------------------- the pictures


def start(studio: Studio) -> None:
    """What was found, and how far it is to the first question."""
    page = studio.page
    page.wait_for_function("() => Number(document.querySelector('.job-panel [role=progressbar]')?.ariaValueNow) > 20")
    studio.shoot("start")
    page.wait_for_url(re.compile("/label$"), timeout=TRAINING_MS)


def label(studio: Studio) -> str:
    """The query card, and the second step of a new class; the name of that class."""
    known = {name["name"] for name in studio.get("names")}
    page = studio.page
    while (name := studio.truth(studio.asked())) in known:  # until a picture comes whose class nobody has named
        page.keyboard.press("/")
        page.keyboard.type(name)
        page.keyboard.press("Enter")
        expect(page.locator(".card-said")).to_contain_text(name)
        studio.page.wait_for_timeout(500)
    studio.shoot("label")
    page.keyboard.press("n")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    expect(page.locator(".card-said")).to_contain_text(name)
    studio.asked()
    page.keyboard.press("m")
    also = page.locator(".also-grid [data-row]")
    expect(also.first).to_be_visible()
    for key, other in zip("123456789qwe", also.evaluate_all("all => all.map(one => +one.dataset.row)"), strict=False):
        if studio.truth(other) == name:
            page.keyboard.press(key)
    studio.shoot("new-class")
    page.keyboard.press("Enter")
    expect(page.locator(".card-said")).to_contain_text(name)
    return name


def rounds(studio: Studio) -> None:
    """Two trainings, with a blind audit."""
    studio.answer_audit()
    studio.wait_for_training(1)
    studio.http.post("/api/v1/job", json={"kind": "train"}).raise_for_status()
    studio.wait_for_training(2)
    page = studio.go("rounds")
    expect(page.locator(".rounds-main .rounds-table")).to_be_visible()
    studio.shoot("rounds")


def review(studio: Studio) -> None:
    """A page of one class, and one picture alone."""
    page = studio.go("review")
    page.wait_for_load_state("networkidle")
    studio.shoot("review")
    page.keyboard.press("g")
    page.wait_for_timeout(500)
    studio.shoot("review-one")


def card(page: Page, name: str) -> Locator:
    return page.locator(".class-card", has=page.get_by_role("heading", name=name, exact=True))


def classes(studio: Studio, name: str) -> None:
    """The board, two names of one class side by side, and a class grown by pages."""
    page = studio.go("classes?sort=new")
    expect(card(page, name)).to_be_visible()
    studio.shoot("classes")
    rows = [thumb["row"] for thumb in studio.get("grid?show=unlabelled&order=confident")["thumbs"]]
    same = [row for row in rows if studio.truth(row) == name][:4]
    other = f"{name}s"  # the second name of a class, to be merged with the first
    studio.say(dict.fromkeys(same, other))
    studio.go("classes?sort=new")
    card(page, other).get_by_role("button", name="Merge").click()
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    expect(page.locator(".merge-preview")).to_be_visible()
    studio.shoot("merge")
    page.keyboard.press("Enter")
    expect(card(page, other)).to_have_count(0)
    studio.go("classes?sort=new")
    card(page, name).get_by_role("button", name="Grow").click()
    expect(page.locator(".grow-page img").first).to_be_visible()
    studio.shoot("grow")
    page.keyboard.press("Escape")


def grid_and_map(studio: Studio) -> None:
    """Some pictures marked in the grid, and the map with one picture looked at."""
    page = studio.go("grid?show=unlabelled&order=class")
    page.locator(".cell").nth(2).click()
    page.locator(".cell").nth(7).click(modifiers=["Shift"])
    studio.shoot("grid")
    studio.go("map")
    expect(page.locator(".map-legend li").first).to_be_visible()
    page.wait_for_timeout(500)
    box = page.locator(".map-plot").bounding_box()
    assert box is not None
    for step in range(200):  # until the pointer finds a picture
        page.mouse.move(box["x"] + box["width"] * (0.1 + step * 0.004), box["y"] + box["height"] * 0.5)
        if page.locator(".map-look img").count():
            break
    studio.shoot("map")


# --------------------------------------------------------------------------------------------------- the projects


def untrained(project: Path, folder: Path) -> Path:
    """A new project of the same images and first labels."""
    with Project.open(project) as trained:
        table, images = label_table(trained, trained.snapshot()), read_settings(project / "agcd.toml")[1]
    seeds = [i for i, source in enumerate(table["source"]) if source == "seed"]
    lines = ["path,label", *(f"{table['path'][i]},{table['class'][i]}" for i in seeds)]
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    new = folder / project.name
    Project.create(new, images, folder / "labels.csv").close()
    return new


@contextmanager
def served(browser: Browser, folder: Path, out: Path) -> Iterator[Studio]:
    studio = Studio(browser, folder, out)
    try:
        yield studio
    finally:
        studio.close()


@contextmanager
def browsing() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        executable = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def make_texts(out: Path) -> None:
    """The label card and the review of questions to a bank, which come with agcd."""
    data = load_data("banking20", default_cache())
    rows = np.flatnonzero(~data.is_test)
    said = np.zeros(len(data.classes), np.int64)
    lines: dict[str, list[str]] = {"id": [], "text": [], "label": []}
    for row in rows.tolist():
        c = int(data.y_class[row])
        said[c] += 1
        is_known = c < N_KNOWN and said[c] <= N_LABELS
        for name, value in zip(lines, (f"Q{row}", data.texts[row], data.classes[c] if is_known else ""), strict=True):
            lines[name].append(value)
    with TemporaryDirectory() as scratch, browsing() as browser:
        write_table(Path(scratch) / "bank.csv", lines)
        Project.create(Path(scratch) / "bank", Path(scratch) / "bank.csv", kind="text").close()
        with served(browser, Path(scratch) / "bank", out) as studio:
            question = studio.page.locator(".card:not(.is-waiting) .viewer-text")
            expect(question).to_be_visible(timeout=TRAINING_MS)
            for _ in range(N_SAID):
                row = studio.get("question?who=me&holder=a-studio&live=true")["row"]
                studio.say({row: data.classes[data.y_class[rows[row]]]})
            studio.go("label")
            expect(question).to_be_visible()
            studio.shoot("texts-label")
            studio.go("review")
            expect(studio.page.locator(".review-tile").first).to_be_visible()
            studio.shoot("texts-review")


def make_all(project: Path, out: Path, name: str) -> None:
    with TemporaryDirectory() as scratch, browsing() as browser:
        (Path(scratch) / "new").mkdir()
        copy = Path(shutil.copytree(project, Path(scratch) / name))
        with served(browser, untrained(copy, Path(scratch) / "new"), out) as studio:
            start(studio)
            new_class = label(studio)
            studio.answer(N_ANSWERED)
            rounds(studio)
            review(studio)
            classes(studio, new_class)
            grid_and_map(studio)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path, nargs="?")
    parser.add_argument("--texts", action="store_true", help="the pictures with texts alone")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "images")
    parser.add_argument("--name", default="groceries", help="what the pages call the project")
    given = parser.parse_args()
    if given.texts:
        make_texts(given.out)
    else:
        make_all(given.project, given.out, given.name)
