// The console: where the class stands, what comes next, and everything an instructor may do about it, by one key or one click.
// Owns the page: its connection, its keys, and saying what failed. The parts are in panels.js, the sending in acting.js.

import { button, html, setAttribute, setText, show } from "../../components/lanes/dom.js";
import { Acting } from "./acting.js";
import { Line } from "./line.js";
import { answers, hands, headline, log, notes, peopleList, runs, stateName, twice } from "./panels.js";
import { clockWords, STEPS } from "./says.js";

const KEYS = {
  " ": "next", PageDown: "next", ArrowRight: "next", PageUp: "back", ArrowLeft: "back",
  b: "blank", B: "blank", ".": "blank", f: "freeze", F: "freeze", p: "play", P: "play",
};
const TYPING = "input, textarea, select";

class Console {
  constructor(body) {
    this.view = null;
    this.cause = null;
    const base = new URL("./", location.href);
    this.acting = new Acting(base, { view: () => this.view, say: (words, tone) => this.say(words, tone) });
    this.build(body);
    this.line = new Line(body.dataset.code, "console", { view: (view) => this.take(view), changed: () => this.tellConnection() });
    addEventListener("keydown", (event) => this.key(event));
    // After a click the keys are the class's again: a space is the next step and not the same button once more.
    addEventListener("click", (event) => event.detail && event.target.closest("button")?.blur());
    setInterval(() => this.tickClock(), 250);
    this.stayAwake();
  }

  build(body) {
    const top = html("header", "cn-top", body);
    this.fillHead = headline(top);
    const main = html("main", "", body);
    const left = html("div", "cn-column", main);
    this.buildDrive(left, body);
    const { acting } = this;
    const middle = html("div", "cn-column", main);
    const right = html("div", "cn-column", main);
    this.fills = [answers(left), hands(left, acting), runs(middle, acting), notes(right, acting), log(right), peopleList(right, acting)];
    const last = html("section", "cn-panel cn-last", right);
    this.swap = button("", "", last, () => acting.act("swap_order"));
    this.end = twice("End the class", "Really end it?", last, () => acting.move("end"));
  }

  buildDrive(root, body) {
    const section = html("section", "cn-panel cn-drive", root);
    section.setAttribute("aria-label", "Where the class is");
    const now = html("div", "cn-now", section);
    this.place = html("p", "cn-small", now);
    this.now = html("p", "cn-state", now);
    this.progress = html("p", "cn-progress", now);
    this.clock = html("strong", "cn-clock", now);
    this.alert = html("p", "cn-alert", section);
    this.alert.setAttribute("role", "alert");
    this.warning = html("p", "cn-alert cn-warning", section);
    this.warning.setAttribute("role", "status");
    this.lost = html("p", "cn-alert cn-lost", section, "Connection lost; trying again. What is below may be old.");
    this.lost.hidden = true;
    const bar = html("div", "cn-bar-moves", body);
    this.back = button("", "cn-back", bar, () => this.do("back"));
    this.next = button("", "cn-next", bar, () => this.do("next"));
    section.append(bar);
    const keys = html("div", "cn-keys", section);
    this.blank = toggle(keys, "B", "Blank", () => this.do("blank"));
    this.freeze = toggle(keys, "F", "Freeze", () => this.do("freeze"));
    this.play = toggle(keys, "P", "Play recording", () => this.do("play"));
    const more = html("div", "cn-row cn-more", section);
    this.skip = button("", "", more, () => this.acting.move("skip"));
    this.reopen = button("Open the vote again", "", more, () => this.acting.move("reopen"));
    this.timers = [30, 60, 90].map((seconds, at) => button(at ? `${seconds} s` : `Close in ${seconds} s`, "", more, () => this.acting.act("timer", { seconds })));
    for (const [at, timer] of this.timers.entries()) timer.setAttribute("aria-label", `Close in ${[30, 60, 90][at]} s`);
    this.extend = button("+30 s", "", more, () => this.acting.act("extend", { seconds: 30 }));
    this.untimed = button("No limit", "", more, () => this.acting.act("timer", { seconds: null }));
  }

  take(view) {
    this.view = view;
    if (view.predict?.cause_title) this.cause = view.predict.cause_title;
    if (view.run?.title) this.cause = view.run.title;
    this.fillDrive(view);
    for (const fill of this.fills) fill({ ...view, wanted: this.cause });
    this.tickClock();
  }

