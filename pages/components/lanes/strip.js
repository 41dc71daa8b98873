// The slow-motion strip: the last steps, kernel by kernel, played at a tenth of their speed. One row per GPU.
//
// Colour says whose row it is; the kind of work is said by the filling and by words beside the rows.

import { setAttribute, svg } from "./dom.js";

export const KINDS = {
  load: "load", copy: "copy", decode: "decode", compute: "compute", all_reduce: "all-reduce", wait: "wait", spin: "spin",
  validate: "validate", checkpoint: "checkpoint", replicate: "replicate",
};
// Kinds that few runs have: the legend has them once the strip does.
export const RARE = ["validate", "checkpoint", "replicate"];
const GROUPS = { forward: "compute", backward: "compute", optimizer: "compute", scatter: "copy" };
const LAYERS = ["wait", "checkpoint", "load", "replicate", "spin", "copy", "validate", "decode", "compute", "all_reduce"];
const SLOW = 10;
const ROWS_PX = 74;
const WORDS_PX = 15;
const SWEEPS_AFTER_END = 2;

export class Strip {
  constructor(parent, id) {
    this.id = id;
    this.node = svg("svg", { class: "sl-strip-picture", "aria-hidden": "true", focusable: "false" }, parent);
    const defs = svg("defs", {}, this.node);
    for (const role of ["odd", "rest"]) patterns(defs, id, role);
    this.clip = svg("rect", { x: 0, y: 0, width: 0, height: 200 }, svg("clipPath", { id: `${id}-past` }, defs));
    this.beds = svg("g", { class: "sl-beds" }, this.node);
    this.dim = svg("g", { class: "sl-dim" }, this.node);
    this.bright = svg("g", { "clip-path": `url(#${id}-past)` }, this.node);
    this.words = svg("g", { class: "sl-words" }, this.node);
    this.head = svg("line", { class: "sl-head", y1: 0, y2: 0 }, this.node);
    this.rare = {};
    this.data = null;
    this.waiting = null;
    this.began = 0;
    this.sweeps = 0;
    this.shape = "";
  }

  layout(width, compact, gpus, odd) {
    const shape = [width, compact, gpus, odd].join();
    if (shape === this.shape) return;
    this.shape = shape;
    this.left = compact ? 22 : 56;
    this.width = Math.max(60, width - this.left - 4);
    this.gpus = gpus;
    this.odd = odd;
    this.rows = stripRows(gpus, odd);
    const height = ROWS_PX + 2 * WORDS_PX;
    this.node.setAttribute("width", width);
    this.node.setAttribute("height", height);
    setAttribute(this.clip, "height", height);
    this.beds.replaceChildren();
    for (const { y, height: tall } of this.rows) {
      svg("rect", { x: this.left, y, width: this.width, height: tall }, this.beds);
    }
    for (const rank of gpus > 1 ? [0, gpus - 1] : [0]) {
      const { y, height: tall } = this.rows[rank];
      const label = svg("text", { x: this.left - 8, y: y + tall / 2, dy: "0.36em", class: rank === odd ? "sl-row-name sl-is-odd" : "sl-row-name" }, this.beds);
      label.textContent = compact ? rank : `GPU ${rank}`;
    }
    if (this.data) this.build();
  }

  // A new strip waits until the present one was played to its end.
  offer(data) {
    if (data === this.data || data === this.waiting) return;
    if (this.data) this.waiting = data;
    else this.take(data);
  }

  take(data) {
    this.data = data;
    this.waiting = null;
    this.began = 0;
    if (this.shape) this.build();
  }

  clear() {
    this.data = this.waiting = null;
    this.sweeps = 0;
    for (const group of [this.dim, this.bright, this.words]) group.replaceChildren();
    for (const item of Object.values(this.rare)) item.hidden = true;
    setAttribute(this.head, "visibility", "hidden");
  }

