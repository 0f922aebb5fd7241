"""Our shell behind the SDK's own `ShellTool`, which models of the Responses API are trained on."""

from __future__ import annotations

from typing import Any

from agents import (
    RunContextWrapper,
    ShellActionRequest,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellCommandRequest,
    ShellResult,
    ShellTool,
)

from anyshell import ApprovalRequired, CommandDenied, CommandError, Decision, ShellSession

NOT_RUN = 126
"""The exit code of a command that was found and could not be executed (POSIX 2.8.2)."""


def shell_tool(session: ShellSession) -> ShellTool:
    """A `ShellTool` that runs its commands in a session: `Agent(tools=[shell_tool(shell.session)])`.

    For models of the Responses API only; function tools, `ShellTools.tools()`, work with all. The commands of a call run
    one after the other; after one that is denied the others don't run.
    """

    async def execute(request: ShellCommandRequest) -> ShellResult:
        action, call_id = request.data.action, request.data.call_id
        approved = request.ctx_wrapper.is_tool_approved(tool.name, call_id) is True
        seconds = None if action.timeout_ms is None else action.timeout_ms / 1000
        outputs: list[ShellCommandOutput] = []
        for command in action.commands:
            output = await _run(session, command, seconds, approved=approved)
            outputs.append(output)
            if output.exit_code == NOT_RUN and output.provider_data is None:
                break
        return ShellResult(outputs, max_output_length=action.max_output_length)

    async def needs_approval(
        _context: RunContextWrapper[Any], action: ShellActionRequest, _call_id: str
    ) -> bool:
        policy = session.policy()
        verdicts = [policy.check(command).decision for command in action.commands]
        # What is denied anyway needs nobody's answer.
        return session.options.on_ask == 'ask' and max(verdicts, default=None) is Decision.ASK

    tool = ShellTool(executor=execute, needs_approval=needs_approval)
    return tool


async def _run(
    session: ShellSession, command: str, timeout: float | None, *, approved: bool
) -> ShellCommandOutput:
    try:
        result = await session.run(command, timeout=timeout, approved=approved)
    except ApprovalRequired as ask:
        return _not_run(command, ask.unanswered())
    except (CommandDenied, CommandError) as error:
        return _not_run(command, str(error))
    stopped = result.timed_out is not None
    return ShellCommandOutput(
        stdout=result.stdout,
        stderr=result.stderr,
        outcome=ShellCallOutcome('timeout' if stopped else 'exit', result.exit_code),
        command=command,
        provider_data={'cwd': result.cwd, 'duration_seconds': round(result.duration, 6)},
    )


def _not_run(command: str, reason: str) -> ShellCommandOutput:
    return ShellCommandOutput('', reason, ShellCallOutcome('exit', NOT_RUN), command)
