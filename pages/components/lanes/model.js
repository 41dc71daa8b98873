// What is known of one run: the events of its record, in order. Draws nothing and never guesses a missing measurement.

// Per metric: its label, the field of a tick, and what its scale ends at.
export const METRICS = {
  busy: { label: "Busy", title: "GPU busy (nvidia-smi)", field: "util", unit: "%", mean: "gpu_util" },
  useful: { label: "Useful", title: "Useful work", field: "useful", unit: "%", mean: "sm_active" },
  memory: { label: "Memory", title: "Memory", field: "mem", unit: "GiB", limit: "memory_limit_gib" },
  power: { label: "Power", title: "Power", field: "power", unit: "W", limit: "power_limit_w", mean: "power_w" },
  apart: { label: "Weights apart", title: "Weights apart from rank 0", field: "apart", unit: "", slope: true },
  learning_rate: { label: "Learning rate", title: "Learning rate", field: "lr", unit: "" },
};

export class RunModel {
  constructor() {
    this.head = null;
    this.phase = "connecting"; // then queued, starting, running, over
    this.queue = null;
    this.ticks = [];
    this.strips = [];
    this.end = null;
    this.lanes = {}; // rank: why its lane ended before the run
    this.lastId = 0;
  }

  // Takes one event in. Returns false for one that was seen before (a reconnected feed starts over).
  apply(id, event, data) {
    if (id) {
      if (id <= this.lastId) return false;
      this.lastId = id;
    }
    if (event === "head") this.head = data;
    else if (event === "state") this.applyState(data);
    else if (event === "tick") this.applyTick(data);
    else if (event === "strip") this.strips.push(data);
    else if (event === "lane") this.lanes[data.rank] = data.message;
    else if (event === "end") {
      this.end = data;
      this.phase = "over";
    }
    return true;
  }

  applyState(data) {
    if (this.phase === "over") return;
    this.phase = data.state;
    this.queue = data.state === "queued" ? data : null;
  }

  applyTick(data) {
    data.progress = data.epoch + (data.epoch_pct ?? 0) / 100;
    data.arrived = performance.now();
    this.ticks.push(data);
    if (this.phase !== "over") this.phase = "running";
  }

  get gpus() {
    return this.head?.gpus ?? this.ticks[0]?.util.length ?? 8;
  }

  get lastMs() {
    return this.ticks.length ? this.ticks[this.ticks.length - 1].t_ms : 0;
  }

  get endMs() {
    return Math.max(this.end?.t_ms ?? 0, this.lastMs);
  }

  // How many ticks lie at or before `t` (ms).
  countAt(t) {
    let low = 0;
    let high = this.ticks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ticks[middle].t_ms <= t) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  stripAt(t) {
    for (let i = this.strips.length - 1; i >= 0; i--) {
      if (this.strips[i].t1_us / 1000 <= t + 500) return this.strips[i];
    }
    return null;
  }

  // The number of ticks after which `rank` measured nothing any more, or null while it lives.
  endedAfter(rank, count) {
    const silent = (tick) => tick.util[rank] == null && tick.mem[rank] == null && tick.power[rank] == null;
    let last = count;
    while (last > 0 && silent(this.ticks[last - 1])) last--;
    return last < count && last > 0 ? last : null;
  }

  // Mean of the last second before tick number `count`; of a memory or a rate, the last value.
  valueAt(metric, rank, count) {
    const { field, mean } = METRICS[metric];
    const from = mean ? Math.max(0, count - 5) : count - 1;
    const known = this.ticks.slice(Math.max(0, from), count).map((tick) => tick[field]?.[rank]).filter((value) => value != null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  }

  // Epoch progress at `t`, moved on between ticks at the rate of the last second and a half.
  progressAt(t, count) {
    if (!count) return 0;
    const last = this.ticks[count - 1];
    const first = this.ticks[Math.max(0, count - 9)];
    const rate = first === last ? 0 : (last.progress - first.progress) / (last.t_ms - first.t_ms);
    const most = this.end?.summary?.epochs_seen ?? Infinity;
    // The last step may end within the last period, of which no tick tells.
    if (most < Infinity && t >= this.endMs) return Math.max(most, last.progress);
    return Math.min(last.progress + rate * Math.min(800, Math.max(0, t - last.t_ms)), Math.max(most, last.progress));
  }
}

// The top of a metric's scale over the first `count` ticks.
export function scaleTop(model, metric, count) {
  const { field, unit, limit } = METRICS[metric];
  if (unit === "%") return 100;
  let top = 0;
  for (const tick of model.ticks.slice(0, count)) for (const value of tick[field] ?? []) top = Math.max(top, value ?? 0);
  if (limit) return Math.max(top, model.head?.[limit] ?? 0) * 1.06 || 1;
  return top ? niceTop(top) : 1;
}

function niceTop(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 5, 7.5, 10].map((step) => step * power).find((step) => step >= value * 1.001) ?? value;
}
