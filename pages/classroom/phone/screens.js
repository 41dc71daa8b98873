// One screen for each state of a class. A screen is built once when its state comes and updated by every view that follows; it draws
// what the view holds and never guesses what it does not.

import { html, setText, show } from "../../components/lanes/dom.js";
import { putDrawing } from "../shared/drawing.js";
import { Race } from "../shared/race.js";
import { brand, choices, forecastBars, heading, percent, prose, silhouette, symptom, tally, where } from "./parts.js";

// `places` are where a screen goes: `head` above the live picture and `rest` under it. `outbox` takes the answers.
export const SCREENS = {
  lobby, vote: ballot, revote: ballot, votes: shares, discuss: shares, predict, experiments, key: answer, explanation, ended,
};

function lobby({ head, rest }, view) {
  brand(head);
  const { head: title } = heading(head, view.title, "You are in");
  html("p", "lead", rest, "The first question comes in a moment. This page follows the class by itself: keep it open.");
  const steps = html("ol", "steps", rest);
  for (const [what, how] of [
    ["Answer", "Tap an option. You can change it until the vote closes."],
    ["Predict", "Say what the run of that cause will draw."],
    ["Watch", "The same run, live, on every screen."],
  ]) {
    const step = html("li", "", steps);
    html("strong", "", step, what);
    html("span", "", step, how);
  }
  const name = html("p", "note", rest);
  return {
    title,
    update: ({ me }) => setText(name, me?.nickname ? `You are here as ${me.nickname}.` : "You are here without a name."),
  };
}

function ballot({ head, rest }, view, { outbox }) {
  const again = view.state === "revote";
  const { item } = view;
  const { head: title } = heading(head, where(view) + (again ? ", second vote" : ""), again ? "Vote again" : item.title);
  if (again) {
    html("p", "lead", rest, "You have talked about it. What do you say now? Tap your answer, also if it is the same.");
    const more = html("details", "again", rest);
    html("summary", "", more, "Read the symptom again");
    symptom(more, item);
  } else symptom(rest, item);
  html("h2", "question", rest, item.question).id = "question";
  const tags = {};
  const rows = item.options.map((option) => ({
    id: option.id,
    fill(node) {
      html("b", "letter", node, option.letter);
      const text = html("span", "text", node);
      html("span", "", text, option.text);
      tags[option.id] = html("span", "tag", text, "your first answer");
    },
  }));
  const group = choices(rest, rows, { labelledBy: "question", onPick: (id) => outbox.choose(again ? "second" : "first", item.no, id) });
  return {
    title,
    update(now) {
      group.update(outbox.choice(now), { open: now.may_vote, status: outbox.status(now) });
      for (const [id, tag] of Object.entries(tags)) show(tag, again && now.me?.votes?.first === id);
    },
  };
}

function shares({ head, rest }, view, { outbox }) {
  const talk = view.state === "discuss";
  const { head: title } = heading(head, where(view), talk ? "Talk about it" : "How the class answered");
  const missed = html("p", "warn", rest, "The vote closed before your answer arrived.");
  html("p", "lead", rest, talk ? "Find somebody with another answer. Say why you chose yours, and listen to why they chose theirs." : "Which one is right comes later.");
  html("h2", "question", rest, view.item.question);
  const table = tally(rest, view.item, (me, id) => (me?.votes?.first === id ? "your answer" : ""));
  return {
    title,
    update(now) {
      show(missed, outbox.status(now) === "missed");
      table.update(now.votes, now.me);
    },
  };
}

function predict({ head, rest }, view, { outbox }) {
  const { head: title } = heading(head, where(view), "What will its run draw?");
  const cause = html("p", "lead", rest);
  const rows = (view.predict?.choices ?? []).map(({ id, words }) => ({
    id,
    fill(node) {
      node.classList.add("drawn");
      silhouette(node, id);
      html("span", "text", node, capital(words));
    },
  }));
  const group = choices(rest, rows, { label: "What will its run draw?", onPick: (id) => outbox.choose("predict", view.item.no, id) });
  return {
    title,
    update(now) {
      cause.replaceChildren();
      if (now.predict?.cause_title) {
        cause.append("Most of you say: ");
        html("strong", "", cause, now.predict.cause_title);
        cause.append(". If that is the cause, what will the eight GPUs look like?");
      } else setText(cause, "The cause that most of you chose is run next. If you are right, what will the eight GPUs look like?");
      group.update(outbox.choice(now), { open: now.may_vote, status: outbox.status(now) });
    },
  };
}

