// The parts of the console, each built once and filled with every view. All of it is text that is put in as text: nicknames are strangers'.

import { button, html, setAttribute, setText, show } from "../../components/lanes/dom.js";
import { clockWords, NAMES, PICTURES, when } from "./says.js";

const VOTE_STATES = ["vote", "votes", "discuss", "revote"];
const RUN_STATES = ["experiments", "key", "explanation"];

function panel(root, name, title) {
  const section = html("section", `cn-panel cn-${name}`, root);
  section.setAttribute("aria-labelledby", `cn-${name}-h`);
  html("h2", "", section, title).id = `cn-${name}-h`;
  return section;
}

// Rows of a list by key: kept while they stay, so that focus and a half-made press survive the next view.
function rows(list, make) {
  const known = new Map();
  return (items, keyOf) => {
    const wanted = new Set(items.map(keyOf));
    for (const [key, row] of known) {
      if (!wanted.has(key)) {
        row.node.remove();
        known.delete(key);
      }
    }
    items.forEach((item, at) => {
      const key = keyOf(item);
      if (!known.has(key)) known.set(key, make(item));
      const row = known.get(key);
      if (list.children[at] !== row.node) list.insertBefore(row.node, list.children[at] ?? null);
      row.fill(item);
    });
  };
}

export function answers(root) {
  const section = panel(root, "answers", "Answers");
  const advice = html("p", "cn-advice", section);
  const list = html("ol", "cn-shares", section);
  const predicted = html("p", "cn-small", section);
  const none = html("p", "cn-small", section, "No question is open.");
  const fillRows = rows(list, () => {
    const node = html("li", "");
    const [letter, text] = [html("strong", "", node), html("span", "cn-option", node)];
    const fill = html("i", "", html("span", "cn-bar", node));
    const share = html("span", "cn-share", node);
    return {
      node,
      fill: (option) => {
        setText(letter, option.letter);
        setText(text, `${option.right ? "✓ " : ""}${option.text}`);
        setAttribute(node, "data-right", option.right);
        fill.style.width = `${option.part}%`;
        setText(share, option.pct == null ? String(option.n) : `${Math.round(option.pct)} % · ${option.n}`);
      },
    };
  });
  return (view) => {
    const { shares, suggestion } = view;
    show(none, !shares);
    show(advice, Boolean(shares));
    const open = VOTE_STATES.includes(view.state); // later on there is nothing left to decide by it
    setText(advice, suggestion ? `${Math.round(suggestion.share_pct)} % right of ${suggestion.n}.${open ? ` ${suggestion.words}.` : ""}` : shares ? `${shares.n} ${shares.n === 1 ? "vote" : "votes"}${shares.n < 5 ? "; no shares under 5" : ""}.` : "");
    setAttribute(advice, "data-tone", suggestion && open ? "advice" : "");
    const texts = Object.fromEntries((view.item?.options ?? []).map((option) => [option.id, option.text]));
    const options = (shares?.options ?? []).map((option) => ({ ...option, text: texts[option.id] ?? "", right: option.id === view.key_id, part: shares.n ? (100 * option.n) / shares.n : 0 }));
    fillRows(options, (option) => option.id);
    const most = Object.entries(view.predicted ?? {}).filter(([, n]) => n).sort((a, b) => b[1] - a[1]);
    setText(predicted, most.length ? `Predicted: ${most.map(([name, n]) => `${PICTURES[name] ?? name} ${n}`).join(", ")}.` : "");
    show(predicted, Boolean(most.length));
  };
}

