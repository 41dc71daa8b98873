// Everything around the picture: metric switch, status line, tiles, the sentence with its buttons, legend and table.
// Builds these nodes once and fills them; their places are reserved, so that nothing jumps when figures arrive.

import { button, html, radios, setAttribute, setText, show, svg } from "./dom.js";
import { METRICS } from "./model.js";
import { KINDS, RARE, Strip, fill, patterns } from "./strip.js";
import { Picture } from "./picture.js";
import { amount, badge } from "./words.js";

export class Panel {
  // `on` holds what the buttons do: metric(name), pause(), stop(), table(), strip().
  constructor(root, id, on) {
    this.root = root;
    this.live = html("div", "sl-live", root);
    this.buildStatus();
    this.stage = html("div", "sl-stage", this.live);
    this.picture = new Picture(this.stage, id);
    this.buildTools(on);
    this.legend = buildLegend(html("div", "sl-legend", root), id);
    this.buildStrip(id, on);
    this.buildTiles();
    this.note = html("div", "sl-note", root);
    this.sentence = html("p", "sl-sentence", this.note);
    this.buttons = html("div", "sl-buttons", this.note);
    this.table = buildTable(root);
    this.details = html("pre", "sl-details", root);
    this.details.tabIndex = 0;
    this.details.setAttribute("role", "region"); // a pre alone may have no name
    this.details.setAttribute("aria-label", "Text of the error");
    this.say = html("div", "sl-unseen", root);
    this.say.setAttribute("role", "status");
    this.say.setAttribute("aria-live", "polite");
  }

  // Leaves what is seen and takes away what can be pressed: for screens that somebody else drives.
  removeControls() {
    for (const node of [this.tools, this.slowAgain, this.buttons, this.table.node, this.details]) node.remove();
  }

  buildStatus() {
    const status = html("div", "sl-status", this.live);
    this.dot = html("span", "sl-dot", status);
    this.dot.setAttribute("aria-hidden", "true");
    this.main = html("strong", "sl-main", status);
    this.detail = html("span", "sl-detail", status);
    this.bar = html("div", "sl-bar", status);
    this.bar.setAttribute("role", "progressbar");
    this.bar.setAttribute("aria-label", "Epoch");
    this.bar.setAttribute("aria-valuemin", "0");
    this.bar.setAttribute("aria-valuemax", "100");
    this.done = html("div", "sl-done", this.bar);
    this.epoch = html("span", "sl-epoch", status);
  }

  buildTools(on) {
    this.tools = html("div", "sl-tools", this.root);
    this.metrics = html("div", "sl-segments", this.tools);
    this.metrics.setAttribute("aria-label", "Show");
    const choices = Object.entries(METRICS).map(([name, { label, title }]) => {
      const node = button(label, "sl-segment", this.metrics, () => {});
      node.dataset.metric = name;
      node.title = title;
      return node;
    });
    this.segments = choices;
    this.markMetric = radios(this.metrics, choices, (node) => on.metric(node.dataset.metric));
    this.badge = html("span", "sl-badge", this.tools);
    this.controls = html("div", "sl-controls", this.tools);
    this.pause = button("Pause", "sl-button sl-pause", this.controls, on.pause);
    this.stop = button("Stop", "sl-button", this.controls, on.stop);
    this.tableSwitch = button("Table", "sl-button", this.controls, on.table);
    this.tableSwitch.setAttribute("aria-pressed", "false");
  }

  buildStrip(id, on) {
    this.slow = html("div", "sl-slow", this.root);
    const head = html("div", "sl-slow-title", this.slow);
    this.slowTitle = html("span", "", head);
    this.slowAgain = button("Play again", "sl-link", head, on.strip);
    this.strip = new Strip(html("div", "sl-strip", this.slow), `${id}-strip`);
    const legend = html("div", "sl-legend sl-kinds", this.slow);
    for (const kind of Object.keys(KINDS)) {
      const item = html("span", "sl-key", legend);
      const swatch = svg("svg", { class: "sl-swatch sl-is-rest", width: 18, height: 10, "aria-hidden": "true" }, item);
      const shape = kind === "wait" ? "M0 5h18" : kind === "all_reduce" ? "M0 5h18v5h-18z" : "M0 1h18v8h-18z";
      svg("path", { class: `sl-k sl-k-${kind}`, d: shape, ...fill(kind, `${id}-strip`, "rest") }, swatch);
      html("span", "", item, KINDS[kind]);
      if (RARE.includes(kind)) this.strip.rare[kind] = item;
      item.hidden = RARE.includes(kind);
    }
  }

