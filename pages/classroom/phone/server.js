// Asking the server. Every answer has a status; 0 means that there was none, whatever the reason.

const LIMIT_MS = 8_000;

export class Server {
  // `base` is where the app begins: "/" or what a proxy puts before it.
  constructor(base, code) {
    this.base = base;
    this.code = code;
  }

  view() {
    return this.ask(`c/${this.code}/view`);
  }

  join(nickname) {
    return this.ask(`c/${this.code}/join`, nickname ? { nickname } : {});
  }

  vote(vote) {
    return this.ask(`c/${this.code}/vote`, { round: vote.round, item_no: vote.item_no, choice: vote.choice });
  }

  // That this phone is there.
  here() {
    return this.ask(`c/${this.code}/here`, {});
  }

  streamUrl() {
    return `${this.base}live?class=${this.code}`;
  }

  async ask(path, body) {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), LIMIT_MS);
    const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), keepalive: true };
    try {
      const answer = await fetch(this.base + path, { credentials: "same-origin", cache: "no-store", signal: limit.signal, ...(body ? post : {}) });
      const data = await answer.json().catch(() => ({}));
      return { status: answer.status, data: data ?? {}, waitS: Number(answer.headers.get("retry-after")) || 0 };
    } catch {
      return { status: 0, data: {}, waitS: 0 };
    } finally {
      clearTimeout(timer);
    }
  }
}

// Why somebody cannot take part: "unknown", "removed", "full", "busy" (their network is), "join" (not a participant yet), or null for
// anything that passes.
export function refusal({ status, data }) {
  const { reason } = data;
  if (status === 404) return "unknown";
  if (reason === "removed" || reason === "full") return reason;
  if (status === 429) return "busy";
  if (status === 401 || status === 403) return "join";
  return null;
}
