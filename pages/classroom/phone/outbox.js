// The answer that this phone gives: chosen here, sent until the server says that it has it. One request at a time, so that an older
// choice never arrives after a newer one; sent again as often as it takes, which is safe because the same vote counts once.

const WAITS_S = [1, 2, 4, 8];

export class Outbox {
  // `on`: change(), refused(answer) where it is not this phone's answer that counts, or nobody's from this phone.
  constructor(server, memory, on) {
    this.server = server;
    this.memory = memory;
    this.on = on;
    this.tries = 0;
    this.missed = null;
    this.again = false;
  }

  // {round, item_no, choice, sent}, or null.
  get vote() {
    return this.memory.get("vote");
  }

  put(vote) {
    this.memory.set("vote", vote);
    this.on.change();
  }

  choose(round, itemNo, choice) {
    const { vote } = this;
    if (vote?.choice === choice && vote.round === round && vote.item_no === itemNo && vote.sent) return;
    this.missed = null;
    this.again = false;
    this.tries = 0;
    this.put({ round, item_no: itemNo, choice, sent: false });
    this.send();
  }

  // What is chosen in this round: here if not there yet, else as the server knows it.
  choice(view) {
    const { vote } = this;
    return vote && isOpen(vote, view) ? vote.choice : (view.me?.votes?.[view.round] ?? null);
  }

  async send() {
    clearTimeout(this.timer);
    const { vote } = this;
    if (this.busy || !vote || vote.sent) return;
    this.busy = true;
    const answer = await this.server.vote(vote);
    this.busy = false;
    const latest = this.vote;
    if (!latest) return;
    if (!same(latest, vote)) {
      this.send();
      return;
    }
    if (answer.status === 200) {
      this.tries = 0;
      this.put({ ...vote, sent: true });
    } else if (answer.data.reason === "superseded") {
      this.put(null); // this participant voted on another device meanwhile, and that is what counts
      this.on.refused(answer);
    } else if (answer.status === 409 || answer.status === 422) {
      this.miss(vote);
    } else if ([401, 403, 404].includes(answer.status)) {
      this.on.refused(answer);
    } else {
      this.wait(answer.waitS);
    }
  }

  wait(seconds) {
    const waitS = seconds || WAITS_S[Math.min(this.tries, WAITS_S.length - 1)];
    this.tries += 1;
    this.timer = setTimeout(() => this.send(), waitS * 1000 + Math.random() * 400);
    this.on.change();
  }

  // Something that was waiting may get through now.
  nudge() {
    if (this.vote && !this.vote.sent) this.send();
  }

  miss(vote) {
    this.missed = vote;
    this.put(null);
  }

  // Compare with a view. `fresh`: one that was made after whatever this phone had been told was recorded.
  settle(view, fresh) {
    const { vote } = this;
    if (!vote) return;
    const theirs = view.item?.no === vote.item_no ? (view.me?.votes?.[vote.round] ?? null) : null;
    if (!isOpen(vote, view)) {
      if (this.busy) return; // its answer will tell
      if (vote.sent || theirs === vote.choice || view.item?.no !== vote.item_no) this.put(null);
      else this.miss(vote);
    } else if (theirs === vote.choice && !vote.sent && !this.busy) {
      this.put({ ...vote, sent: true });
    } else if (fresh && vote.sent && theirs !== vote.choice && !this.again) {
      // The server lost it, or has an older one: once more, but not for ever.
      this.again = true;
      this.put({ ...vote, sent: false });
      this.send();
    } else if (fresh) {
      this.nudge();
    }
  }

  // What to say of the vote that is open in `view`: "none", "waiting", "sent" or "missed".
  status(view) {
    const { vote } = this;
    if (vote && isOpen(vote, view)) return vote.sent ? "sent" : "waiting";
    if (this.missed && this.missed.item_no === view.item?.no) return "missed";
    return view.round && view.me?.votes?.[view.round] ? "sent" : "none";
  }
}

function isOpen(vote, view) {
  return Boolean(view.may_vote) && view.round === vote.round && view.item?.no === vote.item_no;
}

function same(a, b) {
  return a.round === b.round && a.item_no === b.item_no && a.choice === b.choice;
}