  buildTiles() {
    const list = html("dl", "sl-tiles", this.root);
    this.tiles = [0, 1, 2, 3].map(() => {
      const tile = html("div", "sl-tile", list);
      const label = html("dt", "", tile, "");
      return { label, figure: html("dd", "", tile, "–") };
    });
  }

  fillTiles(tiles) {
    tiles.forEach(([figure, label], i) => {
      setText(this.tiles[i].figure, figure);
      setText(this.tiles[i].label, label);
    });
  }

  fillStatus([main, detail], tone) {
    setText(this.main, main);
    setText(this.detail, detail);
    setAttribute(this.dot, "data-tone", tone);
  }

  fillEpoch(progress, words, known, finished) {
    const epoch = Math.floor(progress + 1e-6);
    // Like its words, the bar is full until the next epoch has its first percent, and after a whole epoch at the end of a run.
    const part = known ? (epoch > 0 && (finished || progress - epoch < 0.01) ? 1 : progress - epoch) : 0;
    this.done.style.transform = `scaleX(${part.toFixed(4)})`;
    setAttribute(this.bar, "aria-valuenow", Math.round(part * 100));
    setText(this.epoch, words);
  }

  // `wanted` is a list of [id, label, action, primary]. Kept when unchanged, so that focus stays on them.
  fillButtons(wanted) {
    const key = wanted.map(([id, label]) => `${id}:${label}`).join();
    if (this.buttonKey === key) return;
    this.buttonKey = key;
    const focused = this.buttons.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    this.buttons.replaceChildren();
    for (const [id, label, action, primary] of wanted) {
      const node = button(label, primary ? "sl-button sl-primary" : "sl-button", this.buttons, action);
      node.dataset.id = id;
      if (id === focused) node.focus();
    }
  }

  fillTable(model, count) {
    const last = count ? model.ticks[count - 1] : null;
    for (let rank = 0; rank < this.table.rows.length; rank++) {
      show(this.table.rows[rank].node, rank < model.gpus);
      this.table.rows[rank].cells.forEach(([field, metric], i) => {
        setText(this.table.rows[rank].nodes[i], last ? amount(last[field]?.[rank], metric) : "–");
      });
    }
  }

  setSource(source) {
    setText(this.badge, badge(source));
    setAttribute(this.badge, "class", `sl-badge${source === "nvml" || source === "virtual" ? ` sl-is-${source}` : ""}`);
  }
}

const FILLS = [["line", "busy"], ["solid", "useful work"], ["tint", "busy"], ["hatch", "busy, but waiting"], ["prediction", "your prediction"], ["limit", "the card's limit"]];

function buildLegend(parent, id) {
  const items = {};
  const defs = svg("svg", { width: 0, height: 0, "aria-hidden": "true", class: "sl-defs" }, parent);
  patterns(svg("defs", {}, defs), `${id}-legend`, "rest");
  for (const [name, label] of FILLS) {
    const item = html("span", "sl-key", parent);
    const swatch = svg("svg", { class: "sl-swatch sl-is-rest", width: 18, height: 10, "aria-hidden": "true" }, item);
    const shape = name === "line" ? "M1 10V1.5H17V10" : name === "prediction" ? "M0 5H18" : name === "limit" ? "M0 5H18" : "M0 1h18v8h-18z";
    if (name === "line") svg("path", { class: "sl-tint", d: shape }, swatch);
    svg("path", { class: `sl-${name}`, d: shape, ...(name === "hatch" ? { fill: `url(#${id}-legend-spin-rest)` } : {}) }, swatch);
    html("span", "", item, label);
    items[name] = item;
  }
  items.scale = html("span", "", parent);
  return items;
}

const COLUMNS = [["util", "busy", "Busy"], ["useful", "useful", "Useful"], ["spin", "busy", "Waiting"], ["mem", "memory", "Memory"], ["power", "power", "Power"], ["apart", "apart", "Weights apart"], ["lr", "learning_rate", "Learning rate"]];

function buildTable(root) {
  const node = html("div", "sl-table", root);
  node.tabIndex = 0;
  node.setAttribute("role", "region");
  node.setAttribute("aria-label", "The last sample as a table");
  const table = html("table", "", node);
  html("caption", "", table, "The last sample of each GPU");
  const head = html("tr", "", html("thead", "", table));
  for (const label of ["GPU", ...COLUMNS.map((column) => column[2])]) html("th", "", head, label).scope = "col";
  const body = html("tbody", "", table);
  const rows = Array.from({ length: 8 }, (_, rank) => {
    const row = html("tr", "", body);
    html("th", "", row, `GPU ${rank}`).scope = "row";
    return { node: row, cells: COLUMNS, nodes: COLUMNS.map(() => html("td", "", row, "–")) };
  });
  return { node, rows };
}
