// The eight area lanes: where they lie, and their paths. Draws what it is given; keeps no time and no state of a run.

import { METRICS, scaleTop } from "./model.js";
import { amount, plain } from "./words.js";
import { setAttribute, setText, svg } from "./dom.js";

const MIN_SPAN_MS = 12_000;

// The level of each lane of a silhouette: the odd one's, then the rest's.
const LEVELS = { only0: [97, 11], all_high: [97, 97], all_low: [24, 24], all_crash: [90, 90], low0: [14, 92] };
// Of a job that hangs, as symptoms tell it: the rank that is missing does nothing at all.
const STILL_LEVELS = { ...LEVELS, low0: [0, 97] };
const CRASH_AT = 0.3;

// Rows of `count` lanes in a block of constant height: with an odd one it is taller and set off.
export function laneRows(count, odd, compact) {
  const height = compact ? 138 : 210;
  const set = odd != null && odd >= 0 && odd < count && count > 1;
  const weight = !set ? 1 : compact ? 26 / 16 : 34 / 24;
  const gap = set && !compact ? 8 : 0;
  const unit = Math.min(compact ? 30 : 44, (height - gap) / (count - 1 + weight));
  const rows = [];
  let y = 0;
  for (let rank = 0; rank < count; rank++) {
    const tall = set && rank === odd;
    if (tall && rank > 0) y += gap / 2;
    rows.push({ rank, y, height: tall ? unit * weight : unit, odd: tall });
    y += rows[rank].height;
    if (tall) y += rank > 0 ? gap / 2 : gap;
  }
  return { rows, height };
}

export class Picture {
  constructor(parent, id) {
    this.id = id;
    this.node = svg("svg", { class: "sl-picture", "aria-hidden": "true", focusable: "false" }, parent);
    const defs = svg("defs", {}, this.node);
    for (const role of ["odd", "rest"]) hatch(defs, `${id}-spin-${role}`, role);
    this.axis = svg("g", { class: "sl-axis" }, this.node);
    this.lanes = [];
    this.shape = "";
  }

  // Lays the lanes out anew where size, number or roles have changed.
  layout(width, compact, gpus, odd) {
    const shape = [width, compact, gpus, odd].join();
    if (shape === this.shape) return false;
    this.shape = shape;
    for (const lane of this.lanes) lane.group.remove();
    const { rows, height } = laneRows(gpus, odd, compact);
    this.left = compact ? 22 : 56;
    this.right = compact ? 52 : 74;
    this.width = Math.max(60, width - this.left - this.right);
    this.height = height;
    this.compact = compact;
    this.node.setAttribute("height", height + (compact ? 14 : 18));
    this.node.setAttribute("width", width);
    this.lanes = rows.map((row) => this.makeLane(row));
    this.axisMs = 0;
    return true;
  }

  makeLane(row) {
    const role = row.odd ? "odd" : "rest";
    const group = svg("g", { class: `sl-lane sl-is-${role}`, transform: `translate(${this.left} ${row.y.toFixed(2)})` }, this.node);
    const depth = row.height - (this.compact ? 2.5 : 4);
    const text = (className, x, content) => svg("text", { class: className, x, y: depth / 2, dy: "0.36em" }, group).appendChild(document.createTextNode(content)).parentNode;
    const path = (className, attributes) => svg("path", { class: className, ...attributes }, group);
    const lane = { ...row, group, depth };
    text("sl-name", -8, this.compact ? String(row.rank) : `GPU ${row.rank}`);
    svg("rect", { class: "sl-bed", x: 0, y: 0, width: this.width, height: depth }, group);
    lane.tint = path("sl-tint");
    lane.hatch = path("sl-hatch", { fill: `url(#${this.id}-spin-${role})` });
    lane.solid = path("sl-solid");
    lane.prediction = path("sl-prediction");
    lane.predictedEnd = path("sl-predicted-end");
    lane.line = path("sl-line");
    lane.limit = path("sl-limit");
    lane.mark = path("sl-mark");
    lane.note = text("sl-lane-note", 6, "");
    svg("line", { class: "sl-base", x1: 0, x2: this.width, y1: depth, y2: depth }, group);
    lane.value = text("sl-value", this.width + this.right - 2, "");
    return lane;
  }

  // `view` is what lanes.js shows: model, count, t, metric, options, ended.
  draw(view) {
    const { model, count, metric, options } = view;
    const still = options.still && !options.run_id;
    const spanMs = Math.max(MIN_SPAN_MS, still ? 0 : view.ended ? model.endMs : view.t);
    const x = (ms) => (ms / spanMs) * this.width;
    this.drawAxis(spanMs, x);
    const top = still ? 100 : scaleTop(model, metric, count);
    for (const lane of this.lanes) {
      const y = (value) => lane.depth * (1 - Math.max(0, Math.min(1, value / top)));
      drawPrediction(lane, options.prediction, metric, still, this.width);
      if (still) drawStill(lane, options.still, this.width, y);
      else this.drawLane(lane, view, x, y);
    }
    return top;
  }