  // One path per kind and role, so that a strip of thousands of kernels stays a dozen nodes.
  build() {
    const { t0_us: from, t1_us: to, spans } = this.data;
    const x = (us) => this.left + ((us - from) / Math.max(1, to - from)) * this.width;
    const paths = {};
    const rows = Array.from({ length: this.gpus }, () => []);
    for (const [rank, kind, start, end] of withoutIdleTalk(spans, this.gpus)) {
      if (end <= from || start >= to) continue;
      const x0 = x(Math.max(from, start));
      const width = Math.max(kind === "all_reduce" ? 1.2 : 0.4, x(Math.min(to, end)) - x0);
      const key = `${kind} ${rank === this.odd ? "odd" : "rest"}`;
      paths[key] = (paths[key] ?? "") + box(kind, x0, this.rows[rank], width);
      rows[rank].push([kind, x0, x0 + width]);
    }
    for (const [kind, item] of Object.entries(this.rare)) item.hidden &&= !rows.some((row) => row.some(([own]) => own === kind));
    for (const group of [this.dim, this.bright]) {
      group.replaceChildren();
      for (const kind of LAYERS) {
        for (const role of ["rest", "odd"]) {
          const path = paths[`${kind} ${role}`];
          if (path) svg("path", { class: `sl-k sl-k-${kind} sl-is-${role}`, d: path, ...fill(kind, this.id, role) }, group);
        }
      }
    }
    this.words.replaceChildren();
    const first = this.odd ?? 0;
    const other = first === this.gpus - 1 ? 0 : this.gpus - 1;
    this.label(rows[first], WORDS_PX - 5);
    if (this.gpus > 1) this.label(rows[other], WORDS_PX + ROWS_PX + 11);
  }

  // Names the longest stretches of one row, above or below the rows, where there is room.
  label(row, y) {
    const wanted = stretches(row).filter(([kind, a, b]) => b - a > 5.6 * KINDS[kind].length + 4).sort((p, q) => q[2] - q[1] - (p[2] - p[1]));
    const taken = [];
    for (const [kind, a, b] of wanted) {
      const middle = (a + b) / 2;
      const half = 3 * KINDS[kind].length + 6;
      if (taken.some(([from, to]) => middle + half > from && middle - half < to)) continue;
      taken.push([middle - half, middle + half]);
      svg("text", { x: middle.toFixed(1), y, "text-anchor": "middle" }, this.words).textContent = KINDS[kind];
    }
  }

  // Asked for in every frame, as a strip that has waited takes over between two ticks; worked out once for each strip.
  title() {
    if (!this.data) return "Slow motion: kernels appear here with the first steps";
    if (this.titled !== this.data) {
      this.titled = this.data;
      this.called = titleOf(this.data);
    }
    return this.called;
  }

  // Moves the playhead. Returns false once nothing moves any more.
  frame(now, { paused, still, ended }) {
    if (!this.data) return false;
    const lasts = ((this.data.t1_us - this.data.t0_us) / 1000) * SLOW;
    if (still) return this.rest();
    if (ended && this.sweeps >= SWEEPS_AFTER_END && !this.waiting) return this.rest();
    if (paused) {
      if (this.began) this.began += now - (this.seen ?? now);
      this.seen = now;
      return false;
    }
    this.seen = now;
    if (!this.began) this.began = now;
    const part = (now - this.began) / lasts;
    if (part >= 1) {
      this.sweeps = ended ? this.sweeps + 1 : 0;
      if (this.waiting) this.take(this.waiting);
      this.began = now;
      return true;
    }
    this.past(this.left + part * this.width);
    return true;
  }

  past(x) {
    setAttribute(this.clip, "width", x.toFixed(1));
    setAttribute(this.head, "visibility", "visible");
    setAttribute(this.head, "transform", `translate(${x.toFixed(1)} ${WORDS_PX - 3})`);
    setAttribute(this.head, "y2", ROWS_PX + 5);
  }

  rest() {
    if (this.waiting) this.take(this.waiting);
    setAttribute(this.clip, "width", this.left + this.width);
    setAttribute(this.head, "visibility", "hidden");
    return false;
  }

  again() {
    this.sweeps = 0;
    this.began = 0;
  }
}

