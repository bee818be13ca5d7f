"""One browser session without a browser: Streamlit's own messages over its socket, timed."""

from __future__ import annotations

import time
from types import TracebackType

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

from components.app.login import COOKIE

PATIENCE = 180.0


class Session:
    """A session of a running server."""

    def __init__(self, port: int, person: str = "") -> None:
        """`person`: whose name the browser remembers."""
        self._address = f"ws://127.0.0.1:{port}/_stcore/stream"
        self._cookie = {"Cookie": f"{COOKIE}={person}"} if person else {}
        self._socket: ClientConnection | None = None

    def __enter__(self) -> Session:
        self._socket = connect(
            self._address,
            subprotocols=["streamlit"],  # type: ignore[list-item]
            max_size=None,
            additional_headers=self._cookie,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._socket is not None:
            self._socket.close()

    def rerun(self, page: str = "", query: str = "") -> float:
        """Seconds from the request to the end of the script.

        Raises:
            RuntimeError: the page met an error that it does not show in words.
        """
        assert self._socket is not None
        message = BackMsg()
        message.rerun_script.page_name = page
        message.rerun_script.query_string = query
        began = time.perf_counter()
        self._socket.send(message.SerializeToString())
        while True:
            answer = ForwardMsg()
            answer.ParseFromString(self._socket.recv(timeout=PATIENCE))
            problem = answer.delta.new_element.exception
            if problem.message or problem.type:
                raise RuntimeError(f"{page or 'the first page'}: {problem.message}")
            if answer.WhichOneof("type") == "script_finished":
                return time.perf_counter() - began