export function runs(root, acting) {
  const section = panel(root, "runs", "Experiments");
  const now = html("div", "cn-now-run", section);
  const title = html("strong", "", now);
  const buttons = html("div", "cn-row", now);
  let paused = false;
  const pause = button("Pause", "", buttons, () => acting.post("pause", { paused: !paused }));
  const replay = button("Replay", "", buttons, () => acting.post("replay", {}));
  button("Off the screens", "", buttons, () => acting.post("experiment", { cause_id: "clear" }));
  const hint = html("p", "cn-small", section, "Runs can be shown from the experiments on.");
  const knobs = knobFields();
  const start = (cause, mode) => acting.post("experiment", { cause_id: cause, mode, ...(mode === "live" ? knobs.chosen() : {}) });
  const list = html("ul", "cn-causes", section);
  const fillRows = rows(list, (cause) => {
    const node = html("li", "");
    const words = html("div", "cn-cause", node);
    const name = html("span", "", words);
    const ready = html("small", "", words);
    const live = button("Run", "", node, () => start(cause.id, "live"));
    const recorded = button("Recording", "", node, () => start(cause.id, "recorded"));
    return {
      node,
      fill: (item) => {
        setText(name, item.title);
        setText(ready, item.recording_ready ? "recording ready" : "no recording yet");
        setAttribute(ready, "data-ready", Boolean(item.recording_ready));
        setAttribute(live, "class", item.wanted ? "cn-strong" : "");
        live.disabled = !item.possible;
        recorded.disabled = !item.possible || !item.recording_ready;
        live.setAttribute("aria-label", `Run live: ${item.title}`);
        recorded.setAttribute("aria-label", `Recording: ${item.title}`);
      },
    };
  });
  const race = button("Race them", "cn-race", section, () => start("race", "recorded"));
  section.append(knobs.node);
  return (view) => {
    const possible = RUN_STATES.includes(view.state);
    const racing = Boolean(view.race?.length);
    paused = Boolean(view.run?.paused);
    show(now, Boolean(view.run) || racing);
    setText(title, racing ? "On the screens: the race" : `On the screens: ${view.run?.title ?? ""} (${view.run?.mode === "recorded" ? view.run.recorded_words || "recording" : "live"})`);
    setText(pause, paused ? "Play on" : "Pause");
    for (const node of [pause, replay]) show(node, !racing);
    show(hint, !possible);
    fillRows((view.causes ?? []).map((cause) => ({ ...cause, possible, wanted: cause.title === view.wanted })), (cause) => cause.id);
    race.disabled = !possible;
    show(race, Boolean(view.causes?.length));
    show(knobs.node, Boolean(view.causes?.length));
  };
}

const KNOBS = [
  ["gpus", "GPUs", ["2", "4", "8"]],
  ["hand_off", "Hand-off", ["cpu", "nccl"]],
  ["preprocess", "Decoding on", ["gpu", "cpu"]],
  ["batch", "Batch per GPU", ["64", "128", "256", "512"]],
];

function knobFields() {
  const node = html("details", "cn-knobs");
  html("summary", "", node, "Other knobs for the next live run");
  const fields = KNOBS.map(([name, label, choices]) => {
    const line = html("label", "", node, `${label} `);
    const field = html("select", "", line);
    for (const choice of ["", ...choices]) html("option", "", field, choice || "as the lesson has it").value = choice;
    return [name, field];
  });
  const chosen = () => {
    const set = fields.filter(([, field]) => field.value).map(([name, field]) => [name, /^\d+$/.test(field.value) ? Number(field.value) : field.value]);
    return set.length ? { knobs: Object.fromEntries(set) } : {};
  };
  return { node, chosen };
}

export function hands(root, acting) {
  const section = html("details", "cn-hands", root);
  html("summary", "", section, "Show of hands, entered by hand");
  const form = html("form", "cn-form", section);
  const list = html("div", "cn-fields", form);
  const send = html("button", "cn-strong", form, "Count these hands");
  send.type = "submit";
  let round = null;
  let built = "";
  let fields = [];
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    acting.act("hands", { round, counts: Object.fromEntries(fields.map(([id, field]) => [id, Number(field.value) || 0])) });
  });
  return (view) => {
    round = view.round ?? (["votes", "discuss"].includes(view.state) ? view.shares?.round ?? null : null);
    const choices = round === "predict" ? (view.predict?.choices ?? []).map(({ id, words }) => [id, words]) : (view.item?.options ?? []).map(({ id, letter }) => [id, letter]);
    show(section, Boolean(round && choices.length && !view.key));
    const wanted = [view.item?.no, round].join();
    if (wanted === built) return;
    built = wanted;
    list.replaceChildren();
    fields = choices.map(([id, label]) => {
      const line = html("label", "", list, `${label} `);
      const field = html("input", "", line);
      Object.assign(field, { type: "number", min: 0, max: 10000, inputMode: "numeric", value: view.hands?.[round]?.[id] ?? "" });
      return [id, field];
    });
  };
}

export function notes(root, acting) {
  const section = panel(root, "notes", "Notes");
  const field = html("textarea", "", section);
  field.setAttribute("aria-labelledby", "cn-notes-h");
  field.rows = 3;
  const keep = button("Keep", "", section, async () => {
    const text = field.value;
    if (await acting.act("note", { text })) kept = text;
    mark();
  });
  let kept = "";
  const mark = () => show(keep, field.value !== kept);
  field.addEventListener("input", mark);
  mark();
  return (view) => {
    if (field.value === kept) field.value = view.notes ?? "";
    kept = view.notes ?? "";
    mark();
  };
}

