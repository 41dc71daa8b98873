// What the projector shows in each state of a class, but for the runs. Every scene builds its nodes once and gives back how to fill them.
// It is given the projector's view and nothing else: no key before its time, no names that were not asked for, nothing to press.

import { html, setAttribute, setText, show } from "../../components/lanes/dom.js";
import { putProse } from "../shared/prose.js";
import { drawing, picture } from "./pictures.js";

export const people = (number) => `${number} ${number === 1 ? "person is" : "people are"} here`;
export const percent = (part, whole) => (whole ? Math.round((100 * part) / whole) : 0);

export function lobby(root, view, { dark }) {
  root.classList.add("pj-lobby");
  const words = html("div", "pj-join", root);
  html("h1", "", words, view.title);
  html("p", "", words, "Scan the square with your phone, or open");
  address(html("p", "pj-address", words), view.join_words ?? "");
  html("p", "", words, "Class code");
  html("p", "pj-code", words, view.code);
  const here = html("p", "pj-here", words);
  const names = html("p", "pj-names", words);
  html("div", "pj-qr", root).append(qr("Code to join the class", dark));
  return (now) => {
    setText(here, people(now.here ?? 0));
    setText(names, (now.names ?? []).join("  ·  "));
    show(names, Boolean(now.names?.length));
  };
}

// Where it needs a second line, the code stands on that one whole.
function address(line, words) {
  const parts = words.split(/(?<=\/)/);
  parts.forEach((part, at) => line.append(...(at ? [document.createElement("wbr")] : []), part));
}

// A phone reads dark on light; so the code keeps its own paper in the dark.
export function qr(alt) {
  const image = new Image();
  image.src = "qr.svg";
  image.alt = alt;
  return image;
}

export function question(root, view, { still }) {
  root.classList.add("pj-question");
  const { item } = view;
  const column = html("div", "pj-ask", root);
  heading(column, item.title, view.state === "revote" ? "Second vote" : place(item, "Your vote"));
  putProse(html("div", "pj-symptom", column), item.symptom_html);
  html("p", "pj-asked", column, item.question);
  options(column, item);
  if (still && item.still) still(html("div", "pj-still", root), item.still);
  return () => {};
}

// The rows of the votes: how many chose what, before and after talking. Nothing says which is right.
export function votes(root, view) {
  root.classList.add("pj-votes");
  const { item } = view;
  const discuss = view.state === "discuss";
  heading(root, discuss ? "Talk it over with your neighbour" : item.title, discuss ? place(item, "The votes") : "The votes");
  if (discuss) html("p", "pj-asked", root, "Find somebody who chose otherwise, and convince each other.");
  else html("p", "pj-asked", root, item.question);
  return bars(root, view);
}

export function predict(root, view) {
  root.classList.add("pj-predict");
  const cause = view.predict?.cause_title;
  heading(root, cause ? `If it is “${cause}”, what will its run draw?` : "If your cause is right, what will its run draw?", "Predict");
  html("p", "", root, "Each row is a GPU; the fuller, the busier.");
  const list = html("ol", "pj-pictures", root);
  for (const { id, words } of view.predict?.choices ?? []) {
    const entry = html("li", "", list);
    entry.append(picture(id));
    html("span", "", entry, unbroken(upper(words)));
  }
  return () => {};
}

export function key(root, view) {
  root.classList.add("pj-votes", "pj-key");
  const { item } = view;
  heading(root, item.title, "The answer");
  html("p", "pj-asked", root, item.question);
  const fill = bars(root, view);
  const refuted = mostChosenWrong(view);
  if (refuted) {
    const box = html("div", "pj-rebuttal", root);
    html("p", "pj-small-head", box, `Why not ${refuted.letter}?`);
    putProse(html("div", "", box), refuted.html);
  }
  return fill;
}

