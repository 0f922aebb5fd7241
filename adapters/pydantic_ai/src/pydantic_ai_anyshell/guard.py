"""`ShellPolicy`: the policy over shell tools that are not ours."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic_ai import ApprovalRequired, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import AgentDepsT, ToolDefinition

import anyshell
from anyshell import COMMAND_ARGUMENTS, CommandDenied, Policy, judge_call


@dataclass
class ShellPolicy(AbstractCapability[AgentDepsT]):
    """Judges the commands of other shell tools: of the harness, of an MCP server, of your own.

        Agent(…, capabilities=[OtherShell(), ShellPolicy(Policy.from_lists(denied_commands=['rm']))])

    Attributes:
        policy: What judges; `ShellOptions(…).policy()` makes one from settings.
        tools: The names of the tools that it is about; `None` for every tool that has one of `arguments`.
        arguments: The names of the arguments that hold a command.
        on_ask: 'ask' defers a call that has to be approved; 'deny' denies it, where nobody is there to ask.
    """

    policy: Policy
    tools: Collection[str] | None = None
    arguments: Sequence[str] = COMMAND_ARGUMENTS
    on_ask: Literal['ask', 'deny'] = 'ask'

    @classmethod
    def get_serialization_name(cls) -> None:
        return None  # a policy is no plain data

    async def before_tool_execute(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
    ) -> dict[str, Any]:
        if self.tools is None or tool_def.name in self.tools:
            try:
                judge_call(
                    self.policy,
                    args,
                    names=self.arguments,
                    on_ask=self.on_ask,
                    approved=ctx.tool_call_approved,
                )
            except CommandDenied as denied:
                # Not `ModelRetry`: the retry budget is the other tool's, and two denials in a row could end the run.
                raise ToolFailed(str(denied)) from denied
            except anyshell.ApprovalRequired as ask:
                raise ApprovalRequired(metadata=ask.request(call.tool_name, args)) from ask
        return args
