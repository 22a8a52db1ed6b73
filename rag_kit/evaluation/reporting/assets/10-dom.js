// Elements are made here and nowhere else. Texts become text nodes; there is no path from data to markup.

/** el("td", {class: "n", onclick: f, style: {"--v": 1}}, "text", child, [more]) */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child.nodeType ? child : document.createTextNode(String(child)));
  }
  return node;
}

/** A text whose reading direction does not leak into what stands beside it. */
function iso(text, attributes = {}) {
  return el("bdi", attributes, text);
}

/** A cell of a table that says on a phone, where there are no columns, what it is of. */
function labelled(cell, name) {
  cell.dataset.name = name;
  return cell;
}

function replace(id, ...children) {
  const node = document.getElementById(id);
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== false));
  return node;
}

/** A table in a region that scrolls sideways. Heads are texts or cells; each of the bodies is a list of rows. */
function table(name, kind, heads, ...bodies) {
  return el("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": name }, el("table", { class: kind },
    el("caption", { class: "hidden" }, name),
    el("thead", {}, el("tr", {}, heads.map((head) => (head.tagName === "TH" ? head : el("th", { scope: "col" }, head))))),
    bodies.map((rows) => el("tbody", {}, rows))));
}

/** A labelled select. choices: [[value, text]] or {group: [[value, text]]}. */
function choose(label, choices, chosen, onchange) {
  const option = ([value, text]) => el("option", { value, selected: value === chosen }, text);
  const options = Array.isArray(choices) ? choices.map(option)
    : Object.entries(choices).map(([group, list]) => el("optgroup", { label: group }, list.map(option)));
  const select = el("select", { onchange: () => onchange(select.value) }, options);
  return el("label", { class: "field" }, el("span", {}, label), select);
}

const signs = { check: "✓", cross: "✗", up: "↑", down: "↓", left: "←", right: "→", warn: "⚠" };

function icon(name) {
  return el("span", { class: "icon", "aria-hidden": "true" }, signs[name]);
}

const number = {
  score: (value) => (value === null || value === undefined ? "–" : value.toFixed(Math.abs(value) >= 100 ? 0 : 3)),
  short: (value) => (value === null || value === undefined ? "–" : value.toFixed(2)),
  seconds: (value) =>
    value === null || value === undefined ? "–" : value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(value < 10 ? 2 : 1)} s`,
  count: (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: 1 })),
  money: (value) => (value === null || value === undefined ? "–" : value.toPrecision(3)),
  p: (value) => (value === null || value === undefined ? "–" : value < 0.001 ? "< 0.001" : value.toFixed(3)),
  signed: (value) => (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value).toFixed(3),
  any: (value) => (Number.isInteger(value) ? String(value) : String(+value.toPrecision(4))),
};
