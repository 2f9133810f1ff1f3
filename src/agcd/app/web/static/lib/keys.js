/** Keys as data: how they are compared and written, which can be given to an action, and which action one runs. */

/**
 * Something that a key does. `key` is its first key, `pressed` the present one; `also` are keys that work too and stay,
 * such as "Ctrl+z"; it runs only `when` that says so, and again while the key is held if it `repeats`.
 * @typedef {{ label: string, key: string, run: (event: KeyboardEvent | MouseEvent) => unknown, pressed?: string,
 *   also?: string[], when?: () => boolean, repeats?: boolean }} Action
 */

const NAMED_KEYS = new Map(Object.entries({
  " ": "Space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Enter: "Enter", Escape: "Esc",
  Backspace: "⌫", Delete: "Del", Home: "Home", End: "End", PageUp: "PgUp", PageDown: "PgDn", Insert: "Ins",
}));
const NOT_TO_GIVE = new Set(["Escape"]);

/**
 * A key in the form that is compared and kept: letters small, everything else as the browser says it.
 * @param {string} key
 */
export function plainKey(key) {
  return key.length === 1 ? key.toLowerCase() : key;
}

/**
 * The key of an event with its modifier, as it is compared: "a", "Ctrl+a".
 * @param {Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey">} event
 */
export function pressedKey(event) {
  const key = plainKey(event.key);
  return event.ctrlKey || event.metaKey ? `Ctrl+${key}` : key;
}

/**
 * Whether an action can be given this key: one printable character or one of the named keys.
 * @param {unknown} key
 * @returns {key is string}
 */
export function isUsableKey(key) {
  if (typeof key !== "string" || NOT_TO_GIVE.has(key)) return false;
  return NAMED_KEYS.has(key) || ([...key].length === 1 && key.trim() !== "" && plainKey(key) === key);
}

/** @param {string} key */
function oneKeyWord(key) {
  return NAMED_KEYS.get(key) ?? (key.length === 1 ? key.toUpperCase() : key);
}

/**
 * A key as a person reads it: "Space", "N", "Ctrl+Z".
 * @param {string} key
 */
export function keyWord(key) {
  return key.split(/(?<=.)\+(?=.)/).map(oneKeyWord).join("+");
}

/**
 * The present key of an action.
 * @param {Action} action
 */
export function keyOf(action) {
  return action.pressed ?? action.key;
}

/**
 * @param {Action} action
 * @param {string} key
 */
function answersTo(action, key) {
  return keyOf(action) === key || Boolean(action.also?.includes(key));
}

/**
 * The action that a key runs now.
 * @param {Map<string, Action>} actions
 * @param {string} key
 */
export function actionFor(actions, key) {
  return [...actions.values()].find((one) => answersTo(one, key) && (!one.when || one.when()));
}

/**
 * Why an action cannot have a key, in one sentence, or null.
 * @param {Map<string, Action>} actions
 * @param {string} name
 * @param {string} key
 */
export function refusalOfKey(actions, name, key) {
  if (!isUsableKey(key)) return `${keyWord(key)} cannot be used.`;
  const other = [...actions].find(([one, action]) => one !== name && answersTo(action, key));
  return other ? `${keyWord(key)} is taken: “${other[1].label}”.` : null;
}

/**
 * The keys of a page's actions, by name: those that were kept and still make sense (known actions, single keys, no key
 * twice), else the first ones.
 * @param {unknown} found
 * @param {Map<string, Action>} actions
 */
export function validKeys(found, actions) {
  const first = new Map([...actions].map(([name, action]) => [name, action.key]));
  const keys = new Map(first);
  for (const [name, key] of Object.entries(found ?? {})) {
    if (actions.has(name) && isUsableKey(key)) keys.set(name, key);
  }
  const taken = [...keys.values(), ...[...actions.values()].flatMap((action) => action.also ?? [])];
  return new Set(taken).size === taken.length ? keys : first;
}

/**
 * The keys that differ from the first ones, to be kept.
 * @param {Map<string, Action>} actions
 */
export function changedKeys(actions) {
  const changed = [...actions].filter(([, action]) => keyOf(action) !== action.key);
  return Object.fromEntries(changed.map(([name, action]) => [name, keyOf(action)]));
}

/**
 * The place that an arrow key leads to in a list of n that goes round; from -1 (nothing) down to the first, up to the
 * last. Null for other keys and an empty list.
 * @param {string} key
 * @param {number} from
 * @param {number} n
 */
export function stepInList(key, from, n) {
  const step = new Map([["ArrowDown", 1], ["ArrowUp", -1]]).get(key);
  if (!step || n === 0) return null;
  return (Math.max(from, step < 0 ? 0 : -1) + step + n) % n;
}
