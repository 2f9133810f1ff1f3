/** The items of the project, whatever they are: where their pictures are, what they are at full length, both ahead. */

import { IS_IMAGES, KIND } from "./kind.js";
import { api } from "./net.js";

const MOST_KEPT = 60;
/** The size at which an item is looked at alone; smaller ones stand among others. */
export const LARGE = 1024;

/** @typedef {96 | 160 | 320 | 1024} Size */
/** @typedef {Picture & { text?: string, has_picture?: boolean }} ShownItem */

/** What was fetched last, by address. @type {Map<string, Promise<Api["Item"]>>} */
const known = new Map();

/**
 * The address of a picture.
 * @param {Picture} picture
 * @param {Size} size
 */
export function imageUrl(picture, size) {
  return `/image/${picture.row}?size=${size}&v=${encodeURIComponent(picture.v)}`;
}

/**
 * Whether there is a picture to show.
 * @param {Pick<ShownItem, "has_picture">} item
 */
export function hasPicture(item) {
  return IS_IMAGES || (KIND.hasPictures && item.has_picture === true);
}

/**
 * An item at full length; the last ones are kept, so that what was fetched ahead shows at once.
 * @param {Picture} item
 */
export function fetchItem({ row, v }) {
  const key = `${row} ${v}`;
  const found = known.get(key);
  if (found) return found;
  const asked = api.get("/api/v1/items/{row}", { row, v }, { quiet: true });
  known.set(key, asked);
  asked.catch(() => known.delete(key));
  const [oldest] = known.keys();
  if (known.size > MOST_KEPT) known.delete(oldest);
  return asked;
}

/**
 * Fetch items ahead in the size in which they will be shown.
 * @param {ShownItem[]} items
 * @param {Size} size
 */
export function prefetch(items, size) {
  for (const item of items) {
    if (hasPicture(item)) new Image().src = imageUrl(item, size);
    if (size === LARGE && !IS_IMAGES) fetchWhole(item);
  }
}

/**
 * What comes may be known by its row alone: whether it has a picture is said with the rest.
 * @param {ShownItem} item
 */
async function fetchWhole(item) {
  const found = await fetchItem(item).catch(() => null);
  if (found && hasPicture(found) && !hasPicture(item)) new Image().src = imageUrl(item, LARGE);
}