function experiments({ head, rest }, view, { stage }) {
  const { overline, head: title } = heading(head, where(view), "Watch it run");
  const guess = html("p", "guess", head);
  const soon = html("p", "lead", rest, "The run starts in a moment. It is shown here, on your phone, as it happens.");
  const shown = html("p", "lead", rest);
  const race = new Race(rest);
  const bars = forecastBars(rest);
  return {
    title,
    destroy: () => race.destroy(),
    update(now) {
      const racing = Boolean(now.race?.length);
      const run = racing ? null : now.run;
      show(race.box, racing);
      if (racing) race.show(now.race, false);
      setText(title, racing ? "The race: one epoch of the same data" : run ? run.title : "Watch it run");
      setText(overline, [where(now), racing ? "recorded runs" : run && runWords(run)].filter(Boolean).join(" · "));
      show(soon, !run && !racing);
      setText(shown, run?.sentence ?? "");
      show(shown, Boolean(run?.sentence) && stage.over); // not before everybody could see it for themselves
      setText(guess, run?.prediction && now.predictions?.total ? guessed(now) : "");
      bars.update(now.predictions, now.me?.votes?.predict);
    },
  };
}

// What most of the class predicted of this run, and what this phone did.
function guessed({ run, predictions, me }) {
  const words = (id) => document.getElementById(`sil-${id}`)?.dataset.words.replace(/^[AO]/, (letter) => letter.toLowerCase()) ?? "";
  const share = `${percent(predictions?.counts[run.prediction] ?? 0, predictions?.total)} % of the class`;
  const mine = me?.votes?.predict;
  if (mine === run.prediction) return `You and ${share} predicted: ${words(mine)}.`;
  return `${share} predicted: ${words(run.prediction)}.${mine ? ` You: ${words(mine)}.` : ""}`;
}

export function runWords(run) {
  if (run.mode === "recorded") return run.recorded_words || "Recording";
  return run.paused ? "Live run, paused" : "Live run";
}

function answer({ head, rest }, view) {
  const { item, key } = view;
  const right = item.options.find((option) => option.id === key.option_id);
  const { head: title } = heading(head, where(view), `The answer is ${right.letter}`);
  const own = html("p", "verdict", rest);
  const mark = (me, id) => [me?.votes?.second === id ? "your answer" : me?.votes?.first === id ? (me?.votes?.second ? "your first answer" : "your answer") : ""].join("");
  const table = tally(rest, item, mark);
  for (const option of item.options) {
    const row = table.rows[option.id];
    const is = option.id === key.option_id;
    row.classList.toggle("right", is);
    const word = html("span", "judged", row, is ? "Right" : "Not this");
    row.insertBefore(word, row.firstChild);
    const rebuttal = key.rebuttals.find((each) => each.option_id === option.id);
    if (rebuttal) prose(row, rebuttal.html);
  }
  // The right one first, then what this phone chose, then the others as they were asked.
  const rank = (option) => (option.id === key.option_id ? 0 : option.id === latest(view) ? 1 : 2);
  for (const option of [...item.options].sort((a, b) => rank(a) - rank(b))) table.rows[option.id].parentElement.append(table.rows[option.id]);
  return {
    title,
    update(now) {
      const chosen = latest(now);
      const was = item.options.find((option) => option.id === chosen);
      own.classList.toggle("right", chosen === key.option_id);
      setText(own, was ? (was === right ? `You said ${was.letter}. Right.` : `You said ${was.letter}. It is ${right.letter}, and here is why.`) : "You did not vote this time.");
      table.update(now.votes, now.me);
    },
  };
}

function latest({ me }) {
  return me?.votes?.second ?? me?.votes?.first ?? null;
}

function explanation({ head, rest }, view) {
  const { head: title } = heading(head, where(view), "Why");
  const { explanation: told } = view;
  prose(rest, told.why_html).classList.add("why");
  if (told.infographic_svg) putDrawing(html("figure", "drawing", rest), told.infographic_svg, told.infographic_alt);
  for (const [name, field] of [["In the exam", "exam_html"], ["On call: check these first", "on_call_html"]]) {
    if (!told[field]) continue;
    const box = html("section", "box", rest);
    html("h2", "", box, name);
    prose(box, told[field]);
  }
  return { title, update() {} };
}

function ended({ head, rest }, view, { base }) {
  brand(head);
  const { head: title } = heading(head, view.title, "That was the class");
  html("p", "lead", rest, "Thank you for taking part. The instructor has ended it; you can close this page.");
  const on = html("p", "", rest);
  const link = html("a", "button", on, "Go on alone: the course");
  link.href = `${base}course`;
  return { title, update() {} };
}

// A question that the server has no more: its folder was changed while the class went on.
export function gone({ head, rest }, view) {
  const { head: title } = heading(head, view.title, "This question is gone");
  html("p", "lead", rest, "The server does not have it any more. The instructor can go on to the next one; this page follows.");
  return { title, update() {} };
}

export function capital(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