  drawLane(lane, view, x, y) {
    const { model, count, metric, ended } = view;
    const { field, limit, slope } = METRICS[metric];
    const stopped = model.endedAfter(lane.rank, count);
    const crashed = ended && ((model.end?.outcome === "out_of_memory" && ranOut(model.end, lane.rank)) || (model.end?.outcome === "failed" && model.end.rank === lane.rank));
    const ticks = model.ticks.slice(0, stopped ?? count);
    const period = model.head?.period_ms ?? 200;
    const points = ticks.map((tick, i) => [i ? ticks[i - 1].t_ms : tick.t_ms - period, tick.t_ms, tick[field]?.[lane.rank] ?? null]);
    const peak = crashed && metric === "memory" ? model.end.summary?.gpus?.[lane.rank]?.peak_memory_gib : null;
    const last = points[points.length - 1];
    // The peak that broke the run off is shown for at least one period, also where no whole sample saw it.
    if (peak != null && last && !(last[2] >= peak - 0.1)) points.push([last[1], Math.max(model.endMs, last[1] + period), peak]);
    else if (peak != null && last) last[1] = Math.max(last[1], last[0] + period);
    const drawn = (name, value) => setAttribute(lane[name], "d", value);
    drawn("line", outline(points, x, y, slope));
    const layered = metric === "busy" || metric === "useful";
    // Behind the useful work its upper bound, so that little work on a busy GPU looks like what it is.
    const behind = metric === "useful" ? ticks.map((tick, i) => [points[i][0], tick.t_ms, tick.util?.[lane.rank] ?? null]) : points;
    drawn("tint", area(behind, x, y, lane.depth, slope));
    const useful = layered ? ticks.map((tick, i) => [points[i][0], tick.t_ms, tick.useful?.[lane.rank] ?? null]) : [];
    drawn("solid", area(useful, x, y, lane.depth));
    const spinning = metric === "busy" ? ticks.map((tick, i) => [points[i][0], tick.t_ms, tick.useful?.[lane.rank] ?? 0, tick.spin?.[lane.rank] ?? null]) : [];
    drawn("hatch", band(spinning, x, y));
    const limitValue = limit ? model.head?.[limit] : null;
    drawn("limit", limitValue ? `M0 ${y(limitValue).toFixed(1)}H${this.width}` : "");
    const endX = points.length ? x(points[points.length - 1][1]) : 0;
    const over = crashed || stopped != null;
    drawn("mark", over ? cross(Math.min(this.width - 7, endX + 7), lane.depth / 2) : "");
    const known = points.some((point) => point[2] != null);
    setText(lane.note, count && !known && !over ? "n/a: this card has no such counter" : "");
    setText(lane.value, this.valueText(lane, view, over && stopped != null, peak));
  }

  valueText(lane, { model, count, metric, ended }, gone, peak) {
    if (peak != null) return this.short(amount(peak, metric));
    if (gone) return "ended";
    if (!count) return "";
    return this.short(amount(summarised({ model, metric, ended }, lane.rank) ?? model.valueAt(metric, lane.rank, count), metric));
  }

  short(text) {
    return this.compact ? text.replace(/\.\d (?=GiB)/, " ").replace("GiB", "G") : text;
  }

  drawAxis(spanMs, x) {
    if (this.axisMs === spanMs) return;
    this.axisMs = spanMs;
    this.axis.replaceChildren();
    this.axis.setAttribute("transform", `translate(${this.left} 0)`);
    const wish = spanMs / 1000 / (this.width < 320 ? 4 : 7);
    const step = [1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 300].find((value) => value >= wish) ?? 600;
    for (let s = 0; s * 1000 <= spanMs; s += step) {
      svg("line", { x1: x(s * 1000), x2: x(s * 1000), y1: 0, y2: this.height }, this.axis);
      const label = svg("text", { x: x(s * 1000), y: this.height + (this.compact ? 10 : 13), "text-anchor": s ? "middle" : "start" }, this.axis);
      label.textContent = s === 0 ? "0 s" : String(s);
    }
    this.caption = svg("text", { x: this.width + this.right - 2, y: this.height + (this.compact ? 10 : 13), class: "sl-caption" }, this.axis);
  }

