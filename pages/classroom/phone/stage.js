// The live picture on the phone: loaded when there is first something to see, fed from the page's one connection, in view from the
// first run of a question to its explanation.

import { show } from "../../components/lanes/dom.js";

const STATES = ["experiments", "key", "explanation"];

export class Stage {
  // `addresses`: {script, style} of the picture. `on`: say(text) is the page's voice, over() tells that the run has been seen to its end.
  constructor(node, addresses, on) {
    this.node = node;
    this.addresses = addresses;
    this.on = on;
    this.lanes = null;
    this.seen = null;
  }

  // Whether the run on screen was seen to its end.
  get over() {
    return Boolean(this.wanted) && this.wanted.run === this.seen;
  }

  end() {
    this.seen = this.wanted?.run;
    this.on.over();
  }

  // `run` is what the connection says is on screen; `view.run` says how to draw it.
  update(view, run) {
    this.wanted = STATES.includes(view?.state) && view.run && !view.race?.length && run?.runId === view.run.run_id ? { view, run } : null;
    show(this.node, Boolean(this.wanted));
    document.body.classList.toggle("staged", Boolean(this.wanted));
    if (!this.wanted) {
      this.clear();
      return;
    }
    // Once the answer is up, its texts are what counts: the picture keeps to its lanes.
    this.node.classList.toggle("brief", view.state !== "experiments");
    if (this.mount) this.draw();
    else this.load();
  }

  draw() {
    const options = this.options();
    if (this.lanes) this.lanes.update(options);
    else this.lanes = this.mount(this.node, options);
  }

  options() {
    const { view, run } = this.wanted;
    run.connect ??= (_, onEvent, onChange) => run.feed(onEvent, onChange);
    return {
      run_id: run.runId, connect: run.connect, audience: true, sticky: innerHeight > 500, onSay: this.on.say, paused: Boolean(view.run.paused),
      onAction: ({ action }) => action === "ended" && this.end(), replay: view.run.mode === "recorded", odd_rank: view.run.odd_rank ?? null, metric: view.run.metric ?? "busy",
      // The class predicted one cause; the runs of the others have no outline.
      prediction: view.run.prediction ? (view.me?.votes?.predict ?? null) : null,
    };
  }

  async load() {
    if (this.loading) return;
    this.loading = true;
    try {
      const [module] = await Promise.all([import(this.addresses.script), sheet(this.addresses.style)]);
      this.mount = module.mountLanes;
      if (this.wanted) this.draw();
    } catch {
      this.later = setTimeout(() => this.wanted && this.load(), 2_000); // a phone in an airplane
    } finally {
      this.loading = false;
    }
  }

  clear() {
    this.lanes?.destroy();
    this.lanes = null;
  }
}

function sheet(href) {
  return new Promise((resolve, reject) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = href;
    link.onload = resolve;
    link.onerror = () => {
      link.remove();
      reject(new Error(href));
    };
    document.head.appendChild(link);
  });
}
