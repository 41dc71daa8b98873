"""Streamlit sessions without a browser: what a page costs the server, not what it costs Chromium."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg


async def join(url: str, limit_s: float = 120.0) -> tuple[websockets.ClientConnection, int]:
    """Open one session and wait until its first script run has ended. Returns the open connection and the bytes received."""
    address = url.replace("http", "ws", 1) + "/_stcore/stream"
    protocols = [websockets.Subprotocol("streamlit")]
    connection = await websockets.connect(address, subprotocols=protocols, max_size=None, open_timeout=limit_s)
    await connection.send(BackMsg(rerun_script=ClientState()).SerializeToString())
    received = 0
    async with asyncio.timeout(limit_s):
        async for data in connection:
            assert isinstance(data, bytes)
            received += len(data)
            message = ForwardMsg()
            message.ParseFromString(data)
            if message.WhichOneof("type") == "script_finished":
                return connection, received
    raise RuntimeError("the server closed the session before its first page was complete")


async def join_together(url: str, count: int, while_open: Callable[[], None] = lambda: None) -> int:
    """Open `count` sessions at once, call `while_open`, close them; bytes received by all of them together."""
    joined = await asyncio.gather(*(join(url) for _ in range(count)))
    while_open()
    await asyncio.gather(*(connection.close() for connection, _ in joined))
    return sum(received for _, received in joined)
