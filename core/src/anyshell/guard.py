"""The policy over shell tools that are not ours: finds the command in a tool's arguments and judges it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from anyshell.errors import ApprovalRequired, CommandDenied
from anyshell.policy import Decision, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from anyshell.policy import Policy

COMMAND_ARGUMENTS = ('command', 'cmd', 'commands')
"""What the shell tools of the frameworks call the argument that holds the command, or the list of commands."""


def judge_call(
    policy: Policy,
    arguments: Mapping[str, Any],
    *,
    names: Sequence[str] = COMMAND_ARGUMENTS,
    on_ask: Literal['ask', 'deny'] = 'ask',
    approved: bool = False,
) -> Verdict:
    """Judge a call of a shell tool that is not ours.

    A list is judged as the words of one command, and as several commands if its argument is called `commands`.

    Args:
        policy: What judges.
        arguments: The arguments of the call.
        names: Which of them hold a command; a call with none of them is allowed.
        on_ask: 'deny' if nobody is there to ask.
        approved: Whether a person has approved the call.

    Raises:
        CommandDenied: If the policy denies a command, also after an approval.
        ApprovalRequired: If it asks about one, and the call is not approved.
    """
    verdicts = [policy.check(command) for command in _commands(arguments, names)]
    verdict = max(verdicts, default=Verdict(Decision.ALLOW), key=lambda found: found.decision)
    if verdict.decision is Decision.ASK and not approved:
        ask = ApprovalRequired(verdict)
        if on_ask == 'ask':
            raise ask
        verdict = replace(verdict, decision=Decision.DENY, reason=ask.unanswered())
    if verdict.decision is Decision.DENY:
        raise CommandDenied(verdict)
    return verdict


class Guard:
    """What is the same in the objects, such as a middleware, that frameworks take over shell tools that are not ours.

    An adapter's class inherits it first, then the framework's.

    Args:
        policy: What judges.
        tools: The names of the tools that it is about; `None` for every tool that has one of `arguments`.
        arguments: The names of the arguments that hold a command.
        on_ask: 'deny' denies a call that has to be approved, where nobody is there to ask.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        tools: Collection[str] | None = None,
        arguments: Sequence[str] = COMMAND_ARGUMENTS,
        on_ask: Literal['ask', 'deny'] = 'ask',
    ) -> None:
        super().__init__()  # the framework's
        self.policy = policy
        self.about = tools  # not `tools`: of some frameworks' objects these are the tools that they bring along
        self.arguments = arguments
        self.on_ask: Literal['ask', 'deny'] = on_ask

    def judge(self, tool: str, arguments: Mapping[str, Any], *, approved: bool = False) -> Verdict:
        """Judge a call, as `judge_call` does; a tool that this is not about may do anything.

        Args:
            tool: The tool's name.
            arguments: The arguments of the call.
            approved: Whether a person has approved the call.

        Raises:
            CommandDenied: If the policy denies a command, also after an approval.
            ApprovalRequired: If it asks about one, and the call is not approved.
        """
        if self.about is not None and tool not in self.about:
            return Verdict(Decision.ALLOW)
        return judge_call(
            self.policy, arguments, names=self.arguments, on_ask=self.on_ask, approved=approved
        )


def _commands(arguments: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, list | tuple):
            words = [str(word) for word in cast('Sequence[object]', value)]
            found += words if name == 'commands' else [shlex.join(words)]
    return found
