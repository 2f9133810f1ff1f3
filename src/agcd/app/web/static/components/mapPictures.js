/** Small pictures in the place of points, once the map is so close that few points are seen. */

import { imageUrl } from "../lib/items.js";
import { IS_IMAGES } from "../lib/kind.js";
import { withoutOverlap } from "../lib/mapNames.js";

const MOST_SEEN = 90;
const SIZE_PX = 54;
const MOST_KEPT = 400;

export class MapPictures {
  /** By row. @type {Map<number, HTMLImageElement>} */
  #images = new Map();

  /** @param {() => void} onload called when a picture has come */
  constructor(onload) {
    this.onload = onload;
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {Api["MapPoints"]} points
   * @param {Places} places
   * @param {import("../lib/mapView.js").MapView} view
   */
  paint(pen, points, places, view) {
    if (view.isWhole || !IS_IMAGES) return;
    const seen = points.row.flatMap((_, index) => (isSeen(places, index, view) ? [index] : []));
    if (seen.length > MOST_SEEN) return;
    const wanted = seen.map((index) =>
      ({ at: { x: places.x[index], y: places.y[index] }, width: SIZE_PX, height: SIZE_PX }));
    for (const place of withoutOverlap(wanted, view)) {
      const { at } = wanted[place];
      const image = this.#imageOf({ row: points.row[seen[place]], v: points.v[seen[place]] });
      if (image.complete && image.naturalWidth) paintSquare(pen, image, at);
    }
  }

  /** @param {Picture} picture */
  #imageOf(picture) {
    const known = this.#images.get(picture.row);
    if (known) return known;
    const image = new Image();
    image.onload = this.onload;
    image.src = imageUrl(picture, 96);
    this.#images.set(picture.row, image);
    const [oldest] = this.#images.keys();
    if (this.#images.size > MOST_KEPT) this.#images.delete(oldest);
    return image;
  }
}

/**
 * @param {Places} places
 * @param {number} index
 * @param {{ width: number, height: number }} view
 */
function isSeen(places, index, { width, height }) {
  const [x, y] = [places.x[index], places.y[index]];
  return x >= 0 && x <= width && y >= 0 && y <= height;
}

/**
 * The middle square of a picture, as the other pages show it.
 * @param {CanvasRenderingContext2D} pen
 * @param {HTMLImageElement} image
 * @param {Point} at
 */
function paintSquare(pen, image, at) {
  const side = Math.min(image.naturalWidth, image.naturalHeight);
  const [left, top] = [at.x - SIZE_PX / 2, at.y - SIZE_PX / 2];
  pen.drawImage(image, (image.naturalWidth - side) / 2, (image.naturalHeight - side) / 2, side, side,
    left, top, SIZE_PX, SIZE_PX);
}
