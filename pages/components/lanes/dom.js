// Making and changing nodes. Text only ever goes in as text: nothing here parses markup.

const SVG_NS = "http://www.w3.org/2000/svg";

export function svg(tag, attributes, parent) {
  const node = document.createElementNS(SVG_NS, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) node.setAttribute(name, value);
  if (parent) parent.appendChild(node);
  return node;
}

export function html(tag, className, parent, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}

export function button(text, className, parent, onClick) {
  const node = html("button", className, parent, text);
  node.type = "button";
  node.addEventListener("click", onClick);
  return node;
}

// Writing what is there already costs a style pass at every frame; so compare first.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

// A row of choices as a radio group: one stop for Tab, arrow keys move and choose.
export function radios(group, choices, onPick) {
  group.setAttribute("role", "radiogroup");
  for (const node of choices) node.setAttribute("role", "radio");
  const mark = (picked) => {
    const stop = picked ?? choices[0];
    for (const node of choices) {
      setAttribute(node, "aria-checked", node === picked);
      node.tabIndex = node === stop ? 0 : -1;
    }
  };
  group.addEventListener("keydown", (event) => {
    const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const at = choices.indexOf(event.target);
    if (at < 0 || !(event.key in moves) || choices[at].getAttribute("aria-disabled") === "true") return;
    event.preventDefault();
    const next = choices[(at + moves[event.key] + choices.length) % choices.length];
    next.focus();
    onPick(next);
  });
  for (const node of choices) node.addEventListener("click", () => onPick(node));
  mark(null);
  return mark;
}

// True where the page is dark: Streamlit's own variable first, then whatever colour lies behind the node.
export function isDark(root) {
  const named = getComputedStyle(root).getPropertyValue("--st-background-color").trim();
  const probe = html("span", "", root);
  probe.style.color = named || "transparent";
  let rgb = channels(getComputedStyle(probe).color);
  probe.remove();
  for (let node = root.parentElement; node && !rgb; node = node.parentElement) {
    rgb = channels(getComputedStyle(node).backgroundColor);
  }
  if (!rgb) return matchMedia("(prefers-color-scheme: dark)").matches;
  return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2] < 128;
}

function channels(colour) {
  const numbers = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return numbers.length < 3 || numbers[3] === 0 ? null : numbers;
}
