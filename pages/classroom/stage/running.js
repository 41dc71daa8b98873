// The scene of the experiments: the run that everybody watches, what the class predicted, and what came out.
// Owns one live picture, fed by the connection to the class. Knows no cause but the one that is on screen.

import { html, setAttribute, setText, show } from "../../components/lanes/dom.js";
import { picture } from "./pictures.js";
import { Race } from "../shared/race.js";
import { percent, unbroken, upper } from "./scenes.js";

export function experiments(root, view, { line, lanes }) {
  root.classList.add("pj-experiments");
  const side = html("div", "pj-side", root);
  const fillPredicted = predicted(side);
  const fillVoted = voted(side);
  const facts = html("div", "pj-facts", side);
  const speed = html("p", "pj-speed", facts);
  const said = html("p", "pj-said", facts);
  const stage = html("div", "pj-run", root);
  const head = html("div", "pj-run-head", stage);
  const title = html("h1", "", head);
  const badge = html("strong", "pj-badge", head);
  const waiting = html("p", "pj-waiting", stage, "The run begins in a moment.");
  const lanesPlace = html("div", "pj-lanes", stage);
  const race = new Race(stage);
  let live = null;
  let showing = "";
  let connect = null;

  let mode = "";
  // What is over is not live any longer, above all where it broke off.
  const fillBadge = (over) => setText(badge, over && mode === "Live" ? "Ran live" : mode);

  const tellEnd = () => {
    const end = line.run?.events.find(([, name]) => name === "end")?.[2];
    fillBadge(Boolean(end));
    setText(speed, end ? speedWords(end.summary) : "");
    setText(said, end?.sentence || "");
    setAttribute(root, "data-over", Boolean(end));
  };
  const update = (now) => {
    const racers = now.race ?? [];
    const run = racers.length ? null : now.run;
    fillPredicted(now);
    fillVoted(now);
    setText(title, racers.length ? "The race: one epoch of the same data" : unbroken(run?.title ?? now.item.title));
    show(race.box, Boolean(racers.length));
    if (racers.length) race.show(racers, now.frozen);
    mode = !run ? "" : run.mode === "recorded" ? run.recorded_words || "Recorded" : "Live";
    setAttribute(badge, "data-mode", run?.mode ?? "");
    show(badge, Boolean(run));
    show(waiting, !run && !racers.length);
    show(lanesPlace, Boolean(run));
    const known = run && line.run?.runId === run.run_id ? line.run.name : "";
    if (known && known !== showing) {
      showing = known;
      connect = line.connection();
      setText(speed, "");
      setText(said, "");
      setAttribute(root, "data-over", false);
    }
    fillBadge(root.dataset.over === "true" && known === showing);
    if (!run || !connect) return;
    const options = {
      run_id: run.run_id, replay: run.mode === "recorded", odd_rank: run.odd_rank, metric: run.metric, prediction: run.prediction,
      paused: run.paused || now.frozen, controls: false, compact: false, sticky: false, connect, onAction: tellEnd,
    };
    if (live) live.update(options);
    else lanes().then((mount) => { live ??= lanesPlace.isConnected ? mount(lanesPlace, options) : null; });
  };
  const destroy = () => {
    live?.destroy();
    race.destroy();
  };
  return Object.assign(update, { destroy });
}

function predicted(side) {
  const box = html("div", "pj-guess", side);
  html("h2", "", box, "The class predicted");
  const list = html("ol", "pj-predicted", box);
  let shown = "";
  return (now) => {
    const found = now.predictions;
    const most = Object.entries(found?.counts ?? {}).filter(([, count]) => count).sort((a, b) => b[1] - a[1]).slice(0, 3);
    show(box, Boolean(most.length));
    const key = JSON.stringify(most);
    if (key === shown) return;
    shown = key;
    list.replaceChildren();
    for (const [name, count] of most) {
      const entry = html("li", "", list);
      entry.append(picture(name));
      html("strong", "", entry, `${percent(count, found.total)} %`);
      html("span", "", entry, unbroken(upper(WORDS[name] ?? "")));
    }
  };
}

// How the class has answered, by letters: the question stays in mind while its causes run.
function voted(side) {
  const box = html("div", "pj-voted", side);
  html("h2", "", box, "The class answered");
  const list = html("ol", "", box);
  let shown = "";
  return (now) => {
    const latest = now.votes?.second ?? now.votes?.first;
    show(box, Boolean(latest?.total));
    const parts = latest ? now.item.options.map((option) => [option.letter, percent(latest.counts[option.id] ?? 0, latest.total), now.key?.option_id === option.id]) : [];
    const key = JSON.stringify(parts);
    if (key === shown) return;
    shown = key;
    list.replaceChildren();
    for (const [letter, part, right] of parts) {
      const entry = html("li", "", list);
      setAttribute(entry, "data-right", right);
      html("span", "", entry, right ? `✓ ${letter}` : letter);
      html("i", "", html("div", "pj-bar", entry)).style.width = `${part}%`;
      html("strong", "", entry, `${part} %`);
    }
  };
}

const WORDS = { only0: "only GPU 0 high", all_high: "all eight high", all_low: "all eight low", all_crash: "all crash", low0: "GPU 0 low, the rest high" };

function speedWords(summary) {
  const speed = summary?.speedup_vs_one_gpu;
  if (speed == null) return "";
  return `${summary.gpus?.length ?? 8} GPUs = ${speed.toFixed(1)}× of one`;
}
