"""The strict fake server over HTTP, so that the real ``anthropic`` client can be run against it.

Serves ``POST /v1/messages``, streaming and not, on a free port of this machine; all answers come
from one :class:`~longrun.fake_api.FakeApi`, whose knobs cut streams here for real: cleanly, with the end of the
chunks, or by closing the line. It does not check API keys and has no rate limits.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from longrun.errors import ApiError
from longrun.fake_api import random_id
from longrun.stream import cut_off, events_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longrun.fake_api import Answer, FakeApi


@contextlib.contextmanager
def serve(api: FakeApi) -> Iterator[str]:
    """Serve ``api`` for the length of a ``with`` block, which gets the base URL.

    >>> from longrun.fake_api import FakeApi
    >>> with serve(FakeApi()) as base_url:
    ...     base_url.startswith("http://127.0.0.1:")
    True
    """
    server = _Server(("127.0.0.1", 0), _Handler)
    server.api = api
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, name="fake-api")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        api.hurry()  # an answer that is held back must not hold the server
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # a connection that a killed client left open must not hold the server
    api: FakeApi

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong, unless it is that the client has gone: it may, and here it is often killed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        """Answer one request."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            answer, streaming = self._answer(body)
        except ApiError as error:
            self._send_json(error.status, {**error.body, "request_id": random_id("req")})
            return
        with contextlib.suppress(ConnectionError):  # a client that was killed needs no more
            if streaming:
                self._send_events(answer)
            else:
                self._send_json(200, answer.message, cut=answer.cut is not None)

    def _answer(self, body: bytes) -> tuple[Answer, bool]:
        if self.path.partition("?")[0] != "/v1/messages":
            raise ApiError(404, "not_found_error", f"Not found: {self.path}")
        try:
            request = json.loads(body)
        except ValueError as error:
            raise ApiError(400, "invalid_request_error", f"The request body is not valid JSON: {error}") from error
        streaming = isinstance(request, dict) and request.pop("stream", False) is True
        return self.server.api.answer(request), streaming

    def _send_json(self, status: int, form: dict[str, Any], *, cut: bool = False) -> None:
        """One body. Its length is announced, so a cut one is never taken for whole: the line breaks."""
        data = json.dumps(form).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        self.close_connection |= cut

    def _send_events(self, answer: Answer) -> None:
        """The events as chunks. Only the empty chunk says that this was all."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        events = events_of(answer.message)
        for event in events if answer.cut is None else cut_off(events, answer.cut):
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        if answer.cut is None or answer.cut.clean:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature of http.server
        """Say nothing: the server's record is ``api.exchanges``."""