export function explanation(root, view, { dark }) {
  root.classList.add("pj-explained");
  const { item, explanation: told } = view;
  const column = html("div", "pj-told", root);
  heading(column, item.title, "");
  const right = item.options.find((option) => option.id === view.key?.option_id);
  if (right) {
    const line = html("p", "pj-right-line", column);
    html("strong", "", line, `✓ ${right.letter} `);
    line.append(unbroken(right.text));
  }
  putProse(html("div", "pj-why", column), told?.why_html);
  const exam = html("div", "pj-exam", column);
  html("p", "pj-small-head", exam, "In the exam");
  putProse(html("div", "", exam), told?.exam_html);
  if (told?.infographic_svg) html("div", "pj-drawing", root).append(drawing(told.infographic_svg, told.infographic_alt, { dark }));
  return () => {};
}

// A question that the server no longer has: nothing to be seen, and said plainly.
export function missing(root) {
  root.classList.add("pj-ended");
  html("p", "", root, "This question is not on the server any more. The class goes on with the next one.");
  return () => {};
}

export function ended(root, view) {
  root.classList.add("pj-ended");
  html("h1", "", root, "Thank you");
  html("p", "", root, view.title);
  html("p", "", root, "What was asked and explained stays on your phone.");
  return () => {};
}

function heading(parent, words, kicker) {
  const head = html("div", "pj-head", parent);
  html("h1", "", head, unbroken(words));
  if (kicker) html("p", "pj-kicker", head, kicker);
}

// Which question this is; in a class with one only, what is going on.
function place(item, alone) {
  return item.of > 1 ? `Question ${item.no} of ${item.of}` : alone;
}

function options(parent, item) {
  const list = html("ol", "pj-options", parent);
  return item.options.map((option) => {
    const row = html("li", "", list);
    html("span", "pj-letter", row, option.letter);
    html("span", "pj-text", row, unbroken(option.text));
    return row;
  });
}

function bars(parent, view) {
  const rows = options(parent, view.item).map((row) => {
    const cell = html("div", "pj-bars", row);
    const before = html("div", "pj-bar pj-before", cell);
    const now = html("div", "pj-bar", cell);
    return { row, cell, before, beforeFill: html("i", "", before), fill: html("i", "", now), share: html("strong", "", cell), mark: html("em", "", row) };
  });
  const note = html("p", "pj-note", parent);
  return (now) => {
    const first = now.votes?.first;
    const latest = now.votes?.second ?? first;
    now.item.options.forEach((option, at) => {
      const { row, cell, before, beforeFill, fill, share, mark } = rows[at];
      const part = percent(latest?.counts[option.id] ?? 0, latest?.total);
      const earlier = percent(first?.counts[option.id] ?? 0, first?.total);
      show(cell, Boolean(latest));
      show(before, Boolean(now.votes?.second));
      fill.style.width = `${part}%`;
      beforeFill.style.width = `${earlier}%`;
      setText(share, `${part} %`);
      const right = now.key?.option_id === option.id;
      setText(mark, right ? "Right" : "");
      setAttribute(row, "data-right", right);
    });
    setText(note, voteWords(now.votes));
  };
}

function voteWords(found) {
  if (!found) return "";
  const counted = ({ total }) => `${total} ${total === 1 ? "vote" : "votes"}`;
  return found.second ? `Pale: the first vote, ${counted(found.first)}. Full: the second, ${counted(found.second)}.` : counted(found.first);
}

// The wrong option that most have chosen, with its rebuttal.
function mostChosenWrong(view) {
  const counts = (view.votes?.second ?? view.votes?.first)?.counts ?? {};
  const wrong = view.item.options.filter((option) => option.id !== view.key?.option_id && counts[option.id]);
  const [most] = wrong.sort((a, b) => counts[b.id] - counts[a.id]);
  const told = view.key?.rebuttals.find((rebuttal) => rebuttal.option_id === most?.id);
  return most && told ? { letter: most.letter, html: told.html } : null;
}

// A GPU and its number stay on one line.
export function unbroken(text) {
  return text.replace(/GPU (\d)/g, "GPU\u00a0$1");
}

export function upper(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
