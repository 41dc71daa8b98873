"""How many places of one class a client may take.

Owns counting, in the memory of this process, for as many clients as fit. Who a client is says `pages.clients`.
"""

from __future__ import annotations

from collections import OrderedDict

from pages.clients import CLIENTS_KEPT


class Joins:
    """How many places each client has taken in each class. A place that is taken stays taken, whatever becomes of who took it."""

    def __init__(self, *, most: int) -> None:
        self.most = most
        self._taken: OrderedDict[tuple[str, str], int] = OrderedDict()

    def take(self, code: str, client: str) -> bool:
        """Whether there is one more; it is taken then."""
        taken = self._taken.get((code, client), 0)
        if taken >= self.most:
            return False
        self._taken[code, client] = taken + 1
        self._taken.move_to_end((code, client))
        while len(self._taken) > CLIENTS_KEPT:
            self._taken.popitem(last=False)
        return True

    def give_back(self, code: str, client: str) -> None:
        """Nobody came of it: the class was full, the name refused, the store away."""
        taken = self._taken.get((code, client), 0)
        if taken:
            self._taken[code, client] = taken - 1
