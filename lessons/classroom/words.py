"""Codes, tokens, nicknames and notes: what strangers type or invent, checked.

Owns what is allowed. A text that passes may still be markup: whoever shows it, shows it as text.
"""

from __future__ import annotations

import re
import secrets
import unicodedata

ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
"""No 0, 1, I, L, O or U, which are read wrongly from a projector."""
CODE_LENGTH = 6
TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
"""256 random bits."""
LONGEST_NICKNAME = 24
LONGEST_NOTE = 4_000
LONGEST_TITLE = 80

_JOINERS = "\u200c\u200d"
"""Between letters of some scripts, and inside emoji; anything else that cannot be seen is refused."""
_DOUBLED = [first + second for first in _JOINERS for second in _JOINERS]
"""No script and no emoji has two of them in a row."""
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that are empty."""
_MOST_MARKS = 2
"""Marks on one letter; more of them climb over the lines around."""


def new_code() -> str:
    """One of 729 million."""
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))


def normal_code(code: str) -> str:
    """As it is in the store: capitals, without blanks and dashes that people put in. It may still be no code."""
    return re.sub(r"[\s-]+", "", code[:40]).upper()


def is_code(code: str) -> bool:
    return len(code) == CODE_LENGTH and all(letter in ALPHABET for letter in code)


def new_token() -> str:
    return secrets.token_urlsafe(32)


def is_token(token: str | None) -> bool:
    return token is not None and TOKEN.fullmatch(token) is not None


def clean_nickname(nickname: str | None) -> str | None:
    """As it is kept; None for none. Raises ValueError for one that is too long, unreadable or does something else than be read."""
    if nickname is None:
        return None
    if not isinstance(nickname, str):
        raise ValueError(f"nickname={str(nickname)[:20]}: must be text")
    text = " ".join(unicodedata.normalize("NFC", nickname[: 20 * LONGEST_NICKNAME]).split(" ")).strip(" ")
    if not text:
        return None
    unseen = _unseen(text)
    if unseen:
        raise ValueError(f"nickname: must not hold {unseen}")
    if len(text) > LONGEST_NICKNAME:
        raise ValueError(f"nickname: must have 1 to {LONGEST_NICKNAME} characters")
    if not any(unicodedata.category(letter)[0] in "LNSP" for letter in text):
        raise ValueError("nickname: must hold something that can be read")
    return re.sub(r" {2,}", " ", text)


def clean_line(name: str, text: str, longest: int) -> str:
    """One line of somebody who may act: a title. Raises ValueError."""
    line = " ".join(text[: 10 * longest].split())
    if _unseen(line) or len(line) > longest:
        raise ValueError(f"{name}: must be one line of at most {longest} characters")
    return line


def clean_note(text: str) -> str:
    """An instructor's own text, with line feeds. Raises ValueError where it is too long or cannot be kept."""
    if not isinstance(text, str):
        raise ValueError("text: must be text")
    note = text.replace("\r\n", "\n").strip()
    if len(note) > LONGEST_NOTE or _unseen(note.replace("\n", " ").replace("\t", " ")):
        raise ValueError(f"text: must be at most {LONGEST_NOTE} characters, without control characters")
    return note


def _unseen(text: str) -> str:
    """What `text` holds that nobody can see or that spoils the lines around, in words; empty for nothing."""
    marks = 0
    if any(pair in text for pair in _DOUBLED):
        return "characters that cannot be seen"
    for letter in text:
        category = unicodedata.category(letter)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if marks > _MOST_MARKS:
            return "more than two marks on one letter"
        if category in ("Zl", "Zp") or (category[0] == "C" and letter not in _JOINERS) or letter in _BLANK:
            return "control characters or characters that cannot be seen"
    return ""
