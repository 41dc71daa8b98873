// The one connection of a class page: views of the class, and the events of the run that is on screen. Owns opening, waiting for the
// next try, and noticing that a line is dead: after sleep, with a new address, or in silence. Draws nothing.

const RUN_EVENTS = ["head", "state", "tick", "strip", "lane", "end"];
const RETRY_S = [2, 4, 8, 15];
const SPREAD = 0.3; // a whole class loses a server at the same moment, and must not come back at the same moment
const SILENT_MS = 40_000; // the server says at least every 15 s that the line is alive
const MUTE_MS = 4_500;
const ASLEEP_MS = 4_000;

export class ClassFeed {
  // `on`: view(view, fresh), shown(run) when another run is on screen, change() when the line came or went, refused() when the
  // server answers without a stream, heard() with whatever comes, where that is of interest, check() -> promise of true when the server
  // answers, asked while nothing comes over the line.
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.run = null;
    this.tries = 0;
    this.lost = false;
    this.over = false;
    this.retryAt = 0;
    this.heardAt = Date.now();
    this.hiddenAt = null;
    this.listen = new AbortController();
    const signal = { signal: this.listen.signal };
    document.addEventListener("visibilitychange", () => this.wake(), signal);
    addEventListener("online", () => this.open(), signal);
    addEventListener("pageshow", (event) => event.persisted && this.open(), signal);
    this.network = navigator.connection?.type;
    navigator.connection?.addEventListener?.("change", () => this.roam(), signal);
    this.watch = setInterval(() => this.listenFor(), 5_000 + Math.random() * 5_000);
    this.open();
  }

  // A new connection at once, in place of whatever there is.
  open() {
    clearTimeout(this.timer);
    this.source?.close();
    if (this.over) return;
    this.fresh = true;
    this.heardAt = Date.now();
    // A browser that comes back by itself says what it saw last; this one says it in the address.
    const source = new EventSource(this.lastId ? `${this.url}&last=${encodeURIComponent(this.lastId)}` : this.url);
    this.source = source;
    source.addEventListener("class", (event) => this.takeView(JSON.parse(event.data)));
    source.addEventListener("shown", (event) => this.takeShown(JSON.parse(event.data)));
    source.addEventListener("beat", () => this.hear());
    for (const name of RUN_EVENTS) source.addEventListener(name, (event) => this.takeRun(name, event));
    source.onopen = () => this.hear();
    source.onerror = () => source === this.source && this.lose();
  }

  hear() {
    this.heardAt = Date.now();
    this.tries = 0;
    this.on.heard?.();
    if (!this.lost) return;
    this.lost = false;
    this.changed();
  }

  takeView(view) {
    this.hear();
    this.on.view(view, this.fresh);
    this.fresh = false;
  }

  // What comes from now on belongs to this run. After a new connection it is told again from its beginning.
  takeShown({ run_id: runId, showing }) {
    this.hear();
    const name = runId == null ? null : `${runId}/${showing ?? 0}`;
    if (name === (this.run?.name ?? null)) return;
    this.run = name === null ? null : new ShownRun(name, runId, this);
    this.on.shown(this.run);
  }

  takeRun(name, event) {
    this.hear();
    this.lastId = event.lastEventId;
    this.run?.take(Number(event.lastEventId.split(".").pop()) || 0, name, JSON.parse(event.data));
  }

  lose() {
    const refused = this.source.readyState === EventSource.CLOSED;
    this.source.close();
    if (this.over) return;
    if (refused) this.on.refused();
    const waitMs = RETRY_S[Math.min(this.tries, RETRY_S.length - 1)] * 1000 * (1 - SPREAD * Math.random());
    this.tries += 1;
    this.retryAt = performance.now() + waitMs;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), waitMs);
    this.lost = true;
    this.changed();
  }

  changed() {
    this.on.change();
    this.run?.onChange?.();
  }

  // A phone that slept holds a line that the server closed long ago, and is told by nobody. Clocks but the one on the wall sleep too.
  wake() {
    if (document.hidden) this.hiddenAt = Date.now();
    else if (this.lost || (this.hiddenAt != null && Date.now() - this.hiddenAt > ASLEEP_MS)) this.open();
  }

  // From Wi-Fi to the cell and back. The same event tells every new estimate of the speed, which is no reason to begin anew.
  roam() {
    if (navigator.connection.type === this.network) return;
    this.network = navigator.connection.type;
    this.open();
  }

  // A line on which not even a beat was heard is dead, and is opened anew. Where a proxy holds the stream back, not even the first view
  // comes: then the page asks every few seconds.
  async listenFor() {
    const silentMs = Date.now() - this.heardAt;
    if (this.over || this.lost || document.hidden || silentMs < (this.fresh ? MUTE_MS : SILENT_MS)) return;
    this.heardAt = Date.now();
    if (!this.fresh || (!(await this.on.check()) && !this.over && !this.lost)) this.open();
  }

  get retryS() {
    return Math.max(0, Math.ceil((this.retryAt - performance.now()) / 1000));
  }

  close() {
    this.over = true;
    this.lost = false;
    clearTimeout(this.timer);
    clearInterval(this.watch);
    this.listen.abort();
    this.source?.close();
  }
}

// The run on screen. Keeps its events until the picture, which is loaded only when there is something to see, asks for them.
class ShownRun {
  constructor(name, runId, line) {
    this.name = name;
    this.runId = runId;
    this.line = line;
    this.events = [];
    this.lastId = 0;
  }

  take(id, name, data) {
    if (id && id <= this.lastId) return;
    this.lastId = Math.max(this.lastId, id);
    this.events.push([id, name, data]);
    this.onEvent?.(id, name, data);
  }

  // What the lanes take in place of a connection of their own.
  feed(onEvent, onChange) {
    const { line } = this;
    this.onEvent = onEvent;
    this.onChange = onChange;
    queueMicrotask(() => {
      for (const event of this.events) onEvent(...event);
    });
    return {
      get lost() {
        return line.lost;
      },
      get retryS() {
        return line.retryS;
      },
      unknown: false,
      open: () => line.open(),
      close: () => {
        this.onEvent = this.onChange = null;
      },
    };
  }
}
