"""The policy over shell tools that are not ours, such as the vended `shell` or one of an MCP server."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from strands.hooks import BeforeToolCallEvent
from strands.interventions import Deny, InterventionHandler, OnError, Proceed, Transform

from anyshell import ApprovalRequired, CommandDenied, Guard
from strands_anyshell.approvals import NAME, Answer


class ShellPolicy(Guard, InterventionHandler):
    """Judges the commands of other shell tools, before they run.

        Agent(tools=[shell], interventions=[ShellPolicy(Policy.from_lists(denied_commands=['rm']))])

    What is denied reaches the model as the policy's sentence, after Strands' own `DENIED: `. A call that has to be approved
    interrupts the agent, with the same request and the same answers as `ShellPlugin`; only `always` is not known here.

    Args:
        policy: What judges; `ShellOptions(…).policy()` makes one from settings.
        tools: The names of the tools that it is about; `None` for every tool that has one of `arguments`.
        arguments: The names of the arguments that hold a command.
        on_ask: 'deny' denies a call that has to be approved, where nobody is there to ask.
    """

    @property
    def name(self) -> str:
        return 'anyshell-policy'

    @property
    def on_error(self) -> OnError:
        return 'deny'  # what could not be judged does not run

    def before_tool_call(
        self, event: BeforeToolCallEvent, **kwargs: Any
    ) -> Proceed | Deny | Transform:
        del kwargs
        try:
            self.judge(event.tool_use['name'], _input(event))
        except CommandDenied as denied:
            return Deny(str(denied))
        except ApprovalRequired as ask:
            # Asked while the action is applied: before 1.56 an interrupt out of this method was a failure of it.
            return Transform(apply=partial(self._ask, ask))
        return Proceed()

    def _ask(self, ask: ApprovalRequired, event: Any) -> None:
        given = _input(event)
        request = ask.request(event.tool_use['name'], given)
        answer = Answer.of(event.interrupt(NAME, reason=request))
        if not answer.approved:
            event.cancel_tool = ask.refused(answer.message)
        elif answer.command is not None:
            key = next(key for key in self.arguments if key in given)
            edited = {**given, key: answer.command}
            try:
                self.judge(event.tool_use['name'], edited, approved=True)
            except CommandDenied as denied:
                event.cancel_tool = str(denied)
            # A new object: the conversation keeps what the model has written.
            event.tool_use = {**event.tool_use, 'input': edited}


def _input(event: BeforeToolCallEvent) -> dict[str, Any]:
    given = event.tool_use['input']
    return cast('dict[str, Any]', given) if isinstance(given, dict) else {}
