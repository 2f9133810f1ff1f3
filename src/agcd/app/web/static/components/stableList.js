/**
 * A list of elements, one for each item; those of unchanged items stay in place, so that no picture flickers.
 * @template Item, Key
 */
export class StableList {
  /** @type {Map<Key, { text: string, element: HTMLElement }>} */
  shown = new Map();

  /**
   * @param {HTMLElement} box
   * @param {(item: Item) => Key} keyOf
   * @param {(item: Item) => HTMLElement} build
   */
  constructor(box, keyOf, build) {
    this.box = box;
    this.keyOf = keyOf;
    this.build = build;
  }

  /** @param {Item[]} items */
  draw(items) {
    const next = new Map();
    for (const item of items) {
      const text = JSON.stringify(item);
      const old = this.shown.get(this.keyOf(item));
      next.set(this.keyOf(item), old?.text === text ? old : { text, element: this.build(item) });
    }
    this.shown = next;
    this.arrange([...next.values()].map((one) => one.element));
  }

  /** @param {HTMLElement[]} wanted */
  arrange(wanted) {
    const staying = new Set(/** @type {Element[]} */ (wanted));
    for (const child of [...this.box.children]) if (!staying.has(child)) child.remove();
    wanted.forEach((element, index) => {
      if (this.box.children[index] !== element) this.box.insertBefore(element, this.box.children[index] ?? null);
    });
  }

  /** @param {Key | undefined} key */
  element(key) {
    return (key !== undefined && this.shown.get(key)?.element) || null;
  }

  /** How many elements stand in the first line. */
  columns() {
    const tops = [...this.shown.values()].map((one) => one.element.offsetTop);
    return Math.max(1, tops.filter((top) => top === tops[0]).length);
  }
}