const MOST_PEOPLE = 60;

export function peopleList(root, acting) {
  const section = panel(root, "people", "People");
  const head = html("div", "cn-row", section);
  let shown = false;
  const names = button("", "", head, () => acting.act("show_names", { on: !shown }));
  const more = html("p", "cn-small", section);
  const list = html("ul", "cn-list", section);
  const fillRows = rows(list, (person) => {
    const node = html("li", "");
    const name = html("span", "cn-name", node);
    let hidden = false;
    const hide = button("Hide", "", node, () => acting.act(hidden ? "unhide" : "hide", { participant: person.id }));
    const remove = twice("Remove", "Really remove?", node, () => acting.act("remove", { participant: person.id }));
    const restore = button("Let in again", "", node, () => acting.act("restore", { participant: person.id }));
    return {
      node,
      fill: (item) => {
        hidden = item.hidden;
        setText(name, `${item.nickname ?? `No name (${item.id})`}${item.removed ? " · removed" : item.hidden ? " · hidden" : ""}`);
        setText(hide, item.hidden ? "Show" : "Hide");
        show(hide, Boolean(item.nickname) && !item.removed);
        show(remove, !item.removed);
        show(restore, item.removed);
        hide.setAttribute("aria-label", `${item.hidden ? "Show" : "Hide"} ${item.nickname ?? item.id}`);
      },
    };
  });
  return (view) => {
    shown = Boolean(view.show_names);
    setText(names, shown ? "Names off the projector" : "Names on the projector");
    setAttribute(names, "aria-pressed", shown);
    const everybody = view.participants ?? [];
    const named = [...everybody].sort((a, b) => Number(!a.nickname) - Number(!b.nickname) || b.id - a.id);
    setText(more, `${everybody.length} ${everybody.length === 1 ? "has" : "have"} joined, ${everybody.filter((person) => person.nickname).length} with a name${everybody.length > MOST_PEOPLE ? `; ${MOST_PEOPLE} are listed` : ""}.`);
    fillRows(named.slice(0, MOST_PEOPLE), (person) => person.id);
  };
}

// What cannot be undone asks once more, in its own place.
export function twice(label, sure, parent, act) {
  let timer = 0;
  const node = button(label, "cn-twice", parent, () => {
    if (timer) act();
    clearTimeout(timer);
    timer = timer ? 0 : setTimeout(() => { timer = 0; node.textContent = label; }, 4_000);
    node.textContent = timer ? sure : label;
  });
  return node;
}

export function log(root) {
  const section = panel(root, "log", "What happened");
  const list = html("ol", "cn-list", section);
  list.tabIndex = 0; // it scrolls
  list.setAttribute("aria-live", "polite");
  list.setAttribute("aria-labelledby", "cn-log-h");
  const fillRows = rows(list, (line) => {
    const node = html("li", "");
    html("time", "", node, when(line.at_s));
    html("span", "", node, line.words);
    setAttribute(node, "data-tone", line.tone);
    return { node, fill: () => {} };
  });
  return (view) => {
    const lines = [...(view.log ?? [])].sort((a, b) => b.at_s - a.at_s).slice(0, 50);
    fillRows(lines, (line) => `${line.at_s} ${line.words}`);
  };
}

// Where the class is, how far its time went, and who is there.
export function headline(root) {
  const title = html("h1", "", root);
  const code = html("span", "cn-code", root);
  const facts = html("p", "cn-facts", root);
  const [here, plan] = ["cn-here", "cn-plan"].map((name) => html("span", name, facts));
  const links = html("nav", "cn-links", root);
  for (const [words, href] of [["Projector", "projector"], ["Report", "report"], ["Results (CSV)", "results.csv"]]) {
    Object.assign(html("a", "", links, words), { href, target: "_blank", rel: "noopener" });
  }
  return (view, nowS) => {
    setText(title, view.title);
    setText(here, `${view.here ?? 0} here${view.reconnecting ? ` · ${view.reconnecting} reconnecting` : ""}`);
    setText(code, view.code);
    const { used_s: used = 0, planned_s: planned = 0 } = view.plan ?? {};
    const running = used > 0 && view.state !== "ended" ? Math.max(0, nowS - view.server_s) : 0;
    setText(plan, planned ? `${clockWords(used + running)} of ${clockWords(planned)}` : clockWords(used + running));
    setAttribute(plan, "data-over", Boolean(planned) && used + running > planned);
  };
}

export function stateName(state) {
  return NAMES[state] ?? state;
}