  // Says what the figures at the right are; returns where a scale that fits itself ends.
  captions(view, top) {
    const still = view.options.still && !view.options.run_id;
    const { unit } = METRICS[view.metric];
    const told = this.lanes.some((lane) => summarised(view, lane.rank) != null);
    const ended = told ? (view.model.end.outcome === "timeout" ? "hung" : "mean") : "last";
    setText(this.caption, still || !view.count ? "" : view.ended ? ended : "now");
    return unit || still || !view.count ? "" : `every lane: 0 to ${plain(top)}`;
  }
}

function hatch(defs, id, role) {
  const pattern = svg("pattern", { id, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)", class: `sl-is-${role}` }, defs);
  svg("rect", { class: "sl-hatch-line", x: 0, y: 0, width: 1.8, height: 5 }, pattern);
}

function cross(x, y) {
  return `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`;
}

// Points are [from, to, value]: a sample stands for its whole period, so it is drawn as a step; a state between, as a slope.
function outline(points, x, y, slope) {
  let path = "";
  let open = false;
  for (const [from, to, value] of points) {
    if (value == null) {
      open = false;
      continue;
    }
    const level = y(value).toFixed(1);
    path += slope ? `${open ? "L" : "M"}${x(to).toFixed(1)} ${level}` : `${open ? "L" : "M"}${x(from).toFixed(1)} ${level}H${x(to).toFixed(1)}`;
    open = true;
  }
  return path;
}

function area(points, x, y, base, slope) {
  let path = "";
  let open = false;
  let last = 0;
  for (const [from, to, value] of [...points, [0, 0, null]]) {
    if (value == null) {
      if (open) path += `L${last} ${base}Z`;
      open = false;
      continue;
    }
    const start = slope ? x(to).toFixed(1) : x(from).toFixed(1);
    last = x(to).toFixed(1);
    const level = y(value).toFixed(1);
    path += `${open ? "L" : `M${start} ${base}L`}${start} ${level}${slope ? "" : `H${last}`}`;
    open = true;
  }
  return path;
}

// The waiting on top of the useful work: one box per sample.
function band(points, x, y) {
  return points
    .filter(([, , , spin]) => spin > 0.5)
    .map(([from, to, useful, spin]) => `M${x(from).toFixed(1)} ${y(useful).toFixed(1)}H${x(to).toFixed(1)}V${y(Math.min(100, useful + spin)).toFixed(1)}H${x(from).toFixed(1)}Z`)
    .join("");
}

function drawPrediction(lane, prediction, metric, still, width) {
  const fits = prediction && LEVELS[prediction] && !still && (metric === "busy" || metric === "useful" || (metric === "memory" && prediction === "all_crash"));
  const crash = fits && prediction === "all_crash";
  const end = width * (crash ? CRASH_AT : 1) - 0.5;
  const level = fits ? lane.depth * (1 - LEVELS[prediction][lane.rank === 0 ? 0 : 1] / 100) : 0;
  setAttribute(lane.prediction, "d", fits ? `M0.5 ${lane.depth}${crash ? "L" : `V${level}L`}${end} ${level}V${lane.depth}` : "");
  setAttribute(lane.predictedEnd, "d", crash ? cross(end + 10, lane.depth / 2) : "");
}

// A picture of the symptom, not of a run: the same each time, uneven enough to look like a monitor.
function drawStill(lane, silhouette, width, y) {
  const level = (STILL_LEVELS[silhouette] ?? LEVELS.all_high)[lane.rank === 0 ? 0 : 1];
  const steps = 60;
  const points = [];
  for (let i = 0; i < steps; i++) {
    const wobble = ((i * 7919 + lane.rank * 104729) % 97) / 97;
    const pulse = level < 20 ? ((i + lane.rank) % 4 === 0 ? level * 2.6 : level * 0.35) : level - 5;
    points.push([i, i + 1, level === 0 ? 0 : level > 95 ? (wobble < 0.06 ? 97 : 100) : Math.min(100, pulse + wobble * (level < 20 ? 3 : 8))]);
  }
  const x = (i) => (i / steps) * width;
  setAttribute(lane.line, "d", outline(points, x, y));
  setAttribute(lane.tint, "d", area(points, x, y, lane.depth));
  for (const name of ["solid", "hatch", "limit", "mark"]) setAttribute(lane[name], "d", "");
  setText(lane.note, "");
  setText(lane.value, `${Math.round(points.reduce((sum, point) => sum + point[2], 0) / steps)} %`);
}

// A GPU's figure in the summary of a run that has ended: over its steady part, or over the hang that ended it.
function summarised({ model, metric, ended }, rank) {
  return ended ? model.end?.summary?.gpus?.[rank]?.[METRICS[metric].mean] : null;
}

// Whether this rank is among those that ran out of memory; older records name none and mean all.
function ranOut({ summary }, rank) {
  const full = summary?.out_of_memory_ranks;
  return !full?.length || full.includes(rank);
}
