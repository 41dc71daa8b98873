// The connection to a run's events. Owns opening, closing and counting down to the next try; keeps no event.

const EVENTS = ["head", "state", "tick", "strip", "lane", "end"];
const FIRST_RETRY_S = 2;
const LAST_RETRY_S = 30;

export class Feed {
  // `onEvent(id, name, data)`, `onChange()` when the connection came or went.
  constructor(url, onEvent, onChange) {
    this.url = url;
    this.onEvent = onEvent;
    this.onChange = onChange;
    this.tries = 0;
    this.everOpen = false;
    this.lost = false;
    this.over = false;
    this.missing = false;
    this.retryAt = 0;
    this.timer = 0;
    this.open();
  }

  open() {
    clearTimeout(this.timer);
    this.source?.close();
    if (this.over) return;
    // A fresh one each time, because the browser's own retries tell nobody when they come. What was seen already is
    // recognised by its id.
    this.source = new EventSource(this.url);
    for (const name of EVENTS) this.source.addEventListener(name, (event) => this.take(name, event));
    this.source.onopen = () => this.setLost(false);
    this.source.onerror = () => this.lose();
  }

  take(name, event) {
    this.everOpen = true;
    this.setLost(false);
    this.onEvent(Number(event.lastEventId) || 0, name, JSON.parse(event.data));
    if (name === "end") this.close();
  }

  setLost(lost) {
    if (!lost) this.tries = 0;
    if (this.lost === lost) return;
    this.lost = lost;
    this.onChange();
  }

  lose() {
    // Closed for good: the server answered, but not with a stream. An EventSource hides what it said.
    const refused = this.source?.readyState === EventSource.CLOSED;
    this.source?.close();
    if (this.over) return;
    if (refused) this.ask();
    const wait = Math.min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** this.tries);
    this.tries += 1;
    this.retryAt = performance.now() + wait * 1000;
    this.timer = setTimeout(() => this.open(), wait * 1000);
    this.lost = true;
    this.onChange();
  }

  async ask() {
    const asked = new AbortController();
    const answer = await fetch(this.url, { signal: asked.signal, headers: { accept: "text/event-stream" } }).catch(() => null);
    asked.abort();
    if (this.over || !this.lost || (answer?.status !== 404 && answer?.status !== 204)) return;
    clearTimeout(this.timer);
    this.over = true;
    this.missing = answer.status === 404;
    this.lost = false;
    this.onChange();
  }

  // The server does not know this run: it says so, or never said a word in three tries.
  get unknown() {
    return this.missing || this.silent;
  }

  get silent() {
    return this.lost && !this.everOpen && this.tries >= 3;
  }

  get retryS() {
    return Math.max(0, Math.ceil((this.retryAt - performance.now()) / 1000));
  }

  close() {
    this.over = true;
    this.lost = false;
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }
}

// The address of the feed. Under Streamlit the page may lie deeper than the app, so its scripts tell where the app begins.
export function liveUrl(options, runId) {
  const script = document.querySelector('script[src*="/static/js/"]');
  const base = script ? script.src.split("static/js/")[0] : new URL("/", location.href).href;
  const url = new URL(options.live_url ?? "live", base);
  url.searchParams.set("run", runId);
  return url.href;
}
