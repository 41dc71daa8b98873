// The phone's sign of life: a phone that vanishes closes no line, so the server is told now and then that this one is there. What comes
// over the line asks for it, a beat at the least: a tab in the background is woken by it, where its timers sleep.

const EVERY_MS = 14_000; // the server says something at least every 15 s
const SPREAD_MS = 5_000; // a beat reaches the whole class at the same moment

export class Sign {
  constructor(server) {
    this.server = server;
    this.delayMs = SPREAD_MS * Math.random();
    this.askedAt = -Infinity;
  }

  // Something came over the line.
  hear() {
    const now = Date.now();
    if (now - this.askedAt < EVERY_MS) return;
    this.askedAt = now;
    if (document.hidden) this.server.here();
    else setTimeout(() => this.server.here(), this.delayMs);
  }
}
