// Every sentence, number and label people read. Chooses words only; measures and draws nothing.

import { METRICS } from "./model.js";

// A figure and its unit stay on one line.
export function unbroken(text) {
  return text.replace(/(\d) (?=(%|s|GiB|W|GPUs|ranks)\b|%)/g, "$1\u00a0");
}

export function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

export function wholeSeconds(ms) {
  return `${Math.max(1, Math.round(ms / 1000))} s`;
}

export function place(number) {
  const tens = number % 100;
  const suffix = tens > 10 && tens < 14 ? "th" : ["th", "st", "nd", "rd"][number % 10] ?? "th";
  return `${number}${suffix}`;
}

export function day(unixSeconds) {
  return new Date(unixSeconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

export function amount(value, metric) {
  if (value == null) return "n/a";
  const { unit } = METRICS[metric];
  if (unit === "%" || unit === "W") return `${Math.round(value)} ${unit}`;
  if (unit === "GiB") return `${value.toFixed(1)} ${unit}`;
  return plain(value);
}

// A small number without trailing zeros: 0.1, 0.0012, 3.2e-7.
export function plain(value) {
  if (value === 0) return "0";
  return Math.abs(value) < 1e-4 ? value.toExponential(1) : String(Number(value.toPrecision(2)));
}

// Of a finished run the part of a last epoch that it also saw is no work left undone.
export function epochWords(progress, finished = false) {
  const epoch = Math.floor(progress + 1e-6);
  const seen = Math.floor(progress * 100 + 1e-6) / 100;
  if (finished && epoch > 0) return seen === 1 ? "1 epoch" : `${seen} epochs`;
  const percent = Math.min(100, Math.floor((progress - epoch) * 100 + 1e-6));
  if (epoch > 0 && percent === 0) return `epoch ${epoch}, 100 %`;
  return epoch > 0 ? `epoch ${epoch + 1}, ${percent} %` : `epoch ${percent} %`;
}

export function badge(source) {
  if (source === "nvml") return "Real GPUs, NVML";
  return source === "virtual" ? "Simulated timing, real DDP" : "";
}

// The sentence of each state of a run, and what it is called in the status line.
export function sentence(state, view) {
  const { model, options } = view;
  const shown = seconds(view.t);
  const sentences = {
    empty: () => "No run yet. A run lasts about ten seconds.",
    connecting: () => "Looking for the run.",
    queued: () => queued(model.queue ?? {}),
    starting: () => starting(model),
    running: () => seen(view),
    paused: () => seen(view),
    replay: () => seen(view),
    offline: () => `Connection lost; the run goes on. ${view.retryS > 0 ? `Retrying in ${view.retryS} s.` : "Retrying now."}`,
    unknown: () => "This run is not on this server any more. A new one takes about ten seconds.",
    stopped: () => model.end?.sentence || `Stopped at ${shown}; shown up to there.`,
    finished: () => model.end?.sentence || "The run has finished.",
    out_of_memory: () => `${expectedCrash(view)}${model.end?.sentence ?? ""}`,
    timeout: () => (model.end?.expected ? `As expected: ${model.end.sentence}` : model.end?.sentence) || `The run took longer than its limit and was ended at ${shown}.`,
    interrupted: () => `The server restarted at ${shown}; shown up to there.`,
    failed: () => failed(model.end ?? {}),
    still: () => options.still_sentence ?? "",
  };
  const said = (sentences[state] ?? (() => ""))();
  const lanes = view.count || model.end ? Object.values(model.lanes) : [];
  return [said, ...lanes].filter(Boolean).join(" ");
}

// The text of an error, and before it what it means.
export function errorText(end) {
  return [end?.meaning && `What it means: ${end.meaning}`, end?.error].filter(Boolean).join("\n\n");
}

export function statusWords(state, view) {
  const { model } = view;
  const at = seconds(view.t);
  const words = {
    empty: ["No run yet"],
    connecting: ["Connecting"],
    queued: ["Waiting"],
    starting: ["Starting"],
    running: [`Live ${at}`],
    offline: ["Offline", `shown up to ${at}`],
    unknown: ["Unknown run"],
    replay: [`Recorded here${model.head?.recorded_s ? ` on ${day(model.head.recorded_s)}` : ""}`, at],
    stopped: ["Stopped", `at ${at}`],
    finished: ["Finished", `in ${at}`],
    out_of_memory: model.end?.expected === false ? ["Out of memory", `at ${at}`] : ["As expected", `out of memory at ${at}`],
    timeout: model.end?.expected ? ["As expected", `timed out at ${at}`] : ["Time limit", `at ${at}`],
    interrupted: ["Interrupted", `at ${at}`],
    failed: [model.end?.rank == null ? "Failed" : `Rank ${model.end.rank} failed`, `at ${at}`],
    still: ["Still picture"],
    paused: [`Paused at ${at}`, ahead(view)],
  };
  const [main, detail] = words[state] ?? [""];
  const step = view.count ? model.ticks[view.count - 1].step : null;
  if (state === "running" && step != null) return [main, `step ${step}`];
  return [main, detail ?? ""];
}

// How many processes there are tells one cause from all others: a run that is to be found out does not say.
function starting({ head, gpus }) {
  const processes = head?.processes;
  if (processes == null) return "The processes are starting.";
  if (processes > 1) return `${capital(count(processes))} processes starting.`;
  return gpus > 1 ? `One process starting, for all ${count(gpus)} GPUs.` : "One process starting.";
}

function expectedCrash({ model }) {
  const full = model.end?.summary?.out_of_memory_ranks ?? [];
  const some = full.length > 0 && full.length < model.gpus;
  const who = some ? `${full.length === 1 ? "rank" : "ranks"} ${full.join(", ")}` : `all ${model.gpus} ranks`;
  const begin = model.end?.expected === false ? capital(who) : `As expected: ${who}`;
  return `${begin} ran out of memory at ${seconds(model.endMs)}. `;
}

function ahead({ model, t, replaying }) {
  if (replaying) return "";
  return model.end ? `the run ended ${wholeSeconds(model.endMs - t)} later` : `the run is ${wholeSeconds(model.lastMs - t)} ahead`;
}

function queued({ place: number, wait_s: wait }) {
  const who = number == null ? "In line" : number <= 1 ? "Next in line" : `${place(number)} in line`;
  return wait == null ? `${who}.` : `${who}, about ${Math.max(1, Math.round(wait))} s.`;
}

function failed({ rank, error, sentence: text }) {
  const lines = (error ?? "").trim().split("\n");
  const reason = lines[lines.length - 1].slice(0, 160) || text || "the process ended without a message";
  return rank == null ? `The run failed: ${reason}` : `Rank ${rank} ended: ${reason}`;
}

// What the last second shows, from the figures alone.
function seen({ model, count: ticks, metric, options }) {
  if (!ticks) return "The first figures come in a moment.";
  const values = Array.from({ length: model.gpus }, (_, rank) => model.valueAt(metric, rank, ticks));
  const known = values.filter((value) => value != null);
  if (!known.length) return `${METRICS[metric].title}: this card does not measure it.`;
  const odd = options.odd_rank;
  const rest = values.filter((value, rank) => rank !== odd && value != null);
  const mean = rest.reduce((sum, value) => sum + value, 0) / (rest.length || 1);
  const low = amount(Math.min(...known), metric);
  const high = amount(Math.max(...known), metric);
  if (metric === "apart") return known.some((value) => value > 0) ? `The weights have drifted up to ${high} away from rank 0.` : "All ranks hold the same weights.";
  if (metric === "memory") return `The fullest GPU holds ${high} of ${amount(model.head?.memory_limit_gib, metric)}.`;
  const what = { busy: "busy", useful: "doing useful work", power: "drawing", learning_rate: "at a learning rate of" }[metric];
  const say = (value) => (METRICS[metric].unit === "%" ? `${what} ${amount(value, metric)} of the time` : `${what} ${amount(value, metric)}`);
  if (odd != null && values[odd] != null && rest.length) return `GPU ${odd} is ${say(values[odd])}, the other ${count(rest.length)} ${amount(mean, metric)}.`;
  return low === high ? `All ${count(known.length)} GPUs are ${say(known[0])}.` : `The ${count(known.length)} GPUs are ${what} ${low} to ${high}.`;
}

export function count(number) {
  return ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"][number] ?? String(number);
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

// Four tiles as [figure, label]; a figure that is not known yet is an en dash in its place.
export function tiles(view) {
  const { model, ended } = view;
  const gpus = "the useful speed of one GPU";
  if (!ended) return [["–", gpus], epochSoFar(view), ["–", "each sample trained"], ["–", "samples trained"]];
  const summary = model.end?.summary;
  if (!summary) return [["n/a", gpus], ["n/a", "an epoch"], ["n/a", "each sample trained"], ["n/a", "samples trained"]];
  const speed = summary.speedup_vs_one_gpu;
  const first = [speed == null ? "n/a" : `${speed.toFixed(1)}×`, gpus];
  if (model.end.outcome === "out_of_memory") {
    const peak = summary.peak_memory_gib;
    const limit = summary.memory_limit_gib;
    return [first, ["n/a", "an epoch"], [`${peak?.toFixed(0) ?? "–"} GiB`, `at most, of ${limit?.toFixed(0) ?? "–"} GiB`], [String(summary.last_batch_that_fitted ?? "none"), "last batch that fitted"]];
  }
  const epoch = summary.epoch_seconds;
  const times = summary.times_trained;
  const rate = summary.samples_per_second;
  return [
    first,
    [epoch == null ? "n/a" : epoch < 10 ? `${epoch.toFixed(1)} s` : `${Math.round(epoch)} s`, summary.epoch_measured === false ? "an epoch, at this rate" : "an epoch"],
    [times == null ? "n/a" : times < 1.05 ? "once" : `${plain(times)} times`, "each sample trained"],
    [rate == null ? "n/a" : `${Math.round(rate).toLocaleString("en-GB")}/s`, "samples trained"],
  ];
}

function epochSoFar({ model, count: ticks }) {
  const last = ticks ? model.ticks[ticks - 1] : null;
  if (!last || last.progress < 0.04) return ["–", "an epoch"];
  return [`${(last.t_ms / 1000 / last.progress).toFixed(last.t_ms / last.progress < 10_000 ? 1 : 0)} s`, "an epoch, at this rate"];
}
