/** What can be taken away: predictions, labels, the report, the classifier, and the pictures in class folders. */

import { h, replace } from "../lib/dom.js";
import { api } from "../lib/net.js";
import { startJob } from "../lib/polling.js";
import { say } from "../lib/words.js";
import { panel, plainButton } from "./controls.js";
import { FolderSorting } from "./folderSorting.js";

/** @type {Record<string, Record<string, string>>} */
const SHELVES = {
  [say`Predictions for all pictures`]: { "predictions.csv": "CSV", "predictions.parquet": "Parquet",
    "predictions.jsonl": "JSONL" },
  Labels: { "labels.csv": "CSV", "labels.parquet": "Parquet", "labels.jsonl": "JSONL", "labels.coco.json": "COCO",
    "labels.fiftyone.json": "FiftyOne", "labels.label-studio.json": "Label Studio" },
  Report: { "report.html": "HTML" },
};
const CLASSIFIER = { "model.safetensors": "safetensors", "model.json": "model.json", "model.onnx": "ONNX",
  "MODEL_CARD.md": "Model card" };
const NOTHING = say`There is something to download once the pictures are looked at.`;

/**
 * @param {Record<string, string>} files
 * @param {string[]} available
 */
function links(files, available) {
  return Object.entries(files).filter(([file]) => available.includes(file)).map(([file, word]) =>
    h("a", { class: "button small", href: `/api/v1/export/${file}`, download: file }, word));
}

/**
 * @param {string} word
 * @param {Child[]} children
 */
function shelf(word, ...children) {
  return h("div", { class: "download" }, h("span", {}, word), h("div", { class: "toolbar" }, children));
}

/** The box with the links; show() asks anew which files there are, setBusy() while work goes on. */
export class Downloads {
  build = plainButton("Build the classifier files", () => startJob("export").catch(() => {}), "small");
  box = h("div", { class: "downloads" });
  folders = new FolderSorting();
  element = panel("Take it with you", this.box, this.folders.element);

  async show() {
    this.folders.watch();
    /** @type {string[]} */
    const available = await api.get("/api/v1/export", {}, { quiet: true }).catch(() => []);
    const shelves = Object.entries(SHELVES).flatMap(([word, files]) => {
      const there = links(files, available);
      return there.length ? [shelf(word, there)] : [];
    });
    if (!shelves.length) replace(this.box, h("p", { class: "muted" }, NOTHING));
    else replace(this.box, shelves, shelf("Classifier", links(CLASSIFIER, available), this.build));
  }

  /** @param {boolean} isBusy */
  setBusy(isBusy) {
    this.build.disabled = isBusy;
  }
}
