"""The policy over function tools that are not ours, such as the `exec_command` of a `SandboxAgent`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, cast

from agents import (
    RunContextWrapper,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
)
from pydantic_core import from_json

from anyshell import COMMAND_ARGUMENTS, ApprovalRequired, CommandDenied, Policy, judge_call


def shell_guardrail(
    policy: Policy,
    *,
    arguments: Sequence[str] = COMMAND_ARGUMENTS,
    on_ask: Literal['ask', 'deny'] = 'ask',
) -> ToolInputGuardrail[Any]:
    """A guardrail that judges a tool's command: `tool.tool_input_guardrails = [shell_guardrail(policy)]`.

    The model reads the policy's sentence, the run goes on, and `result.tool_input_guardrail_results` is the record of
    all verdicts. What has to be approved does not run without it: give the tool `needs_approval=asks(policy)` too.

    Args:
        policy: What judges; `ShellOptions(…).policy()` makes one from settings.
        arguments: The names of the arguments that hold a command.
        on_ask: 'deny' denies what would have to be approved, also when it was.
    """

    def anyshell_policy(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        context = data.context
        answer = context.is_tool_approved(context.qualified_tool_name, context.tool_call_id)
        try:
            verdict = judge_call(
                policy,
                _arguments(context.tool_arguments),
                names=arguments,
                on_ask='deny',
                approved=answer is True and on_ask == 'ask',
            )
        except CommandDenied as denied:
            return ToolGuardrailFunctionOutput.reject_content(str(denied), denied.facts)
        facts = {'decision': verdict.decision.name.lower(), 'rule': verdict.rule}
        return ToolGuardrailFunctionOutput.allow(facts)

    return ToolInputGuardrail(anyshell_policy)


def asks(
    policy: Policy, *, arguments: Sequence[str] = COMMAND_ARGUMENTS
) -> Callable[[RunContextWrapper[Any], dict[str, Any], str], Awaitable[bool]]:
    """What a tool takes as `needs_approval`, so that a run pauses for a command that the policy asks about."""

    async def needs_approval(
        _context: RunContextWrapper[Any], given: dict[str, Any], _call_id: str
    ) -> bool:
        try:
            judge_call(policy, given, names=arguments)
        except ApprovalRequired:
            return True
        except CommandDenied:
            pass  # the guardrail says so, nobody needs to be asked
        return False

    return needs_approval


def _arguments(text: str) -> dict[str, Any]:
    try:
        given = from_json(text)
    except ValueError:
        return {}  # the tool can't run it either
    return cast('dict[str, Any]', given) if isinstance(given, dict) else {}
