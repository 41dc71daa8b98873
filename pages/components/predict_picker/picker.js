// Makes the five pictures a radio group: one stop for Tab, arrow keys move and choose.

const KEY_REST_MS = 300;
const MOVES = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

class Picker {
  constructor(group) {
    this.group = group;
    this.choices = [...group.querySelectorAll(".sl-pick")];
    this.picked = null;
    this.told = null;
    group.addEventListener("click", (event) => {
      const choice = event.target.closest(".sl-pick");
      if (choice && !choice.disabled) this.pick(choice);
    });
    group.addEventListener("keydown", (event) => this.key(event));
  }

  update({ data, setStateValue }) {
    this.report = setStateValue;
    this.group.setAttribute("aria-label", data.label);
    this.group.setAttribute("aria-disabled", String(Boolean(data.disabled)));
    for (const choice of this.choices) choice.disabled = Boolean(data.disabled);
    this.picked ??= this.choices.find((choice) => choice.dataset.id === data.selected) ?? null;
    this.mark();
  }

  key(event) {
    const at = this.choices.indexOf(event.target);
    if (at < 0 || !(event.key in MOVES)) return;
    event.preventDefault();
    const next = this.choices[(at + MOVES[event.key] + this.choices.length) % this.choices.length];
    next.focus();
    // The page reruns once the keys rest, not at every picture on the way.
    this.pick(next, KEY_REST_MS);
  }

  // Without `restMs` it is told at once: a timer, however short, would be lost where the pictures go away right after the click.
  pick(choice, restMs) {
    this.picked = choice;
    this.mark();
    clearTimeout(this.resting);
    if (restMs) this.resting = setTimeout(() => this.tell(choice), restMs);
    else this.tell(choice);
  }

  tell(choice) {
    if (this.told === choice) return;
    this.told = choice;
    this.report("picked", choice.dataset.id);
  }

  mark() {
    for (const choice of this.choices) {
      choice.setAttribute("aria-checked", String(choice === this.picked));
      choice.tabIndex = choice === (this.picked ?? this.choices[0]) ? 0 : -1;
    }
  }
}

// Streamlit calls this at every rerun with the same element.
export default function (component) {
  const group = component.parentElement.querySelector(".sl-picks");
  group.slPicker ??= new Picker(group);
  group.slPicker.update(component);
  return () => clearTimeout(group.slPicker?.resting);
}
