/** Where the names of groups and small pictures stand on the map, so that none covers another. */

/**
 * @param {number[]} values
 */
function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

/**
 * The middle of each group, by its number; null for one without points. Medians: a few strays must not move a name.
 * @param {ArrayLike<number>} groupOf the group of each point
 * @param {number} nGroups
 * @param {Places} places
 * @param {(x: number, y: number) => boolean} [isSeen] which points count
 * @returns {(Point | null)[]}
 */
export function middlesOf(groupOf, nGroups, places, isSeen = () => true) {
  const xs = Array.from({ length: nGroups }, () => /** @type {number[]} */ ([]));
  const ys = Array.from({ length: nGroups }, () => /** @type {number[]} */ ([]));
  for (let index = 0; index < groupOf.length; index += 1) {
    const [x, y] = [places.x[index], places.y[index]];
    if (!isSeen(x, y)) continue;
    xs[groupOf[index]].push(x);
    ys[groupOf[index]].push(y);
  }
  return xs.map((x, group) => (x.length ? { x: median(x), y: median(ys[group]) } : null));
}

/** @typedef {{ at: Point, width: number, height: number }} Wanted */

/**
 * Which of some boxes, the most wanted first, can be drawn without covering one drawn before or leaving the map;
 * a box stands on the middle of its place. Returns the indices of those that can.
 * @param {Wanted[]} wanted
 * @param {{ width: number, height: number }} room
 * @returns {number[]}
 */
export function withoutOverlap(wanted, room) {
  /** @type {Wanted[]} */
  const drawn = [];
  const isFree = (/** @type {Wanted} */ one) => one.at.x - one.width / 2 >= 0 && one.at.x + one.width / 2 <= room.width
    && one.at.y - one.height / 2 >= 0 && one.at.y + one.height / 2 <= room.height
    && drawn.every((other) => Math.abs(other.at.x - one.at.x) >= (other.width + one.width) / 2
      || Math.abs(other.at.y - one.at.y) >= (other.height + one.height) / 2);
  return wanted.flatMap((one, index) => {
    if (!isFree(one)) return [];
    drawn.push(one);
    return [index];
  });
}

/**
 * A place moved so that its box lies inside the map: a name near the edge is pushed in, not cut off.
 * @param {Wanted} one
 * @param {{ width: number, height: number }} room
 * @returns {Wanted}
 */
export function pushedInside({ at, width, height }, room) {
  const into = (/** @type {number} */ value, /** @type {number} */ size, /** @type {number} */ most) =>
    Math.max(size / 2, Math.min(value, most - size / 2));
  return { at: { x: into(at.x, width, room.width), y: into(at.y, height, room.height) }, width, height };
}
