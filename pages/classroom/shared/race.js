// The race, on the projector and on phones: several recorded runs on one clock, by how much of the data they have trained on. Owns its clock and its rows.

import { html, setAttribute, setText } from "../../components/lanes/dom.js";

const SHOWN_S = 14; // the slowest takes about this long on screen

export class Race {
  constructor(parent) {
    this.box = html("div", "race", parent);
    this.clock = html("p", "race-clock", this.box);
    this.list = html("ol", "", this.box);
    this.key = "";
    this.at = 0;
  }

  // `racers` as the class's view has them: {run_id, title, role, epoch_s, points: [[s, %], ...]}.
  show(racers, held) {
    this.held = held;
    const key = racers.map((racer) => racer.run_id).join();
    if (key !== this.key) this.begin(key, racers);
  }

  begin(key, racers) {
    this.key = key;
    this.list.replaceChildren();
    this.lanes = racers.map((racer) => {
      const row = html("li", "", this.list);
      setAttribute(row, "data-role", racer.role);
      html("span", "racer", row, racer.title);
      const time = html("strong", "", row);
      return { racer, time, fill: html("i", "", html("div", "race-track", row)) };
    });
    this.endS = Math.max(...racers.map((racer) => racer.epoch_s));
    this.rate = Math.max(1, this.endS / SHOWN_S);
    this.at = matchMedia("(prefers-reduced-motion: reduce)").matches ? this.endS : 0;
    this.last = performance.now();
    cancelAnimationFrame(this.raf);
    this.frame();
  }

  frame() {
    const now = performance.now();
    if (!this.held) this.at = Math.min(this.endS, this.at + ((now - this.last) / 1000) * this.rate);
    this.last = now;
    for (const { racer, time, fill } of this.lanes) {
      const done = this.at >= racer.epoch_s;
      fill.style.transform = `scaleX(${(done ? 1 : progressAt(racer.points, this.at) / 100).toFixed(4)})`;
      setText(time, done ? `${racer.epoch_s < 10 ? racer.epoch_s.toFixed(1) : Math.round(racer.epoch_s)} s` : "");
    }
    const fast = this.rate > 1.05 ? `, ${this.rate.toFixed(1)} times as fast as it was` : "";
    setText(this.clock, `Each sample once, first to the line wins. ${Math.floor(this.at)} s${fast}`);
    if (this.at < this.endS) this.raf = requestAnimationFrame(() => this.frame());
  }

  destroy() {
    cancelAnimationFrame(this.raf);
  }
}

function progressAt(points, second) {
  const next = points.findIndex(([at]) => at >= second);
  if (next < 0) return points.length ? points[points.length - 1][1] : 0;
  const [endS, end] = points[next];
  const [startS, start] = next ? points[next - 1] : [0, 0];
  return endS === startS ? end : start + ((end - start) * (second - startS)) / (endS - startS);
}
