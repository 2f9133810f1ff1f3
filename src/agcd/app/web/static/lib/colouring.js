/** What the colours of the map mean: each way to colour sorts the points into groups with a colour and a name. */

import { middlesOf } from "./mapNames.js";
import { SURENESS_WORDS, unsureness } from "./words.js";

// After Paul Tol's schemes for colour-blind readers, the darkest ones lightened so that they also show on a dark page:
// cool hues for known classes, warm ones for those found later, and the two have different markers besides.
const COOL = ["#4477aa", "#88ccee", "#228844", "#44aa99", "#6f5fd0", "#77aadd", "#2f8080", "#99ddaa"];
const WARM = ["#ee7733", "#b84080", "#ddaa33", "#d0402a", "#ee99aa", "#b0660f", "#cc6677", "#aa4499"];
const SURENESS = ["#b4c0d0", "#8fa9cc", "#e3bf62", "#ee8a3c", "#b3261e"];
const GREY = "#aab4c3";

/** @typedef {Api["MapPoints"]} MapPoints */
/** @typedef {{ name: string, colour: string, isNew?: boolean, isLarge?: boolean }} Kind */
/**
 * Kinds of points, the kind of each point, and the order of the legend.
 * @typedef {{ kinds: Kind[], of: (index: number) => number, order: number[] }} Sorted
 */
/** @typedef {Kind & { indices: number[] }} ColourGroup */
/** @typedef {{ groups: ColourGroup[], order: number[] }} Colouring */

/** The colours of classes: a class keeps its own in all rounds. */
export class ClassColours {
  /** @type {Map<string, { colour: string, at: Point }>} */
  #held = new Map();

  /**
   * The colour of a class whose middle is `at`: of its kind's colours the one whose nearest holder is farthest away, so
   * that neighbours differ however many classes there are. Those that ask first choose first.
   * @param {string} name
   * @param {boolean} isNew
   * @param {Point} at
   */
  of(name, isNew, at) {
    const key = `${isNew} ${name}`;
    const known = this.#held.get(key);
    if (known) return known.colour;
    const rooms = (isNew ? WARM : COOL).map((colour) => ({ colour, room: this.#nearestHolder(colour, at) }));
    const { colour } = rooms.reduce((best, one) => (one.room > best.room ? one : best));
    this.#held.set(key, { colour, at });
    return colour;
  }

  /**
   * @param {string} colour
   * @param {Point} at
   */
  #nearestHolder(colour, at) {
    const holders = [...this.#held.values()].filter((one) => one.colour === colour);
    return Math.min(Infinity, ...holders.map((one) => Math.hypot(one.at.x - at.x, one.at.y - at.y)));
  }
}

/**
 * The largest classes come first.
 * @param {MapPoints} points
 * @param {ClassColours} colours
 * @returns {Sorted}
 */
function byClass(points, colours) {
  const sizes = points.names.map(() => 0);
  for (const name of points.name) sizes[name] += 1;
  const order = points.names.map((_, index) => index).sort((a, b) => sizes[b] - sizes[a]);
  const middles = middlesOf(points.name, points.names.length, points);
  const colourOf = (/** @type {number} */ index) =>
    colours.of(points.names[index], points.is_new[index], middles[index] ?? { x: 0, y: 0 });
  order.forEach(colourOf);
  const kinds = points.names.map((name, index) => ({ name, colour: colourOf(index), isNew: points.is_new[index] }));
  return { kinds, of: (index) => points.name[index], order };
}

/**
 * @param {MapPoints} points
 * @returns {Sorted}
 */
function byOrigin(points) {
  const kinds = [{ name: "known class", colour: COOL[0], isNew: false },
    { name: "found by you, or unnamed", colour: WARM[0], isNew: true }];
  return { kinds, of: (index) => Number(points.is_new[points.name[index]]), order: [0, 1] };
}

/**
 * @param {MapPoints} points
 * @returns {Sorted}
 */
function bySureness(points) {
  const kinds = SURENESS_WORDS.map((name, index) => ({ name, colour: SURENESS[index] }));
  return { kinds, of: (index) => unsureness(points.margin[index]), order: [4, 3, 2, 1, 0] };
}

/**
 * @param {MapPoints} points
 * @returns {Sorted}
 */
function byDisagreement(points) {
  const kinds = [{ name: "not labelled by people", colour: GREY },
    { name: "labelled, the model agrees", colour: "#0077bb" },
    { name: "people and model disagree", colour: "#cc3311", isLarge: true }];
  const of = (/** @type {number} */ index) => (points.disagrees[index] ? 2 : Number(points.by[index] === "human"));
  return { kinds, of, order: [2, 1, 0] };
}

/** The ways to colour, in the order of their buttons. */
export const COLOURINGS = Object.freeze({
  class: { word: "Class", sort: byClass },
  origin: { word: "Known or found", sort: byOrigin },
  sureness: { word: "Sure or unsure", sort: bySureness },
  disagreement: { word: "Disagreement", sort: byDisagreement },
});

/** @typedef {keyof typeof COLOURINGS} ColouringName */

/**
 * @param {string} name
 * @returns {name is ColouringName}
 */
export function isColouring(name) {
  return Object.hasOwn(COLOURINGS, name);
}

/**
 * Sort points into groups that share a colour.
 * @param {ColouringName} name
 * @param {MapPoints} points
 * @param {ClassColours} colours
 * @returns {Colouring}
 */
export function colouringOf(name, points, colours) {
  const { kinds, of, order } = COLOURINGS[name].sort(points, colours);
  /** @type {ColourGroup[]} */
  const groups = kinds.map((kind) => ({ ...kind, indices: [] }));
  points.row.forEach((_, index) => groups[of(index)].indices.push(index));
  return { groups, order };
}
