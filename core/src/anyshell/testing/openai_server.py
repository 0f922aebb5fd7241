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
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self, cast

from anyshell.testing.openai_script import (
    Answer,
    Failure,
    Hang,
    Script,
    check_script,
    read_turn,
)
from anyshell.testing.openai_wire import (
    Json,
    ModelRequest,
    ModelTurn,
    RefusedError,
    ToolCall,
    read_body,
    read_request,
    write_answer,
    write_broken_stream,
    write_events,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and what the script answered; each call of a turn is a `ToolCall` with its id."""

    request: ModelRequest
    answer: ModelTurn | Failure | Hang


class OpenAIServer:
    """A scripted model behind OpenAI's HTTP API, on the loopback interface.

    The script is a sequence of turns, one for each request in the order of their arrival; or a function that makes
    a turn from the request, which is what several clients at once need. A turn of the sequence may be such a function
    too. A request after the last turn is refused. An exception in such a function, and what it makes that is no turn,
    reaches the client as status 500 and is raised at the end of the `with` block; where the block itself raised, it
    is a note on that.

    Use it in a `with` block, once. What it has seen can be read from any thread, also after the block.

    Args:
        script: The turns, or the function that makes them.

    Attributes:
        base_url: What a client takes as `base_url`; empty until the block is entered.
        hung: Set while a client waits because of a `Hang`.

    Raises:
        TypeError: If the script is neither, or one of its turns can't be; the error names the turn by its number.
        RuntimeError: On entering the block, if that was done before.
    """

    def __init__(self, script: Script) -> None:
        check_script(script)
        self._model = _Model(script)
        self._http: _HttpServer | None = None
        self._thread: threading.Thread | None = None
        self.base_url = ''
        self.hung = self._model.hung

    def __enter__(self) -> Self:
        if self.base_url:
            raise RuntimeError(
                'An OpenAIServer serves one `with` block; make another for the next.'
            )
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
        if (cause := self._model.error) is None:
            return
        if error is None:
            raise cause
        error.add_note(f'The script of the OpenAIServer failed, {_told(cause)}')

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead OpenAI's own client here, and keep the traces of the OpenAI Agents SDK from OpenAI."""
        return {
            'OPENAI_BASE_URL': self.base_url,
            'OPENAI_API_KEY': 'loopback',
            'OPENAI_AGENTS_DISABLE_TRACING': '1',
        }

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
        return self.requests[-1].results if self.requests else ()

    @property
    def turns_left(self) -> int:
        """How many turns of the script no request has taken; 0 where a function makes them."""
        return self._model.turns_left


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

    @property
    def turns_left(self) -> int:
        return 0 if callable(self._script) else len(self._script) - self._turns

    def answer(self, request: ModelRequest) -> ModelTurn | Failure | Hang:
        """Take the next turn from the script.

        Raises:
            RefusedError: If the script has ended.
        """
        with self._lock:
            turn, where = self._next()
        try:  # outside the lock: a function may wait for another client
            answer = read_turn(turn(request) if callable(turn) else turn, where)
        except BaseException as error:  # noqa: BLE001  (`pytest.fail` too; the end of the block raises it)
            answer = self.failure(error)
        with self._lock:
            if isinstance(answer, ModelTurn):
                calls = cast('tuple[ToolCall, ...]', answer.calls)
                answer = ModelTurn(answer.text, tuple(map(self._identified, calls)))
            self.exchanges.append(Exchange(request, answer))
        return answer

    def failure(self, error: BaseException) -> Failure:
        """What a client is told of an error that its author sees at the end of the block."""
        self.error = self.error or error
        return Failure(500, f'The script failed, {_told(error)}')

    def _next(self) -> tuple[Answer | Callable[[ModelRequest], Answer], str]:
        made = 'The turn that the function made'
        if callable(self._script):
            return self._script, made
        if not self.turns_left:
            turns = f'{self._turns} turn{"s" * (self._turns != 1)}'
            raise RefusedError(f'The script has {turns}, and all were taken.')
        turn = self._script[self._turns]
        self._turns += 1
        return turn, made if callable(turn) else f'Turn {self._turns}'

    def _identified(self, call: ToolCall) -> ToolCall:
        if call.call_id is not None:
            return call
        self._call_ids += 1
        return ToolCall(call.name, call.arguments, f'call_{self._call_ids}')


def _told(error: BaseException) -> str:
    return f'{type(error).__name__}: {error}'


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
        data = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        path = self.path.partition('?')[0]
        try:
            request = read_request(path, read_body(data), headers, self._model.stored)
            answer = self._model.answer(request)
        except RefusedError as error:
            self._fail(Failure(error.status, str(error)))
        except Exception as error:  # noqa: BLE001  (a client that gets no answer would try again)
            self._fail(self._model.failure(error))
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
