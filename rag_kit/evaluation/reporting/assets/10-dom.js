// Elements are made here and nowhere else. Texts become text nodes; there is no path from data to markup.

const SVG = "http://www.w3.org/2000/svg";

/** el("td", {class: "n", onclick: f, style: {"--v": 1}}, "text", child, [more]) */
function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
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

/** A name such as answer_relevancy, which may break after each underscore. */
function broken(name) {
  return el("bdi", { class: "name" }, name.split(/(?<=[_.])(?=[^\d])/).flatMap((part, index) => (index ? [el("wbr"), part] : [part])));
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

/** A section and its link are there only where it has something to show. */
function showSection(id, content) {
  document.getElementById(id).hidden = !content;
  document.querySelector(`a[href="#${id}"]`).parentElement.hidden = !content;
  return Boolean(content);
}

/** A table in a region that scrolls sideways. Heads are texts or cells; each of the bodies is a list of rows. */
function table(name, kind, heads, ...bodies) {
  return el("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": name }, el("table", { class: kind },
    el("caption", { class: "hidden" }, name),
    el("thead", {}, el("tr", {}, heads.map((head) => (head.tagName === "TH" ? head : el("th", { scope: "col" }, head))))),
    bodies.map((rows) => el("tbody", {}, rows))));
}

function option(value, text, chosen) {
  return el("option", { value, selected: value === chosen }, text);
}

/** A bar from one place to another on a scale from 0 to 1, with a mark at the mean. */
function bar(color, from, to, mean = null) {
  const at = (place) => `${(100 * Math.min(1, Math.max(0, place))).toFixed(2)}%`;
  return el("span", { class: mean === null ? "bar" : "bar marked", "aria-hidden": "true",
    style: { "--color": color, "--from": at(from), "--to": at(to), "--mean": at(mean ?? 0) } });
}

/** A labelled select. choices: [[value, text]] or {group: [[value, text]]}. */
function choose(label, choices, chosen, onchange) {
  const options = Array.isArray(choices)
    ? choices.map(([value, text]) => option(value, text, chosen))
    : Object.entries(choices).map(([group, list]) =>
        el("optgroup", { label: group }, list.map(([value, text]) => option(value, text, chosen))));
  const select = el("select", { onchange: () => onchange(select.value) }, options);
  return el("label", { class: "field" }, el("span", {}, label), select);
}

function icon(name) {
  const paths = {
    check: "M3 8.5l3.2 3.2L13 4.8",
    cross: "M4 4l8 8M12 4l-8 8",
    up: "M8 13V3M4 7l4-4 4 4",
    down: "M8 3v10M4 9l4 4 4-4",
    left: "M10 3L5 8l5 5",
    right: "M6 3l5 5-5 5",
    warn: "M8 2.5L14.5 13.5h-13zM8 6.5v3.2M8 11.6v.2",
  };
  return svg("svg", { class: `icon icon-${name}`, viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: paths[name] }));
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
