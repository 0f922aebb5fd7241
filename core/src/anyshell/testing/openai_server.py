r"""A model that follows a script, behind real HTTP: a loopback server that speaks OpenAI's API.

It answers Chat Completions (`/v1/chat/completions`) and Responses (`/v1/responses`), plain and streamed, so the real
client of an agent framework can be run against it, without a key and without a network:

    with OpenAIServer([
        [('run_command', {'command': 'ls'})],     # first the model calls a tool,
        'There is one file.',                     # then it answers
    ]) as server:
        agent = ...                               # a client with base_url=server.base_url and any api_key
        ...
        assert server.tool_results() == ('[stdout]\nnotes.txt',)

Like the real one it refuses, with status 400 and a reason, what a client must not send: a tool call without its
result, a result without its call, a tool whose name or schema is not allowed. Nothing outlives the `with` block.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from anyshell.testing.openai_wire import (
    Calls,
    Json,
    ModelRequest,
    ModelTurn,
    RefusedError,
    ToolCall,
    as_call,
    read_request,
    write_answer,
    write_broken_stream,
    write_events,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Failure:
    """An HTTP error in place of a turn.

    Attributes:
        status: The HTTP status.
        message: The message in the error's body.
        retry: Whether the client may try again by itself, which takes another turn from the script.
    """

    status: int = 500
    message: str = 'The scripted model failed.'
    retry: bool = False


@dataclass(frozen=True, slots=True)
class Hang:
    """A model that stops answering, until the client goes away or the server closes.

    Attributes:
        after: A text to stream first; a client that did not ask for a stream gets nothing at all.
    """

    after: str = ''


Answer: TypeAlias = str | Calls | ModelTurn | Failure | Hang
Turns: TypeAlias = Sequence[Answer | Callable[[ModelRequest], Answer]]
Script: TypeAlias = Turns | Callable[[ModelRequest], Answer]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and what the script answered; each call of a turn is a `ToolCall` with its id."""

    request: ModelRequest
    answer: ModelTurn | Failure | Hang


class OpenAIServer:
    """A scripted model behind OpenAI's HTTP API, on the loopback interface.

    The script is a sequence of turns, one for each request in the order of their arrival; or a function that makes
    a turn from the request, which is what several clients at once need. A turn of the sequence may be such a function
    too. A request after the last turn is refused. An exception in such a function reaches the client as status 500,
    and is raised again at the end of the `with` block.

    Use it in a `with` block, once. What it has seen can be read from any thread, also after the block.

    Args:
        script: The turns, or the function that makes them.

    Attributes:
        base_url: What a client takes as `base_url`; empty until the block is entered.
        hung: Set while a client waits because of a `Hang`.
    """

    def __init__(self, script: Script) -> None:
        self._model = _Model(script)
        self._http: _HttpServer | None = None
        self._thread: threading.Thread | None = None
        self.base_url = ''
        self.hung = self._model.hung

    def __enter__(self) -> Self:
        self._http = _HttpServer(self._model)
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(POLL_SECONDS,), name='openai-server'
        )
        self._thread.start()
        self.base_url = f'http://127.0.0.1:{self._http.server_port}/v1'
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._model.closing.set()
        if self._http and self._thread:
            self._http.shutdown()
            self._thread.join()
            self._http.server_close()
        self._http = self._thread = None
        if self._model.error and error is None:
            raise self._model.error

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead OpenAI's own client here."""
        return {'OPENAI_BASE_URL': self.base_url, 'OPENAI_API_KEY': 'loopback'}

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The requests so far that took a turn from the script, with their answers."""
        return tuple(self._model.exchanges)

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """The requests so far that took a turn from the script."""
        return tuple(exchange.request for exchange in self._model.exchanges)

    def tool_results(self) -> tuple[str, ...]:
        """What the tools have returned, in order, as the model reads it in the last request."""
        return tuple(self.requests[-1].tool_results.values()) if self.requests else ()


class _Model:
    """The script and how far it has come, shared by the connections' threads."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._turns = 0
        self._call_ids = 0
        self.exchanges: list[Exchange] = []
        self.stored: dict[str, tuple[Json, ...]] = {}
        self.error: BaseException | None = None
        self.closing = threading.Event()
        self.hung = threading.Event()

    def answer(self, request: ModelRequest) -> ModelTurn | Failure | Hang:
        """Take the next turn from the script.

        Raises:
            RefusedError: If the script has ended.
        """
        with self._lock:
            turn = self._next()
        if callable(turn):  # outside the lock: it may wait for another client
            try:
                turn = turn(request)
            except Exception as error:  # noqa: BLE001  (its author sees it at the end of the block)
                self.error = self.error or error
                turn = Failure(500, f'The script raised {error!r}.')
        with self._lock:
            answer = self._spelled_out(turn)
            self.exchanges.append(Exchange(request, answer))
        return answer

    def _next(self) -> Answer | Callable[[ModelRequest], Answer]:
        if callable(self._script):
            return self._script
        if self._turns == len(self._script):
            raise RefusedError(f'The script has {self._turns} turns, and all were taken.')
        self._turns += 1
        return self._script[self._turns - 1]

    def _spelled_out(self, turn: Answer) -> ModelTurn | Failure | Hang:
        if isinstance(turn, Failure | Hang):
            return turn
        if isinstance(turn, str):
            return ModelTurn(turn)
        whole = turn if isinstance(turn, ModelTurn) else ModelTurn(calls=turn)
        return ModelTurn(whole.text, tuple(self._identified(call) for call in whole.calls))

    def _identified(self, call: ToolCall | tuple[Any, ...]) -> ToolCall:
        given = as_call(call)
        if given.call_id is not None:
            return given
        self._call_ids += 1
        return ToolCall(given.name, given.arguments, f'call_{self._call_ids}')


