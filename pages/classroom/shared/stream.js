// The one connection of a page to its class: views of the class, and the events of the run that the class is shown.
// Owns opening, noticing losses and holding back; draws nothing.

const RUN_EVENTS = ["head", "state", "tick", "strip", "lane", "end"];
const FIRST_RETRY_S = 1;
const LAST_RETRY_S = 15;

export class ClassStream {
  // `on` holds view(view), shown(runId), event(name, data) and changed(), which is called when the connection comes or goes.
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.lost = false;
    this.tries = 0;
    this.held = null; // a list of what came while frozen, or null
    this.run = null; // {id, events, take}: the run on screen, with all it said so far
    this.offsetS = 0;
    this.open();
  }

  open() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = new EventSource(this.url);
    const hear = (name, take) =>
      this.source.addEventListener(name, (event) => {
        this.setLost(false);
        take(event);
      });
    hear("class", (event) => this.takeView(JSON.parse(event.data)));
    hear("shown", (event) => this.later(() => this.startRun(JSON.parse(event.data))));
    for (const name of RUN_EVENTS) hear(name, (event) => this.later(() => this.takeRun(name, event)));
    this.source.onopen = () => this.setLost(false);
    this.source.onerror = () => this.lose();
  }

  takeView(view) {
    if (view.server_s) this.offsetS = view.server_s - Date.now() / 1000;
    this.on.view?.(view);
  }

  // `showing` counts: the same run shown once more is another one. After a loss the same showing may be told from its beginning.
  startRun({ run_id: runId, showing = (this.run?.number ?? 0) + 1 }) {
    if (runId && this.run?.id === runId && this.run.number === showing) return;
    this.run = runId ? { id: runId, number: showing, events: [], last: 0, take: null } : null;
    this.on.shown?.(runId);
  }

  takeRun(name, event) {
    const { run } = this;
    if (!run) return;
    // "version.showing.number": an event without a number, as the place in the queue, has none in the run either.
    const id = Number(event.lastEventId.split(".")[2]) || 0;
    if (name !== "state" && id && id <= run.last) return;
    run.last = Math.max(run.last, id);
    const entry = [id, name, JSON.parse(event.data)];
    run.events.push(entry);
    run.take?.(...entry);
    this.on.event?.(name, entry[2]);
  }

  // A connection for one showing of the run, in the shape that the live picture asks for.
  connection() {
    const { run } = this;
    return (runId, onEvent, onChange) => {
      const feed = { lost: false, unknown: false, retryS: 0, open: () => this.open(), close: () => {} };
      if (!run || run.id !== runId) return feed;
      queueMicrotask(() => {
        for (const entry of run.events) onEvent(...entry);
        run.take = onEvent;
      });
      feed.close = () => {
        run.take = null;
      };
      this.tell = () => {
        feed.lost = this.lost;
        onChange();
      };
      return feed;
    };
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

  setLost(lost) {
    if (!lost) this.tries = 0;
    if (this.lost === lost) return;
    this.lost = lost;
    this.tell?.();
    this.on.changed?.();
  }

  // The browser comes back by itself and says what it saw last, unless it was refused: then we do.
  lose() {
    if (this.source.readyState === EventSource.CLOSED) {
      const waitS = Math.min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** this.tries);
      this.tries += 1;
      this.timer = setTimeout(() => this.open(), waitS * 1000);
    }
    this.setLost(true);
  }

  close() {
    clearTimeout(this.timer);
    this.source.close();
  }

  // Unix seconds by the server's clock.
  get nowS() {
    return Date.now() / 1000 + this.offsetS;
  }
}
