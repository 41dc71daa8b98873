// The line of projector and console to their class: the one feed of all its pages, with the server's clock, and held back while frozen.

import { ClassFeed } from "../shared/feed.js";

export class Line {
  // `on` holds view(view), shown() and changed(), which is called when the connection comes or goes.
  constructor(code, role, on) {
    const url = new URL("../../live", location.href);
    url.search = new URLSearchParams({ class: code, as: role });
    this.offsetS = 0;
    this.held = null; // what came while frozen, or null
    this.run = null;
    this.feed = new ClassFeed(url.href, {
      view: (view) => {
        if (view.server_s) this.offsetS = view.server_s - Date.now() / 1000;
        on.view(view);
      },
      shown: (run) =>
        this.later(() => {
          this.run = run;
          on.shown?.();
        }),
      change: () => on.changed(),
      refused: () => {},
      check: async () => false, // nothing to ask beside the line: it is opened anew
    });
  }

  // A connection for this showing of the run, in the shape that the live picture asks for.
  connection() {
    const { run } = this;
    return (runId, onEvent, onChange) => run.feed((...event) => this.later(() => onEvent(...event)), onChange);
  }

  // While frozen, nothing of a run gets through; afterwards all of it does, in order.
  freeze(on) {
    if (on) this.held ??= [];
    else if (this.held) {
      const waiting = this.held;
      this.held = null;
      for (const step of waiting) step();
    }
  }

  later(step) {
    if (this.held) this.held.push(step);
    else step();
  }

  get lost() {
    return this.feed?.lost ?? false;
  }

  // Unix seconds by the server's clock.
  get nowS() {
    return Date.now() / 1000 + this.offsetS;
  }
}
