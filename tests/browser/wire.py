"""What a page costs on the network: bytes as they came, and a network as slow as a phone's.

Owns the count, over the DevTools protocol: compressed bodies, headers, streams that are still open, and frames of websockets.
"""

from __future__ import annotations

from typing import Any, Self

from playwright.sync_api import Page

MBIT_S = 1.6
LATENCY_MS = 150


class Wire:
    """Counts from now on what `page` receives."""

    def __init__(self, page: Page) -> None:
        self._bytes: dict[str, int] = {}
        self._devtools = page.context.new_cdp_session(page)
        self._devtools.on("Network.responseReceived", self._begun)
        self._devtools.on("Network.dataReceived", self._more)
        self._devtools.on("Network.loadingFinished", self._finished)
        self._devtools.on("Network.webSocketFrameReceived", self._frame)
        self._devtools.send("Network.enable")

    def slowed(self, mbit_s: float = MBIT_S, latency_ms: int = LATENCY_MS) -> Self:
        """With so slow a network, both ways."""
        rate = mbit_s * 1_000_000 / 8
        self._devtools.send(
            "Network.emulateNetworkConditions",
            {"offline": False, "latency": latency_ms, "downloadThroughput": rate, "uploadThroughput": rate},
        )
        return self

    @property
    def received(self) -> int:
        return sum(self._bytes.values())

    def _begun(self, event: dict[str, Any]) -> None:
        self._bytes[event["requestId"]] = int(event["response"]["encodedDataLength"])

    def _more(self, event: dict[str, Any]) -> None:
        self._bytes[event["requestId"]] = self._bytes.get(event["requestId"], 0) + int(event["encodedDataLength"])

    def _finished(self, event: dict[str, Any]) -> None:
        self._bytes[event["requestId"]] = int(event["encodedDataLength"])

    def _frame(self, event: dict[str, Any]) -> None:
        """A frame's payload: binary ones come in base64."""
        response = event["response"]
        size = len(response["payloadData"]) * (3 / 4 if response["opcode"] == 2 else 1)
        self._bytes[event["requestId"]] = self._bytes.get(event["requestId"], 0) + int(size)
