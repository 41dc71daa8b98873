"""Streamlit sessions with a fragment that reruns by itself, driven as a browser drives them, over real websockets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg


class _Session:
    def __init__(self) -> None:
        self.updates = 0
        self.drawn = asyncio.Event()

    async def run(self, url: str, query: str, until: asyncio.Event) -> None:
        """Join, then ask for the fragment again at its interval; counts every chart that arrives."""
        address = url.replace("http", "ws", 1) + "/_stcore/stream"
        async with websockets.connect(address, subprotocols=[websockets.Subprotocol("streamlit")], max_size=None) as connection:
            await connection.send(BackMsg(rerun_script=ClientState(query_string=query)).SerializeToString())
            timers: list[asyncio.Task[None]] = []
            reader = asyncio.create_task(self._read(connection, timers, query))
            await until.wait()
            for task in (reader, *timers):
                task.cancel()

    async def _read(self, connection: websockets.ClientConnection, timers: list[asyncio.Task[None]], query: str) -> None:
        async for data in connection:
            assert isinstance(data, bytes)
            message = ForwardMsg()
            message.ParseFromString(data)
            kind = message.WhichOneof("type")
            if kind == "auto_rerun":
                rerun = message.auto_rerun
                timers.append(asyncio.create_task(self._ask(connection, rerun.fragment_id, rerun.interval, query)))
            elif kind == "ref_hash" or (kind == "delta" and message.delta.new_element.WhichOneof("type") == "plotly_chart"):
                self.updates += 1
                self.drawn.set()

    async def _ask(self, connection: websockets.ClientConnection, fragment_id: str, interval_s: float, query: str) -> None:
        while True:
            await asyncio.sleep(interval_s)
            state = ClientState(query_string=query, fragment_id=fragment_id, is_auto_rerun=True)
            await connection.send(BackMsg(rerun_script=state).SerializeToString())


async def rerun_updates(url: str, query: str, viewers: int, seconds: float, mark: Callable[[], None]) -> int:
    """Charts received by all viewers together within `seconds`, counted once each has its first; `mark` is called at both ends."""
    until = asyncio.Event()
    sessions = [_Session() for _ in range(viewers)]
    tasks = [asyncio.create_task(session.run(url, query, until)) for session in sessions]
    await asyncio.wait_for(asyncio.gather(*(session.drawn.wait() for session in sessions)), 60)
    before = sum(session.updates for session in sessions)
    mark()
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        await asyncio.sleep(0.05)
    mark()
    updates = sum(session.updates for session in sessions) - before
    until.set()
    await asyncio.gather(*tasks)
    return updates