function titleOf({ t0_us: from, t1_us: to, spans }) {
  const steps = spans.filter(([rank, , kind]) => rank === spans[0]?.[0] && kind === "optimizer").length;
  const what = steps === 1 ? "one step" : steps ? `${["", "", "two", "three", "four"][steps] ?? steps} steps` : "the last steps";
  return `Slow motion: ${what}, ${Math.round((to - from) / 1000)} ms at a tenth of the speed`;
}

// Where the rows lie: the odd one taller and set off, the whole of constant height.
function stripRows(gpus, odd) {
  const set = odd != null && odd < gpus && gpus > 1;
  const unit = Math.min(20, (ROWS_PX - (set ? 3 : 0)) / (gpus - 1 + (set ? 1.6 : 1)));
  let y = WORDS_PX;
  return Array.from({ length: gpus }, (_, rank) => {
    const row = { y, height: (set && rank === odd ? unit * 1.6 : unit) - 1.5 };
    y += row.height + 1.5 + (set && rank === odd ? 3 : 0);
    return row;
  });
}

// The spans as [rank, kind, start, end]. A host that waits for its own GPU is no idle time, so such waits are cut out.
function withoutIdleTalk(spans, gpus) {
  const busy = Array.from({ length: gpus }, () => []);
  const kept = [];
  const waits = [];
  for (const [rank, stream, kind, start, end] of spans) {
    if (rank >= gpus) continue;
    if (stream !== "host") busy[rank].push([start, end]);
    if (kind === "wait") waits.push([rank, start, end]);
    else kept.push([rank, GROUPS[kind] ?? kind, start, end]);
  }
  for (const row of busy) row.sort((a, b) => a[0] - b[0]);
  for (const [rank, start, end] of waits) {
    let at = start;
    for (const [from, to] of busy[rank]) {
      if (from >= end) break;
      if (from > at) kept.push([rank, "wait", at, from]);
      at = Math.max(at, to);
    }
    if (at < end) kept.push([rank, "wait", at, end]);
  }
  return kept;
}

function box(kind, x, { y, height }, width) {
  const left = x.toFixed(1);
  const right = width.toFixed(1);
  const half = (height / 2).toFixed(1);
  if (kind === "wait") return `M${left} ${(y + height / 2).toFixed(1)}h${right}`;
  if (kind === "all_reduce") return `M${left} ${(y + height / 2).toFixed(1)}h${right}v${half}h-${right}z`;
  return `M${left} ${y.toFixed(1)}h${right}v${height.toFixed(1)}h-${right}z`;
}

// Neighbours of one kind count as one stretch for its label.
function stretches(row) {
  const found = [];
  for (const [kind, a, b] of [...row].sort((p, q) => p[1] - q[1])) {
    if (kind === "all_reduce") continue;
    const last = found.findLast?.((stretch) => stretch[0] === kind);
    if (last && a - last[2] < 4) last[2] = Math.max(last[2], b);
    else found.push([kind, a, b]);
  }
  return found;
}

export function fill(kind, id, role) {
  return ["load", "copy", "spin", "validate", "checkpoint", "replicate"].includes(kind) ? { fill: `url(#${id}-${kind}-${role})` } : {};
}

export function patterns(defs, id, role) {
  const make = (kind, width, height, extra) => svg("pattern", { id: `${id}-${kind}-${role}`, width, height, patternUnits: "userSpaceOnUse", class: `sl-is-${role}`, ...extra }, defs);
  svg("circle", { class: "sl-hatch-line", cx: 1.5, cy: 1.5, r: 0.95 }, make("load", 3.4, 3.4));
  svg("rect", { class: "sl-hatch-line", width: 4, height: 1.4 }, make("copy", 4, 2.8));
  svg("rect", { class: "sl-hatch-line", width: 2.6, height: 6 }, make("validate", 5, 6));
  svg("rect", { class: "sl-hatch-line", width: 1.2, height: 4 }, make("replicate", 5, 4, { patternTransform: "rotate(-45)" }));
  svg("path", { class: "sl-hatch-stroke", d: "M0 3.5 L3.5 0 L7 3.5" }, make("checkpoint", 7, 4.5));
  svg("rect", { class: "sl-hatch-line", width: 1.8, height: 5 }, make("spin", 4.4, 5, { patternTransform: "rotate(45)" }));
}
