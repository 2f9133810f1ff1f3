/** The query card: the picture, its candidate classes and its neighbours. Built once, filled for every question. */

import { count, h, percent, replace, setText } from "./dom.js";
import { keyHint } from "./keys.js";
import { thumbElement } from "./thumbs.js";
import { Viewer } from "./viewer.js";

function candidateRow(candidate, index, choose) {
  const nameClass = candidate.is_named ? "candidate-name" : "candidate-name unnamed";
  const name = h("strong", { class: nameClass, title: candidate.name }, candidate.name);
  const badge = h("span", { class: candidate.is_new ? "badge badge-new" : "badge" }, candidate.is_new ? "new" : "old");
  const share = h("span", { class: "share" },
    h("span", { class: "share-fill", style: { width: `${candidate.probability * 100}%` } }));
  return h("button", { type: "button", class: "candidate", onclick: () => choose(index) },
    keyHint(`candidate${index + 1}`),
    h("span", { class: "candidate-text" },
      name,
      h("span", { class: "candidate-facts numbers" }, badge, `${count(candidate.size)} pictures`),
      h("span", { class: "candidate-share" }, share,
        h("span", { class: "candidate-percent numbers" }, percent(candidate.probability)))),
    h("span", { class: "candidate-thumbs" },
      candidate.exemplars.map((thumb) => thumbElement(thumb, { caption: false, badges: "people" }))));
}

function band(title, hint, thumbs) {
  return h("section", { class: "band", "aria-label": title },
    h("h3", {}, title, " ", h("span", { class: "hint" }, hint)), thumbs);
}

/** The card as it stands on the page. `choose(index)` takes a candidate, `sameAs(thumb)` a labelled neighbour. */
export class CardView {
  constructor({ choose, sameAs, search }) {
    Object.assign(this, { choose, sameAs, search, viewer: new Viewer() });
    this.number = h("strong", { class: "numbers" });
    this.group = h("span", { class: "card-group" });
    this.said = h("span", { class: "muted card-said", role: "status" });
    this.why = h("p", { class: "muted card-why" });
    this.candidates = h("section", { class: "candidates", "aria-label": "Suggestions" });
    this.labelled = h("div", { class: "band-thumbs" });
    this.unlabelled = h("div", { class: "band-thumbs" });
    this.bands = h("div", { class: "bands" },
      band("Nearest labelled", "click one: “same as this”", this.labelled),
      band("Nearest unlabelled", "with what the model says", this.unlabelled));
    this.element = h("div", { class: "card" },
      h("section", { class: "card-picture", "aria-label": "Picture" },
        h("div", { class: "card-head" },
          h("div", { class: "card-line" }, this.number, this.group, this.said), this.why),
        this.viewer.element),
      this.candidates, this.bands);
  }

  /** Show the picture of the question that will most likely come, while the server is asked. */
  showComing(thumb) {
    if (thumb) this.viewer.show(thumb, "The next picture");
    this.element.classList.add("is-waiting");
  }

  /** Show a question. */
  show(card) {
    const isHidden = card.is_blind || card.is_audit;
    this.element.classList.remove("is-waiting");
    this.element.classList.toggle("is-blind", isHidden);
    this.viewer.show(card, `Picture ${card.row}: which class is it?`);
    setText(this.number, `Question ${card.number} of ${card.of}`);
    // Group and reason name the predicted class: part of what a blind answer must not see.
    setText(this.group, isHidden || !card.group ? "" : `Group: ${card.group}`);
    setText(this.why, isHidden ? "" : card.why);
    const rows = card.candidates.map((one, index) => candidateRow(one, index, this.choose));
    replace(this.candidates, isHidden ? this.blindNote(card) : rows);
    this.fill(this.labelled, card.labelled_neighbours, (thumb) => this.labelledThumb(thumb));
    this.fill(this.unlabelled, card.neighbours, (thumb) => thumbElement(thumb, { badges: "none" }));
  }

  fill(element, thumbs, build) {
    replace(element, thumbs.length ? thumbs.map(build) : h("span", { class: "muted" }, "none yet"));
  }

  labelledThumb(thumb) {
    const label = `Same as this: ${thumb.name}`;
    return thumbElement(thumb, { badges: "people", label, onclick: () => this.sameAs(thumb) });
  }

  blindNote(card) {
    const why = card.is_audit ? "Answer from the picture alone." : "Blind mode: suggestions and neighbours are hidden.";
    return h("div", { class: "blind" },
      h("h2", {}, "Which class is it?"),
      h("p", { class: "muted" }, why),
      h("button", { type: "button", class: "button primary large", onclick: this.search },
        "Type its name ", keyHint("accept")));
  }
}
