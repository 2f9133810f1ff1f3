/** What can be taken away: predictions, labels, the report and the classifier. */

import { api, h, replace, startJob } from "./core.js";
import { plainButton } from "./parts.js";
import { panel } from "./roundparts.js";

const SHELVES = {
  "Predictions for all pictures": { "predictions.csv": "CSV", "predictions.parquet": "Parquet" },
  Labels: { "labels.csv": "CSV", "labels.parquet": "Parquet", "labels.coco.json": "COCO",
    "labels.label-studio.json": "Label Studio" },
  Report: { "report.html": "HTML" },
};
const CLASSIFIER = { "model.safetensors": "safetensors", "model.json": "model.json", "model.onnx": "ONNX" };
const NOTHING = "There is something to download after the first round.";

function links(files, available) {
  return Object.entries(files).filter(([file]) => available.includes(file)).map(([file, word]) =>
    h("a", { class: "button small", href: `/api/export/${file}`, download: file }, word));
}

function shelf(word, ...children) {
  return h("div", { class: "download" }, h("span", {}, word), h("div", { class: "toolbar" }, children));
}

/** The box with the links; show() asks anew which files there are, setBusy() while work goes on. */
export class Downloads {
  constructor() {
    this.build = plainButton("Build the classifier files", () => startJob("export").catch(() => {}), "small");
    this.box = h("div", { class: "downloads" });
    this.element = panel("Take it with you", this.box);
  }

  async show() {
    const available = await api.get("/api/export", { quiet: true }).catch(() => []);
    const shelves = Object.entries(SHELVES).map(([word, files]) => [word, links(files, available)])
      .filter(([, there]) => there.length).map(([word, there]) => shelf(word, there));
    if (!shelves.length) replace(this.box, h("p", { class: "muted" }, NOTHING));
    else replace(this.box, shelves, shelf("Classifier", links(CLASSIFIER, available), this.build));
  }

  setBusy(isBusy) {
    this.build.disabled = isBusy;
  }
}
