// The audience's page: from the code to the end of a class. Owns which screen is shown, the focus, and the bar at the bottom.

import { button, html, setAttribute, setText, show } from "../../components/lanes/dom.js";
import { Clock, minutes } from "./clock.js";
import { closedDoor, codeDoor, joinDoor, normal } from "./doors.js";
import { ClassFeed } from "../shared/feed.js";
import { Memory } from "./memory.js";
import { Outbox } from "./outbox.js";
import { SCREENS, gone } from "./screens.js";
import { Server, refusal } from "./server.js";
import { Sign } from "./sign.js";
import { Speaker } from "./speaker.js";
import { Stage } from "./stage.js";

const WITHOUT_ITEM = ["lobby", "ended"];
const AGAIN_S = { offline: 3, full: 30, busy: 30 };
const LAST_SECONDS = 10;

class Phone {
  constructor() {
    const [way, code = ""] = location.pathname.match(/c(?:\/([^/]*))?\/?$/);
    this.base = location.pathname.slice(0, -way.length); // "/", or what a proxy puts before it
    this.code = normal(code);
    this.head = document.getElementById("head");
    this.rest = document.getElementById("rest");
    this.dock = new Dock(document.getElementById("dock"), () => this.feed?.open());
    this.speaker = new Speaker(document.getElementById("say"));
    const { lanes, lanesStyle } = document.body.dataset;
    const files = { script: new URL(lanes, document.baseURI).href, style: new URL(lanesStyle, document.baseURI).href };
    this.stage = new Stage(document.getElementById("stage"), files, { say: (text) => this.speaker.say(text), over: () => this.redraw() });
    this.clock = new Clock();
    this.view = null;
    this.run = null;
    if (!this.code || document.body.dataset.door === "unknown") {
      this.show(() => codeDoor(this, this.base, this.code));
      return;
    }
    this.server = new Server(this.base, this.code);
    this.sign = new Sign(this.server);
    this.memory = new Memory(this.code, () => this.redraw());
    this.outbox = new Outbox(this.server, this.memory, { change: () => this.voted(), refused: (answer) => this.refused(answer) });
    addEventListener("online", () => this.outbox.nudge());
    setInterval(() => this.tick(), 250);
    // Whoever was here before is asked for nothing; others see the way in at once, without asking the server first.
    if (this.memory.get("joined") || !this.memory.lasts) this.enter();
    else this.askToJoin();
  }

  // A screen: `build()` fills head and rest and gives {title, update}. The focus goes to its heading.
  show(build) {
    const first = !this.screen;
    this.screen?.destroy?.();
    this.head.replaceChildren();
    this.rest.replaceChildren();
    this.screen = build();
    const { title } = this.screen;
    document.title = `${title.textContent} · Shardlab`;
    if (first) return;
    scrollTo(0, 0);
    title.focus({ preventScroll: true });
  }

  askToJoin() {
    this.close();
    this.show(() => joinDoor(this, this.code, this.memory.get("nickname"), (nickname, say) => this.join(nickname, say)));
  }

  // Joins, as often as it takes where nobody answers. Gives a sentence about the nickname, or null.
  async join(nickname, say) {
    for (let tries = 0; ; tries += 1) {
      const answer = await this.server.join(nickname);
      if (answer.status === 200) {
        this.memory.set("joined", true);
        this.memory.set("nickname", nickname || null);
        this.take(answer.data, true);
        return null;
      }
      const reason = refusal(answer);
      if (reason && reason !== "join") {
        this.shut(reason, answer.data.words);
        return null;
      }
      if (answer.status && answer.status < 500) return String(answer.data.words ?? "The class did not take this nickname. Try another one, or none.");
      const waitS = Math.min(8, answer.waitS || 2 * (tries + 1));
      say(answer.status ? `Many are joining at once. Your turn comes in ${waitS} s.` : `No connection. Trying again in ${waitS} s.`);
      await new Promise((done) => setTimeout(done, waitS * 1000));
      say("");
    }
  }

  // Who is known already: the server tells where the class is.
  async enter() {
    clearTimeout(this.again);
    if (!this.screen) this.show(() => closedDoor(this, "wait", this.code));
    const answer = await this.server.view();
    if (answer.status === 200) this.take(answer.data, true);
    else this.refused(answer);
  }

  // The server does not count this phone in. One that had joined joins again by itself: a cookie may have been lost.
  async refused(answer) {
    const reason = refusal(answer);
    if (answer.data.reason === "superseded") this.check();
    else if (reason === "join" && this.rejoining) return; // the vote and the line are refused together
    else if (reason === "join" && this.memory.get("joined")) {
      this.memory.set("joined", null);
      this.rejoining = true;
      const said = await this.join(this.memory.get("nickname"), () => {});
      this.rejoining = false;
      if (said) this.askToJoin();
      else this.outbox.nudge();
    } else if (reason === "join") this.askToJoin();
    else if (reason) this.shut(reason, answer.data.words);
    else if (!this.view) this.shut("offline");
  }

