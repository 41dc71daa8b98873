// The live picture of one run. `mountLanes(root, options)` works on any page; the default export is for Streamlit.
//
// options: run_id, replay, odd_rank, metric, prediction, still, still_sentence, next_steps ([[id, label], ...]), sticky,
// live_url, onAction({action, ...}). Actions: run, run_again, stop, watch_recording, ended and the ids of next_steps.
// For pages that are driven from elsewhere: connect(runId, onEvent, onChange) gives a feed in place of one of its own (a new function
// shows the run anew), paused holds the picture, and controls: false leaves every button and the table out of the page. audience: true
// leaves out only what starts or stops a run, and onSay(text) takes what would be spoken, for a page that speaks for all of itself.

import { isDark, setAttribute, setText, show } from "./dom.js";
import { Feed, liveUrl } from "./feed.js";
import { METRICS, RunModel } from "./model.js";
import { Panel } from "./panel.js";
import { epochWords, errorText, sentence, statusWords, tiles, unbroken } from "./words.js";

const FRAME_MS = 33; // between two frames: about 20 a second, which a small machine can paint without a graphics card
const SPEAK_MS = 5_000;
const COMPACT_PX = 520;
const BURST_MS = 150;
const TONES = { running: "live", replay: "live", failed: "bad", offline: "warn", unknown: "warn", finished: "good", paused: "warn" };
let mounted = 0;

