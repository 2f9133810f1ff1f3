/** What the colours of the map mean: each way to colour sorts the points into groups with a colour and a name. */

// After Paul Tol's schemes for colour-blind readers: cool hues for old classes, warm ones for new; each varies in
// lightness, and old and new have different markers besides.
const COOL = ["#4477aa", "#88ccee", "#117733", "#44aa99", "#332288", "#77aadd", "#225555", "#99ddaa"];
const WARM = ["#ee7733", "#882255", "#ddaa33", "#cc3311", "#ee99aa", "#994f00", "#cc6677", "#aa4499"];
const CERTAINTY = ["#b4c0d0", "#8fa9cc", "#e3bf62", "#ee8a3c", "#b3261e"];
const GREY = "#aab4c3";

const coloursByName = new Map();
const taken = { cool: 0, warm: 0 };

/** A class keeps its colour in all rounds; the largest come first and get the most different ones. */
function classColour(name, isNew) {
  const key = `${isNew} ${name}`;
  if (!coloursByName.has(key)) {
    const [palette, shelf] = isNew ? [WARM, "warm"] : [COOL, "cool"];
    coloursByName.set(key, palette[taken[shelf] % palette.length]);
    taken[shelf] += 1;
  }
  return coloursByName.get(key);
}

function byClass(points) {
  const sizes = points.names.map(() => 0);
  for (const name of points.name) sizes[name] += 1;
  const order = points.names.map((_, index) => index).sort((a, b) => sizes[b] - sizes[a]);
  const colours = new Map(order.map((index) => [index, classColour(points.names[index], points.is_new[index])]));
  const groups = points.names.map((name, index) => ({ name, colour: colours.get(index), isNew: points.is_new[index] }));
  return { groups, of: (index) => points.name[index], order };
}

function byAge(points) {
  const groups = [{ name: "old class", colour: COOL[0], isNew: false },
    { name: "new class or group", colour: WARM[0], isNew: true }];
  return { groups, of: (index) => Number(points.is_new[points.name[index]]), order: [0, 1] };
}

function byUncertainty(points) {
  const words = ["certain", "rather certain", "in between", "uncertain", "very uncertain"];
  const groups = words.map((name, index) => ({ name, colour: CERTAINTY[index] }));
  const of = (index) => Math.min(words.length - 1, Math.max(0, Math.floor((1 - points.margin[index]) * words.length)));
  return { groups, of, order: [4, 3, 2, 1, 0] };
}

function byDisagreement(points) {
  const groups = [{ name: "not labelled by people", colour: GREY },
    { name: "labelled, the model agrees", colour: "#0077bb" },
    { name: "people and model disagree", colour: "#cc3311", isLarge: true }];
  const of = (index) => (points.disagrees[index] ? 2 : Number(points.by[index] === "human"));
  return { groups, of, order: [2, 1, 0] };
}

/** The ways to colour, in the order of their buttons. */
export const COLOURINGS = {
  class: { word: "Class", sort: byClass },
  age: { word: "Old or new", sort: byAge },
  uncertainty: { word: "Uncertainty", sort: byUncertainty },
  disagreement: { word: "Disagreement", sort: byDisagreement },
};

/** Sort points into groups: {groups [{name, colour, isNew, isLarge, indices}], of(index), order (of the legend)}. */
export function colouringOf(name, points) {
  const sorted = COLOURINGS[name].sort(points);
  for (const group of sorted.groups) group.indices = [];
  points.row.forEach((_, index) => sorted.groups[sorted.of(index)].indices.push(index));
  return sorted;
}
