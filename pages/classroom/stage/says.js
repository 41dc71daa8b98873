// The console's words for states, pictures and times.

export const NAMES = {
  lobby: "Lobby", vote: "Vote", votes: "Votes shown", discuss: "Discussion", revote: "Second vote", predict: "Prediction",
  experiments: "Experiments", key: "Key", explanation: "Explanation", ended: "The end",
};
// What pressing Next does, by the state it leads to.
export const STEPS = {
  vote: "Open the vote", votes: "Show the votes", discuss: "Let them discuss", revote: "Open the second vote", predict: "Predict the picture",
  experiments: "Go to the experiments", key: "Reveal the key", explanation: "Explain", ended: "End the class",
};
export const PICTURES = { only0: "only GPU 0 high", all_high: "all high", all_low: "all low", all_crash: "all crash", low0: "GPU 0 low" };

export function clockWords(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

export function when(unixSeconds) {
  return new Date(unixSeconds * 1000).toLocaleTimeString("en-GB");
}
