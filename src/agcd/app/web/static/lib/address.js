/** Addresses: paths with parameters, and choices that a reload keeps. */

/**
 * A path with those parameters that say something; a list is said item by item.
 * @param {string} path
 * @param {Record<string, AddressValue>} values
 */
export function withQuery(path, values) {
  const said = Object.entries(values).flatMap(([name, value]) =>
    [value].flat().filter((one) => one !== "" && one !== null && one !== undefined).map((one) => [name, String(one)]));
  return said.length ? `${path}?${new URLSearchParams(said)}` : path;
}

/**
 * The address of "/api/v1/rows/{row}/neighbours" and the like: values that the path names go there, the
 * rest into the query.
 * @param {string} path
 * @param {Record<string, AddressValue>} values
 */
export function addressOf(path, values) {
  const rest = { ...values };
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
    delete rest[name];
    return encodeURIComponent(String(values[name]));
  });
  return withQuery(filled, rest);
}

/**
 * What the address says about these choices, each a string; else the default.
 * @template {Record<string, string>} T
 * @param {T} defaults
 * @param {string} [search]
 * @returns {{ [K in keyof T]: string }}
 */
export function choicesFromUrl(defaults, search = location.search) {
  const said = new URLSearchParams(search);
  const choices = Object.entries(defaults).map(([name, value]) => [name, said.get(name) ?? value]);
  return Object.fromEntries(choices);
}

/**
 * Write the choices that differ from the defaults into the address, so that a reload shows the same.
 * @param {Record<string, string>} choices
 * @param {Record<string, string>} defaults
 */
export function keepInUrl(choices, defaults) {
  const said = Object.fromEntries(Object.entries(choices).filter(([name, value]) => value !== defaults[name]));
  history.replaceState(null, "", withQuery(location.pathname, said));
}