  shut(reason, words) {
    this.close();
    if (reason === "unknown") {
      this.memory.set("joined", null);
      this.show(() => codeDoor(this, this.base, this.code));
      return;
    }
    const again = () => (this.memory.get("joined") || !this.memory.lasts ? this.enter() : this.askToJoin());
    if (this.shown !== reason) this.show(() => closedDoor(this, reason, this.code, { again, words }));
    this.shown = reason;
    clearTimeout(this.again);
    if (AGAIN_S[reason]) this.again = setTimeout(again, AGAIN_S[reason] * 1000);
  }

  close() {
    this.feed?.close();
    this.feed = null;
    this.view = null;
    this.run = null;
    this.shown = null;
    this.stage.update(null, null);
    this.dock.update({});
  }

  connect() {
    this.feed = new ClassFeed(this.server.streamUrl(), {
      view: (view, fresh) => this.take(view, fresh, fresh),
      shown: (run) => {
        this.run = run;
        this.stage.update(this.view, this.run);
        this.redraw();
      },
      change: () => {
        if (!this.feed?.lost) this.outbox.nudge();
        this.tick();
      },
      heard: () => this.sign.hear(),
      refused: () => this.check(),
      check: () => this.check(),
    });
  }

  async check() {
    const answer = await this.server.view();
    if (answer.status === 200) this.take(answer.data, true);
    else if (refusal(answer)) this.refused(answer);
    return answer.status === 200;
  }

  // A view of the class. `fresh`: made after what this phone had been told was recorded. Those of one connection come in order, and an
  // answer to a question may be overtaken by them; a new connection is believed whatever it says.
  take(view, fresh, begins = false) {
    if (this.view && !begins && view.version < this.view.version) return;
    view.me ??= { nickname: this.view?.me?.nickname ?? null, votes: this.view?.item?.no === view.item?.no ? (this.view?.me?.votes ?? {}) : {} };
    this.view = view;
    this.clock.set(view.server_s);
    this.outbox.settle(view, fresh);
    this.draw();
    if (!this.feed && this.view) this.connect();
  }

  // The outbox changed: what is acknowledged is known to be there, without waiting to be told.
  voted() {
    const { vote } = this.outbox;
    if (vote?.sent && this.view?.item?.no === vote.item_no) this.view.me.votes[vote.round] = vote.choice;
    this.redraw();
  }

  redraw() {
    if (!this.view) return;
    this.screen.update?.(this.view);
    this.tick();
  }

  draw() {
    const { view } = this;
    const shown = `${view.state}/${view.item?.no ?? 0}`;
    if (shown !== this.shown) {
      this.shown = shown;
      const screen = view.item || WITHOUT_ITEM.includes(view.state) ? SCREENS[view.state] : gone;
      this.show(() => screen(this, view, { outbox: this.outbox, stage: this.stage, base: this.base }));
    }
    this.stage.update(view, this.run);
    this.redraw();
    document.title = `${this.screen.title.textContent} · Shardlab`;
  }

  // The bar at the bottom: the state of the answer, the time left, and the connection.
  tick() {
    const { view, feed } = this;
    if (!view) return;
    const left = view.may_vote ? this.clock.left(view.closes_s) : null;
    if (left == null || left > LAST_SECONDS) this.warned = false;
    else if (!this.warned) {
      this.warned = true;
      this.speaker.say(`${left} seconds left`);
    }
    const [tone, text] = this.answerWords(view);
    if (text && text !== this.saidAnswer) this.speaker.say(text);
    this.saidAnswer = text;
    this.dock.update({ tone, text, left, lostS: feed?.lost ? feed.retryS : null });
    if (feed?.lost && !this.saidLost) this.speaker.say("Connection lost. Trying again.");
    this.saidLost = Boolean(feed?.lost);
  }

  answerWords(view) {
    if (!view.round) return [null, ""];
    const status = this.outbox.status(view);
    if (status === "waiting") return ["waiting", this.outbox.tries || this.feed?.lost ? "Not sent yet, trying again" : "Not sent yet"];
    if (!view.may_vote) return status === "missed" ? ["bad", "The vote closed before your answer arrived."] : ["closed", "The vote is closed."];
    if (status === "sent") return ["sent", "Sent. You can still change it."];
    return ["open", view.round === "predict" ? "Tap a picture" : "Tap your answer"];
  }
}

class Dock {
  constructor(node, retry) {
    this.node = node;
    this.line = html("div", "line", node);
    this.lineText = html("span", "", this.line);
    button("Retry now", "link", this.line, retry);
    this.bar = html("div", "status", node);
    this.mark = html("span", "mark", this.bar);
    this.mark.setAttribute("aria-hidden", "true");
    this.text = html("span", "", this.bar);
    this.left = html("span", "left", this.bar);
    this.left.setAttribute("role", "timer");
    this.update({});
  }

  update({ tone, text, left, lostS }) {
    show(this.line, lostS != null);
    setText(this.lineText, lostS ? `Connection lost, retrying in ${lostS}\u00a0s` : "Connection lost, retrying now");
    show(this.bar, Boolean(text));
    setText(this.text, text ?? "");
    setAttribute(this.bar, "data-tone", tone ?? "");
    show(this.left, left != null);
    if (left != null) setText(this.left, minutes(left));
    this.left.classList.toggle("last", left != null && left <= LAST_SECONDS);
    const used = lostS != null || Boolean(text);
    show(this.node, used);
    document.body.classList.toggle("docked", used);
  }
}

export const phone = new Phone();
