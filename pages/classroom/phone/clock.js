// The server's time on this phone, whose own clock may be wrong.

export class Clock {
  constructor() {
    this.offset = -Infinity;
  }

  // A view is made once for all and may be on its way for a while: both make the server's time seem earlier, so the latest counts.
  set(serverS) {
    if (Number.isFinite(serverS)) this.offset = Math.max(this.offset, serverS - Date.now() / 1000);
  }

  // Whole seconds until `untilS`, at least 0; null where there is no end.
  left(untilS) {
    if (untilS == null) return null;
    const offset = Number.isFinite(this.offset) ? this.offset : 0;
    return Math.max(0, Math.ceil(untilS - offset - Date.now() / 1000));
  }
}

export function minutes(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
