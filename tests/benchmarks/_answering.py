"""A learner in front of the lesson's page, without a browser: opens it, fills in the form, and reads whether the answer is locked in."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pages.learner_cookie import LEARNER_COOKIE

LOCKED_IN = 'data-stage="predict"'
PAGE = "lesson"


class Learner:
    """One browser tab."""

    def __init__(self, url: str, token: str, lesson_id: str) -> None:
        self._address = url.replace("http", "ws", 1) + "/_stcore/stream"
        self._cookie = f"{LEARNER_COOKIE}={token}"
        self._query = f"lesson={lesson_id}"
        self._connection: websockets.ClientConnection | None = None
        self._page_hash = ""
        self._elements: list[Element] = []
        self.heard: list[bytes] = []
        """Every frame of the session so far."""

    async def join(self) -> None:
        """Open the page and wait until it is drawn. Raises RuntimeError where it does not ask the question."""
        self._connection = await websockets.connect(
            self._address, subprotocols=[websockets.Subprotocol("streamlit")], additional_headers={"Cookie": self._cookie}, max_size=None,
            open_timeout=120,
        )
        await self._connection.send(BackMsg(rerun_script=ClientState(query_string=self._query, page_name=PAGE)).SerializeToString())
        async for message in self._messages():
            kind = message.WhichOneof("type")
            if kind == "navigation":
                self._page_hash = message.navigation.page_script_hash
            elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
                self._elements.append(message.delta.new_element)
            elif kind == "script_finished":
                break
        if not [element for element in self._elements if element.WhichOneof("type") == "radio"]:
            raise RuntimeError("the page does not ask a question")

    async def lock_in(self, option: str | None = None) -> None:
        """Choose `option` by its text, or any, and any certainty, press the button, and wait for the page that says so."""
        assert self._connection is not None
        state = ClientState(query_string=self._query, page_script_hash=self._page_hash)
        for element in self._elements:
            kind = element.WhichOneof("type")
            if kind == "radio":
                state.widget_states.widgets.add(id=element.radio.id, string_value=option or random.choice(element.radio.options))
            elif kind == "button_group":
                chosen = random.choice(element.button_group.options).content
                state.widget_states.widgets.add(id=element.button_group.id).string_array_value.data.append(chosen)
            elif kind == "button" and element.button.is_form_submitter:
                state.widget_states.widgets.add(id=element.button.id, trigger_value=True)
        await self._connection.send(BackMsg(rerun_script=state).SerializeToString())
        drawn = []
        async for message in self._messages():
            drawn.append(_html(message))
            if LOCKED_IN in drawn[-1]:
                return
            if message.WhichOneof("type") == "script_finished":
                raise RuntimeError(f"the answer was not taken: {[text for text in drawn if text]}")

    async def settle(self) -> None:
        """Read on to the end of the script run."""
        async for message in self._messages():
            if message.WhichOneof("type") == "script_finished":
                return

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _messages(self) -> AsyncIterator[ForwardMsg]:
        assert self._connection is not None
        async for data in self._connection:
            assert isinstance(data, bytes)
            self.heard.append(data)
            yield ForwardMsg.FromString(data)


def _html(message: ForwardMsg) -> str:
    if message.WhichOneof("type") != "delta" or message.delta.WhichOneof("type") != "new_element":
        return ""
    element = message.delta.new_element
    return element.html.body if element.WhichOneof("type") == "html" else ""
