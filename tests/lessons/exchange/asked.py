"""One question with everything in it that could break a format."""

from __future__ import annotations

from lessons.exchange.item import Item, ItemOption

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 4"><title>A picture</title><desc>What it shows.</desc>'
    '<rect width="4" height="4"></rect></svg>'
)

NASTY = Item(
    id="made-up-1",
    title="Title: a = b # {c} ~d \\e & <f>",
    symptom=(
        "A job prints `loss=0.1 {step: 7}` & runs at **100 %**: *why* is `a ~ b`?\n\n"
        "- 1 \\< 2, and 3 \\* 4 \\# 5\n- `C:\\new\\table`\n\n"
        "```sh\nfor i in {1..8}; do\n  echo \"$i = \\n\"  # ~\ndone\n```\n\n"
        "| GPU | busy |\n|---|---|\n| 0 | 100 % \\| ~ |"
    ),
    question="What is `wrong = {here}` ~ *most likely*?",
    options=(
        ItemOption(
            id="q1", text="%50% of `a = b` ~ {c}: \\# 1", right=False,
            rebuttal="No: `x = {y}` \\~ 50 %\n\nand [a link](<https://example.org/a?b=c#d>).",
        ),
        ItemOption(
            id="q2", text="[html] is what it \\> is", right=True,
            rebuttal="Yes. ]]> ends nothing; // nor does this.\n\n// A line like a comment",
        ),
        ItemOption(id="q3", text="T", right=False, rebuttal=""),
    ),
    why="Because: `a → b`, “so” \\= 1\n\n    indented = {code}",
    exam_box="Choose the one about **data**.",
    on_call_box="1. `nvidia-smi`\n2. then `py-spy`",
    tags=("Distributed training", "Data loading"),
    infographic=SVG, infographic_alt="A picture. What it shows.",
)  # fmt: skip
