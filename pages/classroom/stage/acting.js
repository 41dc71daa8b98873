// What the instructor does, sent to the class: one press, one change. Owns the sending, what keeps a press from counting twice, and the
// words when something was not done. Draws nothing.

const TWICE_MS = 500;
const LATE_MS = 6_000;
const TOLD_MS = 2_000;

export class Acting {
  // `on` holds view(), which is the latest, and say(words, tone).
  constructor(base, on) {
    this.base = base;
    this.on = on;
    this.movedAt = -Infinity;
    this.moved = "";
    this.moving = false;
    this.version = 0;
  }

  // A step of the class. It names the version it was meant for, so that the second of two presses changes nothing.
  async move(action, more = {}) {
    if (this.moving || (action === this.moved && performance.now() - this.movedAt < TWICE_MS)) {
      this.on.say("Pressed twice within half a second: it counted once.", "info");
      return false;
    }
    this.moving = true;
    this.moved = action;
    this.movedAt = performance.now();
    try {
      return await this.moveFrom(action, more, this.on.view());
    } finally {
      this.moving = false;
      this.movedAt = performance.now();
    }
  }

  async moveFrom(action, more, before) {
    if (!before) return this.refuse("Not sent: the class is not here yet.");
    const place = (view) => `${view.state} ${view.item?.no ?? 0}`;
    for (let tries = 0; tries < 2; tries++) {
      const answer = await this.send("do", { action, ...more, expect_version: Math.max(this.version, this.on.view().version) });
      if (answer.ok) return this.done();
      if (answer.status !== 409) return this.refuse(answer.words);
      // Something else has changed meanwhile. Where the class stands where it stood, the press means what it meant.
      this.version = answer.body.version ?? 0;
      if (!this.version || !(await this.arrived(this.version)) || place(this.on.view()) !== place(before)) break;
    }
    return this.refuse("The class had gone on already, from here or another console. Nothing was changed; look where it stands and press again.");
  }

  // Whether this page has been told how the class stands at `version`.
  async arrived(version) {
    for (let waited = 0; waited < TOLD_MS; waited += 50) {
      if (this.on.view().version >= version) return true;
      await new Promise((wake) => setTimeout(wake, 50));
    }
    return false;
  }

  // What may be done at any time and twice without harm: blank, freeze, names, a run.
  async act(action, more = {}) {
    let answer = await this.send("do", { action, ...more });
    if (answer.status === 409) answer = await this.send("do", { action, ...more }); // two of us in the same instant
    return answer.ok ? this.done() : this.refuse(answer.words);
  }

  async post(path, body) {
    const answer = await this.send(path, body);
    return answer.ok ? this.done() : this.refuse(answer.words);
  }

  done() {
    this.on.say("", "done");
    return true;
  }

  refuse(words) {
    this.on.say(words, "bad");
    return false;
  }

  async send(path, body) {
    const headers = { "Content-Type": "application/json" };
    const options = { method: "POST", headers, body: JSON.stringify(body), credentials: "same-origin", signal: AbortSignal.timeout(LATE_MS) };
    let answer;
    try {
      answer = await fetch(new URL(path, this.base), options);
    } catch (fault) {
      const late = fault.name === "TimeoutError";
      return { ok: false, status: 0, body: {}, words: late ? "No answer in 6 s. See below whether it was done, and press again if not." : "Not sent: no connection to the server. Press again when it is back." };
    }
    const told = await answer.json().catch(() => ({}));
    if (answer.ok && told.version) this.version = Math.max(this.version, told.version);
    return { ok: answer.ok, status: answer.status, body: told, words: refusalWords(answer.status, told) };
  }
}

function refusalWords(status, told) {
  if (status === 401) return "You are not signed in as an instructor any more. Sign in again in another tab, then press again.";
  if (told.reason === "late") return told.words;
  if (status === 503) return `Not done: ${told.words ?? "the server is busy."} Press again in a moment.`;
  return `Not done. ${told.words ?? `The server answered ${status}.`}`;
}