class Lanes {
  constructor(root, options) {
    this.root = root;
    this.options = options;
    mounted += 1;
    root.classList.add("sl-root");
    this.panel = new Panel(root, `sl${mounted}`, {
      metric: (name) => this.pickMetric(name),
      pause: () => this.togglePause(),
      stop: () => this.act("stop"),
      table: () => this.toggle("table"),
      strip: () => this.panel.strip.again() ?? this.wake(),
    });
    if (options.controls === false) this.panel.removeControls();
    this.open = null; // "table", "details" or null: what covers the picture
    this.spokenAt = -Infinity;
    this.reduced = matchMedia("(prefers-reduced-motion: reduce)");
    this.wake = this.wake.bind(this);
    this.size = new ResizeObserver(() => this.measure());
    this.size.observe(root);
    this.listen = new AbortController();
    const signal = { signal: this.listen.signal };
    document.addEventListener("visibilitychange", this.wake, signal);
    this.reduced.addEventListener("change", this.wake, signal);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint(), signal);
    this.clock = setInterval(() => this.tickClock(), 1000);
    this.startRun();
    this.measure();
  }

  // New options. The same run goes on untouched; another one is connected to.
  update(options) {
    const before = this.options;
    this.options = options;
    if (["run_id", "replay", "live_url", "connect"].some((name) => options[name] !== before[name])) this.startRun();
    else if (options.metric !== before.metric) this.metric = this.validMetric();
    if (before.paused && !options.paused && this.pausedAt != null) this.togglePause();
    else if (options.paused && !before.paused) this.hold();
    this.measure();
  }

  destroy() {
    this.feed?.close();
    cancelAnimationFrame(this.raf);
    clearInterval(this.clock);
    clearTimeout(this.speaking);
    clearTimeout(this.holding);
    clearTimeout(this.next);
    this.size.disconnect();
    this.scroll.disconnect();
    this.listen.abort();
    this.root.replaceChildren();
    this.root.classList.remove("sl-root");
    for (const name of ["run", "state", "over", "open", "blank"]) delete this.root.dataset[name]; // what comes next here is in no state yet
  }

  validMetric() {
    return this.options.metric in METRICS ? this.options.metric : "busy";
  }

  startRun() {
    this.feed?.close();
    this.feed = null;
    this.model = new RunModel();
    this.metric = this.validMetric();
    this.pausedAt = null;
    this.replayFrom = null; // {t, now}: the replay's clock
    this.replaying = Boolean(this.options.replay);
    this.toldEnd = false;
    this.open = null;
    this.most = 0;
    this.dirty = true;
    this.panel.strip.clear();
    if (this.options.run_id) {
      const take = (id, name, data) => {
        if (this.model.apply(id, name, data)) this.changed();
      };
      const changed = () => this.changed();
      const own = (runId) => new Feed(liveUrl(this.options, runId), take, changed);
      this.feed = (this.options.connect ?? own)(this.options.run_id, take, changed);
    }
    this.wake();
  }

  changed() {
    this.dirty = true;
    if (this.replaying && !this.replayFrom && this.model.ticks.length) this.replayFrom = { t: 0, now: performance.now() };
    if (this.options.paused && this.pausedAt == null) this.holdLater();
    if (!this.replaying && this.model.end) this.tellEnd();
    this.wake();
  }

  tellEnd() {
    if (this.toldEnd || this.pausedAt != null) return;
    this.toldEnd = true;
    this.act("ended", { outcome: this.model.end.outcome });
  }

  act(action, more) {
    this.options.onAction?.({ action, run_id: this.options.run_id ?? null, ...more });
  }

  pickMetric(name) {
    this.metric = name;
    this.dirty = true;
    this.wake();
  }

  toggle(what) {
    this.open = this.open === what ? null : what;
    this.dirty = true;
    this.wake();
  }

  // The time shown now, in ms of the run.
  now() {
    if (this.pausedAt != null) return this.pausedAt;
    if (this.replaying) return this.replayFrom ? Math.min(this.model.endMs, this.replayFrom.t + performance.now() - this.replayFrom.now) : 0;
    return this.model.end ? this.model.endMs : this.model.lastMs;
  }

  togglePause() {
    if (this.pausedAt == null) this.pausedAt = this.now();
    else {
      if (this.replaying) this.replayFrom = { t: this.pausedAt, now: performance.now() };
      this.pausedAt = null;
    }
    this.changed();
  }

  // Paused by whoever drives the page.
  hold() {
    const over = this.model.end && !this.replaying;
    if (this.options.paused && this.pausedAt == null && this.model.ticks.length && !over) this.togglePause();
  }

  // Whoever comes while the run is paused gets what was shown so far in one burst, and holds where it ends.
  holdLater() {
    clearTimeout(this.holding);
    this.holding = setTimeout(() => this.hold(), BURST_MS);
  }

  replayAgain() {
    this.replaying = true;
    this.replayFrom = { t: 0, now: performance.now() };
    this.pausedAt = null;
    this.panel.strip.clear();
    this.changed();
  }

  skip() {
    this.replaying = false;
    this.pausedAt = null;
    this.changed();
  }

  view() {
    const t = this.now();
    const { model, options } = this;
    if (this.replaying && model.end && this.replayFrom && t >= model.endMs && this.pausedAt == null) this.skip();
    const ended = Boolean(model.end) && this.pausedAt == null && !this.replaying;
    const count = ended ? model.ticks.length : model.countAt(t);
    const view = { model, options, t, count, ended, metric: this.metric, replaying: this.replaying, retryS: this.feed?.retryS ?? 0 };
    view.state = this.state(ended);
    return view;
  }

  state(ended) {
    if (!this.options.run_id) return this.options.still ? "still" : "empty";
    if (this.feed?.unknown) return "unknown";
    if (this.pausedAt != null) return "paused";
    if (ended) return this.model.end.outcome;
    if (this.feed?.lost) return "offline";
    if (this.replaying && this.model.ticks.length) return "replay";
    return this.model.phase;
  }

  // What can be done next, as [id, label, action, primary].
  buttonsFor({ state, model, options }) {
    if (options.audience) return this.audienceButtons(state, model);
    const again = ["run_again", "Run again", () => this.act("run_again")];
    const watch = ["watch_again", "Watch again", () => this.replayAgain()];
    const details = ["details", this.open === "details" ? "Hide details" : "Details", () => this.toggle("details")];
    const next = (options.next_steps ?? []).map(([id, label], i) => [id, label, () => this.act(id), i === 0]);
    const recording = model.queue?.recording;
    return {
      empty: [["run", "Run it", () => this.act("run"), true]],
      queued: recording ? [["watch_recording", "Watch the recording now", () => this.act("watch_recording", { recording }), true]] : [],
      offline: [["retry", "Retry now", () => this.feed.open(), true]],
      unknown: [[...again, true]],
      replay: [["skip", "Skip to end", () => this.skip()]],
      stopped: [[...again, true], ...(model.ticks.length ? [watch] : [])],
      finished: next.length ? next : [[...again, true], watch],
      out_of_memory: [...(next.length ? next : [[...again, true], watch]), ...(model.end?.error ? [details] : [])],
      timeout: [...(model.end?.error ? [details] : []), ...(model.end?.expected && next.length ? next : [[...again, true], watch])],
      interrupted: [[...again, true]],
      failed: [...(model.end?.error ? [details] : []), [...again, true]],
    }[state] ?? [];
  }

  // Whoever only watches can look again or closer; what runs is not theirs to decide.
  audienceButtons(state, model) {
    if (state === "offline") return [["retry", "Retry now", () => this.feed.open(), true]];
    if (state === "replay") return [["skip", "Skip to end", () => this.skip()]];
    if (!model.end || state === "paused") return [];
    const watch = model.ticks.length ? [["watch_again", "Watch again", () => this.replayAgain()]] : [];
    return model.end.error ? [...watch, ["details", this.open === "details" ? "Hide details" : "Details", () => this.toggle("details")]] : watch;
  }

  wake() {
    if (this.raf || document.hidden) return;
    clearTimeout(this.next);
    this.raf = requestAnimationFrame((now) => this.frame(now));
  }

  frame(now) {
    this.raf = 0;
    const view = this.view();
    if (this.dirty || view.count !== this.shownCount || view.state !== this.shownState) this.draw(view);
    this.drawMoving(view);
    const sweeping = this.panel.strip.frame(now, { paused: this.pausedAt != null, still: this.reduced.matches, ended: view.ended });
    setText(this.panel.slowTitle, this.panel.strip.title());
    show(this.panel.slowAgain, view.ended && !sweeping && !this.reduced.matches && Boolean(this.panel.strip.data));
    const moving = sweeping || view.state === "running" || (view.state === "replay" && this.pausedAt == null);
    if (moving) this.next = setTimeout(this.wake, FRAME_MS);
  }

  // What moves between two ticks: the epoch's progress and a replay's clock.
  drawMoving(view) {
    const { model, state, t, count } = view;
    const running = state === "running" && count;
    const at = running ? t + Math.min(800, performance.now() - model.ticks[count - 1].arrived) : t;
    // An estimate that ran ahead waits for the run instead of stepping back.
    this.most = Math.max(this.most, view.ended || state === "paused" ? 0 : model.progressAt(at, count));
    if (view.ended || !count) this.most = model.progressAt(t, count);
    if (this.replaying && this.most > model.progressAt(t, count) + 0.5) this.most = model.progressAt(t, count);
    const finished = state === "finished";
    this.panel.fillEpoch(this.most, count ? epochWords(this.most, finished) : "epoch –", Boolean(count), finished);
    if (state === "replay" || state === "running") this.panel.fillStatus(statusWords(state, view), TONES[state]);
  }

  draw(view) {
    const { panel } = this;
    const { state, model, options } = view;
    this.dirty = false;
    this.shownCount = view.count;
    this.shownState = state;
    const compact = this.root.classList.contains("sl-compact");
    const width = Math.floor(panel.stage.clientWidth || this.root.clientWidth);
    panel.picture.layout(width, compact, model.gpus, options.odd_rank);
    panel.strip.layout(Math.floor(panel.slow.clientWidth || width), compact, model.gpus, options.odd_rank);
    const top = panel.picture.draw(view);
    setText(panel.legend.scale, panel.picture.captions(view, top));
    if (state !== "paused") {
      const strip = model.stripAt(view.t);
      if (strip) panel.strip.offer(strip);
    }
    this.drawPanel(view);
    this.speak(view);
  }

  drawPanel(view) {
    const { panel } = this;
    const { state, model, options, count } = view;
    setAttribute(this.root, "data-run", options.run_id ?? "");
    setAttribute(this.root, "data-state", state);
    setAttribute(this.root, "data-over", view.ended || state === "paused");
    setAttribute(this.root, "data-open", this.open ?? "");
    setAttribute(this.root, "data-blank", ["empty", "connecting", "queued", "starting", "unknown"].includes(state) || (state === "offline" && !count));
    panel.fillStatus(statusWords(state, view), TONES[state] ?? "calm");
    panel.setSource(model.head?.source);
    panel.markMetric(panel.segments.find((node) => node.dataset.metric === this.metric));
    panel.fillTiles(tiles(view));
    setText(panel.sentence, unbroken(sentence(state, view)));
    panel.fillButtons(this.buttonsFor(view));
    const live = state === "running" || state === "replay";
    setText(panel.pause, state === "paused" ? (this.replaying ? "Play on" : "Jump to live") : "Pause");
    panel.pause.disabled = Boolean(options.paused) || !(live || state === "paused");
    panel.stop.disabled = !["queued", "starting", "running", "offline"].includes(state) && !(state === "paused" && !model.end && !this.replaying);
    show(panel.stop, !options.audience);
    setAttribute(panel.tableSwitch, "aria-pressed", this.open === "table");
    show(panel.table.node, this.open === "table");
    show(panel.details, this.open === "details");
    if (this.open === "details") setText(panel.details, errorText(model.end));
    if (this.open === "table") panel.fillTable(model, count);
    this.drawLegend(view);
  }

  drawLegend({ state, options, metric }) {
    const { legend } = this.panel;
    const has = { busy: ["line", "solid", "hatch"], useful: ["solid", "tint"], memory: ["limit"], power: ["limit"] }[metric] ?? [];
    for (const [name, item] of Object.entries(legend)) {
      if (name === "scale") continue;
      const predicted = name === "prediction" && options.prediction && (metric === "busy" || metric === "useful" || (metric === "memory" && options.prediction === "all_crash"));
      show(item, state !== "still" && (has.includes(name) || Boolean(predicted)));
    }
  }

  // The spoken summary: the latest sentence, at most once in five seconds.
  speak(view) {
    const text = view.state === "still" ? "" : `${statusWords(view.state, view).filter(Boolean).join(", ")}. ${sentence(view.state, view)}`;
    this.toSay = text;
    if (this.options.onSay) {
      if (text !== this.said) this.options.onSay((this.said = text));
      return;
    }
    if (this.speaking || text === this.panel.say.textContent) return;
    const wait = Math.max(0, this.spokenAt + SPEAK_MS - performance.now());
    this.speaking = setTimeout(() => {
      this.speaking = 0;
      this.spokenAt = performance.now();
      setText(this.panel.say, this.toSay);
    }, wait);
  }

  // Once a second: the count down to the next try, and a replay that ended behind a hidden tab.
  tickClock() {
    if (this.feed?.lost || this.pausedAt != null) {
      this.dirty = true;
      this.wake();
    }
    if (document.hidden && this.replaying) this.view();
  }

  measure() {
    this.watchScroll();
    const width = this.root.clientWidth;
    this.root.classList.toggle("sl-compact", this.options.compact ?? (width > 0 && width < COMPACT_PX));
    this.paint();
    this.dirty = true;
    this.wake();
  }

  paint() {
    this.root.classList.toggle("sl-dark", isDark(this.root));
  }

  // On a phone the status line and the lanes stay in view while the text scrolls, below whatever bar the page has there.
  watchScroll() {
    const seam = (this.seam ??= this.root.insertBefore(Object.assign(document.createElement("div"), { className: "sl-seam" }), this.panel.live));
    const top = parseFloat(getComputedStyle(seam).scrollMarginTop) || 0;
    if (this.scroll && top === this.stickTop) return;
    this.stickTop = top;
    this.scroll?.disconnect();
    this.scroll = new IntersectionObserver(([entry]) => this.stick(entry.boundingClientRect.top <= top && !entry.isIntersecting), {
      rootMargin: `-${Math.round(top) + 1}px 0px 0px 0px`,
    });
    this.scroll.observe(seam);
  }

  stick(away) {
    const { live } = this.panel;
    const stuck = away && this.root.classList.contains("sl-compact") && (this.options.sticky ?? true) && Boolean(this.options.run_id);
    this.seam.style.height = stuck ? `${live.offsetHeight}px` : "";
    live.classList.toggle("sl-stuck", stuck);
  }
}

export function mountLanes(root, options) {
  const lanes = new Lanes(root, options);
  return { update: (next) => lanes.update(next), destroy: () => lanes.destroy() };
}

// Streamlit calls this at every rerun with the same element: only the first one mounts.
export default function streamlitLanes({ data, parentElement, setTriggerValue }) {
  const options = { ...data, onAction: (action) => setTriggerValue("action", action) };
  let root = parentElement.querySelector(":scope > .sl-root");
  if (root) root.slLanes.update(options);
  else {
    root = document.createElement("div");
    parentElement.appendChild(root);
    root.slLanes = mountLanes(root, options);
  }
  return () => {
    root.slLanes.destroy();
    root.remove();
  };
}
