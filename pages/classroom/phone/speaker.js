// What a screen reader is told beside where the focus goes: the latest sentence, at most once in five seconds.

const REST_MS = 5_000;

export class Speaker {
  constructor(node) {
    this.node = node;
    this.spokenAt = -Infinity;
    this.timer = 0;
  }

  say(text) {
    this.text = text;
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      if (!this.text || this.text === this.node.textContent) return;
      this.spokenAt = performance.now();
      this.node.textContent = this.text;
    }, Math.max(0, this.spokenAt + REST_MS - performance.now()));
  }
}
