/** Small helpers to build the page. Everything that comes from people or the server is set as text. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {HTMLElement | SVGElement} element
 * @param {string} name
 * @param {any} value
 */
function setProperty(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (name === "style") for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
  else if (name === "value" && "value" in element) element.value = value;
  else element.setAttribute(name, value === true ? "" : value);
}

/**
 * @template {HTMLElement | SVGElement} T
 * @param {T} element
 * @param {Properties} properties
 * @param {Child[]} children
 */
function build(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) setProperty(element, name, value);
  append(element, children);
  return element;
}

/**
 * @param {Element} element
 * @param {readonly Child[]} children
 */
function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child !== null && child !== undefined && child !== false) {
      element.append(/** @type {Node | string} */ (child));
    }
  }
}

/**
 * An HTML element. Properties: class, dataset {}, style {} (set one by one, for the CSP), on<event>, attributes.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Properties} properties
 * @param {Child[]} children
 */
export function h(tag, properties, ...children) {
  return build(document.createElement(tag), properties, children);
}

/**
 * An SVG element, with the same properties as h().
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Properties} properties
 * @param {Child[]} children
 */
export function svg(tag, properties, ...children) {
  return build(document.createElementNS(SVG, tag), properties, children);
}

/**
 * Put new children in the place of all the old ones.
 * @param {Element} element
 * @param {Child[]} children
 */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/**
 * A text with its marks, as text nodes: whatever it says is never markup.
 * @param {import("./texts.js").Piece[]} pieces
 */
export function textNodes(pieces) {
  return pieces.map(({ text, mark }) => (mark ? h("mark", { class: mark }, text) : text));
}

/**
 * Change an element's text only where it differs, so that nothing flickers.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * An element of the shell, which every page has.
 * @param {string} id
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`The page has no element "${id}".`);
  return element;
}

/**
 * The element that an event happened to.
 * @param {Event} event
 */
export function targetOf(event) {
  return /** @type {HTMLElement} */ (event.target);
}

/**
 * Whether a key for adding to what is chosen is held.
 * @param {MouseEvent} event
 */
export function isAdding(event) {
  return event.ctrlKey || event.metaKey || event.shiftKey;
}

/**
 * A point of the window in the coordinates of a box, which scroll with it.
 * @param {Element} box
 * @param {MouseEvent} event
 * @returns {Point}
 */
export function pointIn(box, event) {
  const place = box.getBoundingClientRect();
  return { x: event.clientX - place.left, y: event.clientY - place.top };
}

const TEXTLESS_INPUTS = new Set(["checkbox", "radio", "button", "submit", "reset", "range", "color", "file"]);

/**
 * Whether keys pressed here write text.
 * @param {HTMLElement} element
 */
export function isTyping(element) {
  if (element.isContentEditable || element.matches?.("textarea, select")) return true;
  return element instanceof HTMLInputElement && !TEXTLESS_INPUTS.has(element.type);
}
