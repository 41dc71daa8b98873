// The pieces that the screens are made of. Text goes in as text; only `putProse` makes nodes of markup, and only of texts that the server has
// cleaned: symptom, rebuttals, explanation and the two boxes.

import { html, radios, setAttribute, setText, show } from "../../components/lanes/dom.js";
import { putProse } from "../shared/prose.js";

const KEY_REST_MS = 300;

// The heading of a screen, which takes the focus when the screen comes, under a line that says where in the class it is.
export function heading(parent, over, text) {
  const overline = html("p", "over", parent, over);
  const head = html("h1", "", parent, text);
  head.tabIndex = -1;
  return { overline, head };
}

// Whose page this is, for screens on which there is little else.
export function brand(parent) {
  html("div", "brand", parent).append(document.getElementById("brand").content.cloneNode(true));
}

export function prose(parent, cleaned) {
  return putProse(html("div", "prose", parent), cleaned);
}

// One of the five silhouettes; the page holds their drawings.
export function silhouette(parent, id) {
  const template = document.getElementById(`sil-${id}`);
  const node = html("span", "sil", parent);
  if (template) node.appendChild(template.content.cloneNode(true));
  return template?.dataset.words ?? "";
}

export function where(view) {
  return view.item ? `Question ${view.item.no} of ${view.item.of}` : "";
}

// The symptom: what the node looks like, and what is told of it.
export function symptom(parent, item) {
  const box = html("div", "symptom", parent);
  const figure = html("figure", "node", box);
  const words = silhouette(figure, item.still);
  const caption = html("figcaption", "", figure);
  html("span", "", caption, "On the node");
  html("strong", "", caption, words);
  prose(box, item.symptom_html);
}

// Choices of which one can be chosen: `rows` are {id, fill(node)}, `onPick(id)` is told once the keys rest.
export function choices(parent, rows, { label, labelledBy, onPick }) {
  const group = html("div", "choices", parent);
  if (labelledBy) group.setAttribute("aria-labelledby", labelledBy);
  else group.setAttribute("aria-label", label);
  const nodes = rows.map(({ id, fill }) => {
    const node = html("button", "choice", group);
    node.type = "button";
    node.dataset.id = id;
    fill(node);
    html("i", "ring", node);
    return node;
  });
  let byKey = false;
  let resting = 0;
  group.addEventListener("keydown", () => (byKey = true), true);
  group.addEventListener("pointerdown", () => (byKey = false), true);
  const mark = radios(group, nodes, (node) => {
    if (node.getAttribute("aria-disabled") === "true") return;
    mark(node);
    clearTimeout(resting);
    if (byKey && document.activeElement === node) resting = setTimeout(() => onPick(node.dataset.id), KEY_REST_MS);
    else onPick(node.dataset.id);
  });
  return {
    update(chosen, { open, status }) {
      mark(nodes.find((node) => node.dataset.id === chosen) ?? null);
      setAttribute(group, "aria-disabled", !open);
      setAttribute(group, "data-status", status);
      for (const node of nodes) setAttribute(node, "aria-disabled", !open);
    },
  };
}

export function percent(part, whole) {
  return whole ? Math.round((100 * part) / whole) : 0;
}

// What the class answered, per option: its text in full, and a bar for each vote that is shown.
export function tally(parent, item, own) {
  const list = html("ul", "tally", parent);
  const rows = item.options.map((option) => {
    const row = html("li", "", list);
    const text = html("p", "option", row);
    html("b", "letter", text, option.letter);
    html("span", "", text, option.text);
    const tag = html("span", "tag", row);
    const bars = { first: bar(row), second: bar(row) };
    return { option, row, tag, bars };
  });
  const sum = html("p", "sum", parent);
  return {
    rows: Object.fromEntries(rows.map((each) => [each.option.id, each.row])),
    update(votes, me) {
      for (const { option, tag, bars } of rows) {
        const mine = own(me, option.id);
        setText(tag, mine);
        show(tag, Boolean(mine));
        for (const round of ["first", "second"]) bars[round].update(votes?.[round], option.id, votes?.second ? round : null);
      }
      setText(sum, votes ? sums(votes) : "");
    },
  };
}

function bar(parent) {
  const node = html("div", "bar", parent);
  const label = html("span", "bar-label", node);
  const track = html("span", "track", node);
  const fill = html("span", "fill", track);
  const figure = html("span", "figure", node);
  return {
    update(votes, id, round) {
      show(node, Boolean(votes));
      if (!votes) return;
      const count = votes.counts[id] ?? 0;
      const share = percent(count, votes.total);
      setText(label, round === "first" ? "1st" : round === "second" ? "2nd" : "");
      setAttribute(node, "data-round", round ?? "only");
      fill.style.width = `${share}%`;
      setText(figure, `${share} %`);
    },
  };
}

function sums({ first, second }) {
  if (!second) return first.total === 1 ? "1 answer" : `${first.total} answers`;
  return `${first.total} answers in the first vote, ${second.total} in the second`;
}

// The class's predictions as five small pictures with their shares.
export function forecastBars(parent) {
  const box = html("section", "forecast", parent);
  html("h2", "", box, "What the class predicted");
  const list = html("ul", "", box);
  const rows = [...document.querySelectorAll("template[data-silhouette]")].map((template) => {
    const id = template.dataset.silhouette;
    const row = html("li", "", list);
    silhouette(row, id);
    const figure = html("strong", "", row);
    html("span", "words", row, template.dataset.words);
    const tag = html("span", "tag", row, "yours");
    return { id, row, figure, tag };
  });
  return {
    update(predictions, mine) {
      show(box, Boolean(predictions?.total));
      if (!predictions) return;
      for (const { id, figure, row, tag } of rows) {
        setText(figure, `${percent(predictions.counts[id] ?? 0, predictions.total)} %`);
        show(tag, id === mine);
        row.classList.toggle("mine", id === mine);
      }
    },
  };
}
