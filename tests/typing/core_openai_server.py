"""What a script may be written as, for a type checker."""

from typing import assert_type

from anyshell.testing import Failure, Hang, ModelRequest, ModelTurn, OpenAIServer, ToolCall


def turn(request: ModelRequest) -> str | list[tuple[str, dict[str, str]]]:
    if request.tool_results:
        return request.prompt
    return [('run_command', {'command': 'ls'})]


assert_type(OpenAIServer(turn).tool_results(), tuple[str, ...])
OpenAIServer(
    [
        'A text.',
        [('run_command', {'command': 'ls', 'timeout_seconds': 3})],
        [('run_command', '{broken', 'an_id'), ToolCall('check_command')],
        ModelTurn('A text and a call.', [('stop_command', {'command_id': 'a'})]),
        turn,
        lambda request: request.prompt,
        Failure(429, retry=True),
        Hang(after='Well, '),
    ]
)