  fillDrive(view) {
    const { item } = view;
    setText(this.place, item ? `Question ${item.no} of ${item.of}: ${item.title}` : "Now");
    setText(this.now, stateName(view.state));
    setText(this.warning, view.warning ?? "");
    setText(this.progress, view.round ? `${view.answered} of ${Math.max(view.here ?? 0, view.answered)} answered` : "");
    setText(this.back, view.back ? `← ${stateName(view.back)}` : "← Back");
    this.back.disabled = !view.back;
    const step = view.state === "explanation" && view.next === "vote" ? "Next question" : STEPS[view.next];
    setText(this.next, view.next ? step ?? stateName(view.next) : "The class has ended");
    this.next.disabled = !view.next;
    setAttribute(this.blank, "aria-pressed", Boolean(view.blank));
    setAttribute(this.freeze, "aria-pressed", Boolean(view.frozen));
    this.play.disabled = !this.recording(view);
    setText(this.skip, view.skip ? `Skip to: ${stateName(view.skip)}` : "");
    show(this.skip, Boolean(view.skip));
    show(this.reopen, Boolean(view.may_reopen));
    const limit = view.closes_s != null;
    for (const timer of this.timers) show(timer, Boolean(view.round) && !limit);
    show(this.extend, Boolean(view.round) && limit);
    show(this.untimed, Boolean(view.round) && limit);
    setText(this.swap, view.order === "key_first" ? "Experiments before the key" : "Key before the experiments");
    this.swap.disabled = ["experiments", "key", "ended"].includes(view.state);
    this.end.disabled = view.state === "ended";
  }

  // The recording that P plays: of the run on screen, of the cause that was predicted, or else the first that is there.
  recording(view) {
    const ready = (view.causes ?? []).filter((cause) => cause.recording_ready);
    return ready.find((cause) => cause.title === this.cause) ?? ready[0] ?? null;
  }

  do(action) {
    const { view } = this;
    if (!view) return;
    if (action === "next" || action === "back") {
      if (!view[action]) this.say(action === "next" ? "The class has ended; nothing comes next." : "There is no way back from here.", "info");
      else this.acting.move(action);
    } else if (action === "play") this.playRecording(view);
    else this.acting.act(action, { on: !(action === "blank" ? view.blank : view.frozen) });
  }

  playRecording(view) {
    const cause = this.recording(view);
    if (!cause) this.say("There is no recording to play here yet.", "info");
    else this.acting.post("experiment", { cause_id: cause.id, mode: "recorded" });
  }

  key(event) {
    const action = KEYS[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(TYPING)) return;
    if (event.key === " " && event.target.closest?.("button, summary, a")) return; // reached by Tab: the space is its own
    event.preventDefault();
    if (!event.repeat) this.do(action);
  }

  say(words, tone) {
    // What was done clears what had failed, but not a hint about the same press.
    if (!words && tone === "done" && this.alert.dataset.tone === "info") return;
    setText(this.alert, words);
    setAttribute(this.alert, "data-tone", tone);
    show(this.alert, Boolean(words));
    clearTimeout(this.saying);
    if (tone === "info") this.saying = setTimeout(() => this.say("", ""), 4_000);
  }

  tellConnection() {
    const { lost } = this.line;
    show(this.lost, lost);
    if (!lost && this.alert.dataset.tone === "bad") this.say("The connection is back. Look where the class stands, and press again.", "info");
  }

  tickClock() {
    const { view } = this;
    if (!view) return;
    const now = this.line.nowS;
    this.fillHead(view, now);
    const left = view.closes_s == null ? null : view.closes_s - now;
    setText(this.clock, left == null ? "" : left <= 0 ? "Closed" : clockWords(Math.ceil(left)));
  }

  // A phone in the hand must not go dark in the middle of a class. Where it cannot be had, nothing is lost.
  stayAwake() {
    const ask = () => document.visibilityState === "visible" && navigator.wakeLock?.request("screen").catch(() => {});
    document.addEventListener("visibilitychange", ask);
    ask();
  }
}

function toggle(parent, key, words, act) {
  const node = button("", "cn-key", parent, act);
  html("kbd", "", node, key);
  node.append(words);
  return node;
}

new Console(document.body);
