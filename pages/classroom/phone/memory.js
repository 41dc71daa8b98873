// What this phone remembers of a class: that it joined, and an answer that may not have arrived. Works without storage too.

export class Memory {
  // `onOther()`: another tab of this browser wrote. All tabs are one participant, because they share its cookie.
  constructor(code, onOther) {
    this.key = `shardlab.class.${code}`;
    this.lasts = true;
    this.values = this.read();
    addEventListener("storage", (event) => {
      if (event.key !== this.key) return;
      this.values = this.read();
      onOther();
    });
  }

  read() {
    try {
      return JSON.parse(localStorage.getItem(this.key) ?? "{}") ?? {};
    } catch {
      this.lasts = false;
      return this.values ?? {};
    }
  }

  get(name) {
    return this.values[name] ?? null;
  }

  set(name, value) {
    this.values[name] = value;
    try {
      localStorage.setItem(this.key, JSON.stringify(this.values));
    } catch {
      this.lasts = false;
    }
  }
}
