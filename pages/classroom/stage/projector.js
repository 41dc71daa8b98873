// The projector: one view of the class after the other, as large as the room needs it. Nothing here can be pressed.
// Owns the page: its connection, which scene is on, the foot line, blank and frozen. What a scene shows is in scenes.js and running.js.

import { html, isDark, setAttribute, setText, show } from "../../components/lanes/dom.js";
import { Line } from "./line.js";
import { experiments } from "./running.js";
import { ended, explanation, key, lobby, missing, predict, qr, question, votes } from "./scenes.js";

const SCENES = { lobby, vote: question, votes, discuss: votes, revote: question, predict, experiments, key, explanation, ended };
const PICTURE = { width: 1920, height: 1080 };
const TIGHTEST = 2;
const SMALLEST = 0.5;
const STEP = 0.96;
const SAY_LOST_MS = 3_000;

class Projector {
  constructor(body) {
    this.body = body;
    this.main = body.querySelector("main");
    this.scene = null;
    this.shown = "";
    this.view = null;
    this.buildFoot(body.querySelector("footer"));
    this.dark = isDark(this.main);
    this.scale();
    this.line = new Line(body.dataset.code, "projector", {
      view: (view) => this.take(view),
      shown: () => this.refresh(),
      changed: () => this.tellConnection(),
    });
    addEventListener("resize", () => this.scale());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.dark = isDark(this.main);
      this.shown = "";
      this.refresh();
    });
    document.fonts?.ready.then(() => this.fit());
    setInterval(() => this.tickClock(), 200);
    this.tellConnection();
  }

  buildFoot(foot) {
    this.foot = foot;
    this.count = html("span", "pj-count", foot);
    this.clock = html("span", "pj-clock", foot);
    this.lost = html("span", "pj-lost", foot, "Connection lost; trying again");
    this.lost.hidden = true;
    this.join = html("span", "pj-foot-join", foot);
    this.small = html("span", "pj-foot-qr", foot);
    this.small.append(qr("Code to join the class"));
  }

  take(view) {
    this.view = view;
    setAttribute(this.body, "data-blank", Boolean(view.blank));
    this.line.freeze(Boolean(view.frozen));
    this.refresh();
  }

  refresh() {
    const { view } = this;
    if (!view) return;
    const name = [view.state, view.item?.no, view.predict?.cause_title, view.key?.option_id].join();
    if (name !== this.shown) this.change(view, name);
    this.scene?.(view);
    this.fillFoot(view);
    this.fit();
  }

  change(view, name) {
    this.shown = name;
    this.scene?.destroy?.();
    this.still?.destroy();
    this.still = null;
    this.main.replaceChildren();
    this.main.className = "";
    const around = { line: this.line, dark: this.dark, lanes: () => this.lanes(), still: (place, name) => this.drawStill(place, name) };
    setAttribute(this.body, "data-state", view.state);
    const scene = view.item || ["lobby", "ended"].includes(view.state) ? SCENES[view.state] : missing;
    this.scene = scene(this.main, view, around);
  }

  // The live picture's script is as large as all the rest; it is there before it is needed, but nothing waits for it.
  lanes() {
    this.lanesLoaded ??= import(this.body.dataset.lanes).then((module) => module.mountLanes);
    return this.lanesLoaded;
  }

  drawStill(place, name) {
    this.lanes().then((mount) => {
      if (place.isConnected) this.still = mount(place, { run_id: null, still: name, controls: false, compact: false, odd_rank: null });
    });
  }

  fillFoot(view) {
    const here = view.here ?? 0;
    setText(this.count, view.round ? `${view.answered} of ${Math.max(here, view.answered)} answered` : view.state === "lobby" ? "" : `${here} here`);
    setText(this.join, view.join_words ?? "");
    this.foot.hidden = view.state === "lobby" || view.state === "ended";
    this.tickClock();
  }

  tickClock() {
    const { view } = this;
    if (view?.frozen && this.clockSet) return;
    this.clockSet = true;
    const left = view?.closes_s == null ? null : Math.max(0, Math.ceil(view.closes_s - this.line.nowS));
    setText(this.clock, left == null ? "" : left === 0 ? "Time is up" : `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`);
    setAttribute(this.clock, "data-soon", left != null && left <= 10);
  }

  // The whole picture as large as the window: what it is made of keeps its share of it. A window of another shape has room to spare.
  scale() {
    const across = innerWidth / PICTURE.width;
    const down = innerHeight / PICTURE.height;
    const size = Math.min(across, down);
    this.body.style.zoom = size;
    this.spare = Math.sqrt(across * down) / size;
    this.fit();
  }

  // From large and roomy to planned and tight. Texts longer than those of any lesson become smaller then: nothing is ever left out.
  fit() {
    for (const [size, air] of this.ways()) {
      this.main.style.zoom = size;
      setAttribute(this.main, "data-fit", air);
      if (this.fits()) return;
    }
  }

  *ways() {
    const larger = this.spare > 1.02 ? [this.spare, Math.sqrt(this.spare)] : [];
    for (const size of [...larger, 1]) for (let air = 0; air < TIGHTEST; air++) yield [size, air];
    for (let size = 1; size > SMALLEST; size *= STEP) yield [size, TIGHTEST];
  }

  fits() {
    const { main } = this;
    return main.scrollHeight <= main.clientHeight + 1 && main.scrollWidth <= main.clientWidth + 1;
  }

  // A short loss is nobody's business in the room; the picture stays as it is.
  tellConnection() {
    clearTimeout(this.losing);
    if (!this.line?.lost) this.lost.hidden = true;
    else this.losing = setTimeout(() => show(this.lost, true), SAY_LOST_MS);
  }
}

new Projector(document.body);
