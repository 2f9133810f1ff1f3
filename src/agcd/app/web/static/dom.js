/** Small helpers to build the page: elements, numbers in words, and what the browser remembers. */

const SVG = "http://www.w3.org/2000/svg";

function setProperty(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "class") element.setAttribute("class", value);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (name === "style") for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
  else if (name === "value") element.value = value;
  else element.setAttribute(name, value === true ? "" : value);
}

function build(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) setProperty(element, name, value);
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** An HTML element. Properties: class, dataset {}, style {} (set one by one, for the CSP), on<event>, attributes. */
export function h(tag, properties, ...children) {
  return build(document.createElement(tag), properties, children);
}

/** An SVG element, with the same properties as h(). */
export function svg(tag, properties, ...children) {
  return build(document.createElementNS(SVG, tag), properties, children);
}

/** Put new children in the place of all the old ones. */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Change an element's text only where it differs, so that nothing flickers. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** 12345 → "12,345". */
export function count(n) {
  return n.toLocaleString("en-GB");
}

/** plural(2, "class", "classes") → "2 classes". */
export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** 0.873 → "87 %". */
export function percent(share) {
  return `${Math.round(share * 100)} %`;
}

/** Seconds in words: "8 s", "3 min", "1 h 20 min". */
export function duration(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function delay(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function memory(storageOf) {
  return {
    /** What was kept, or null; a browser that keeps nothing is no error. */
    get(key) {
      try {
        return JSON.parse(storageOf().getItem(`agcd.${key}`));
      } catch {
        return null;
      }
    },
    set(key, value) {
      try {
        if (value === null) storageOf().removeItem(`agcd.${key}`);
        else storageOf().setItem(`agcd.${key}`, JSON.stringify(value));
      } catch {
        // Storage is full or forbidden: the choice lasts as long as the page.
      }
    },
  };
}

/** Kept by this browser. */
export const kept = memory(() => localStorage);
/** Kept by this tab. */
export const keptByTab = memory(() => sessionStorage);
