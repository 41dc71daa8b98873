// What somebody sees who does not take part, yet or any more: the code, the way in, and why there is none.

import { button, html, setText, show } from "../../components/lanes/dom.js";
import { brand, heading } from "./parts.js";

const CODE = /^[23456789ABCDEFGHJKMNPQRSTVWXYZ]{6}$/;
const LONGEST_NAME = 24;

export function normal(code) {
  return code.toUpperCase().replace(/[^A-Z0-9]/g, "");
}

// Asks for the code of a class. `wrong` is one that no class has.
export function codeDoor({ head, rest }, base, wrong) {
  brand(head);
  const { head: title } = heading(head, "", "Join a class");
  const form = html("form", "door", rest);
  const fault = html("p", "warn", form, wrong ? `There is no class with the code ${wrong}. Look at the screen in front again.` : "");
  fault.id = "fault";
  const input = field(form, "Code of the class", { id: "code", autocapitalize: "characters", autocomplete: "off", spellcheck: "false", maxlength: "8", inputmode: "text", "aria-describedby": "fault" });
  input.classList.add("code");
  html("button", "button primary", form, "Go on").type = "submit";
  html("p", "note", rest, "The code has six letters and digits, and is on the screen in front.");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const code = normal(input.value);
    if (CODE.test(code)) location.assign(`${base}c/${code}`);
    else {
      setText(fault, code ? "A code has six letters and digits, without I, L, O, U, 0 and 1." : "Type the code first.");
      show(fault, true);
      input.focus();
    }
  });
  show(fault, Boolean(wrong));
  return { title };
}

// The way in: one button, and a name for those who like to have one. `join(nickname)` -> promise of a sentence that says what is
// wrong with it, or null.
export function joinDoor({ head, rest }, code, nickname, join) {
  brand(head);
  const { head: title } = heading(head, `Class ${code}`, "Join the class");
  const form = html("form", "door", rest);
  const input = field(form, "Nickname, if you like", { id: "nickname", autocomplete: "nickname", maxlength: String(LONGEST_NAME), enterkeyhint: "go", "aria-describedby": "fault name-note" });
  input.value = nickname ?? "";
  html("p", "note", form, "Only the instructor sees it, unless the class is shown by name.").id = "name-note";
  const fault = html("p", "warn", form, "");
  fault.id = "fault";
  fault.setAttribute("role", "alert");
  show(fault, false);
  const go = html("button", "button primary", form, "Join");
  go.type = "submit";
  html("p", "note", rest, "No account, and nothing to install. This device is known by a random number only.");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (go.getAttribute("aria-disabled") === "true") return;
    go.setAttribute("aria-disabled", "true");
    setText(go, "Joining");
    const said = await join(input.value.trim(), (text) => {
      setText(fault, text);
      show(fault, Boolean(text));
    });
    go.removeAttribute("aria-disabled");
    setText(go, "Join");
    setText(fault, said ?? "");
    show(fault, Boolean(said));
  });
  return { title };
}

const CLOSED = {
  removed: ["You are no longer in this class", "The instructor has taken this phone off the list. If that was a mistake, speak to them.", null],
  full: ["The class is full", "Nobody more can join at the moment. You can still follow it on the screen in front; this page tries again by itself.", "Try again"],
  busy: ["Please wait a moment", "Too many come from this network at once. This page tries again by itself.", "Try again"],
  wait: ["Connecting to the class", "This takes a moment.", null],
  offline: ["No connection", "The class cannot be reached from this phone. It tries again by itself.", "Try again"],
};

// Why there is no way in, and what can be done about it; `words` are the server's own, where it has some.
export function closedDoor({ head, rest }, reason, code, { again, words } = {}) {
  const [text, more, label] = CLOSED[reason];
  brand(head);
  const { head: title } = heading(head, `Class ${code}`, text);
  html("p", "lead", rest, reason === "busy" && words ? `${words} This page tries again by itself.` : more);
  if (label) button(label, "button primary", html("p", "", rest), again);
  return { title };
}

function field(form, text, attributes) {
  const label = html("label", "", form, text);
  const input = html("input", "", form);
  label.htmlFor = attributes.id;
  for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);
  return input;
}