class _HttpServer(ThreadingHTTPServer):
    """A server whose threads and connections end with it."""

    daemon_threads = False  # so that `server_close` joins them

    def __init__(self, model: _Model) -> None:
        self.model = model
        self._open: set[Any] = set()
        super().__init__(('127.0.0.1', 0), _Connection)

    def server_bind(self) -> None:
        # HTTPServer's own asks the resolver for the name of the address, which can take seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.socket.getsockname()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        # A client may have connected and sent nothing yet, and a thread waits there for its request.
        for connection in tuple(self._open):
            with contextlib.suppress(OSError):  # it was closed meanwhile
                connection.shutdown(socket.SHUT_RDWR)
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep what went wrong in here for the end of the `with` block."""
        del request, client_address
        error = sys.exception()
        if not isinstance(error, ConnectionError):  # a client may go away at any time
            self.model.error = self.model.error or error


class _Connection(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True  # else the small writes of a stream wait 40 ms for each other

    @property
    def _model(self) -> _Model:
        return cast('_HttpServer', self.server).model

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers.get('Content-Length', 0))))
            headers = {name.lower(): value for name, value in self.headers.items()}
            path = self.path.partition('?')[0]
            request = read_request(path, body, headers, self._model.stored)
            answer = self._model.answer(request)
        except json.JSONDecodeError as error:
            self._fail(Failure(400, f'The body is not JSON: {error}.'))
        except RefusedError as error:
            self._fail(Failure(error.status, str(error)))
        else:
            match answer:
                case Failure():
                    self._fail(answer)
                case Hang():
                    self._hang(request, answer)
                case ModelTurn():
                    self._say(request, answer)

    def do_GET(self) -> None:
        self._fail(Failure(404, f'Unknown path {self.path!r}.'))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the name is the base class's)
        """Say nothing on stderr."""

    def _say(self, request: ModelRequest, turn: ModelTurn) -> None:
        answer = write_answer(request, turn)
        if request.api == 'responses':
            self._model.stored[answer['id']] = (*request.history, *answer['output'])
        if not request.stream:
            self._send(200, answer)
            return
        self._start_stream(write_events(request, answer))
        if request.api == 'chat':
            self._send_chunk(b'data: [DONE]\n\n')
        self._send_chunk(b'')

    def _fail(self, failure: Failure) -> None:
        error = {'message': failure.message, 'type': 'scripted', 'param': None, 'code': None}
        # Without the header a client tries again by itself, seconds later.
        retry = {'x-should-retry': 'true' if failure.retry else 'false'}
        self._send(failure.status, {'error': error}, retry)

    def _hang(self, request: ModelRequest, hang: Hang) -> None:
        if request.stream:
            answer = write_answer(request, ModelTurn(hang.after))
            self._start_stream(write_broken_stream(request, answer))
        self._model.hung.set()
        while not self._model.closing.wait(POLL_SECONDS):
            with contextlib.suppress(BlockingIOError):  # the client is still there
                if not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                    break
        self._model.hung.clear()

    def end_headers(self) -> None:
        # A client that is never closed, as in most agents, would otherwise leave its end open: a ResourceWarning.
        self.send_header('Connection', 'close')
        super().end_headers()

    def _send(self, status: int, body: Json, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _start_stream(self, events: Iterable[Json]) -> None:
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream; charset=utf-8')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        for event in events:
            name = f'event: {event["type"]}\n' if 'type' in event else ''
            self._send_chunk(f'{name}data: {json.dumps(event)}\n\n'.encode())

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b'%x\r\n%b\r\n' % (len(data), data))
