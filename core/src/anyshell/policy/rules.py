"""The rules of a policy, and the policy that asks each of them and takes the strictest answer."""

from __future__ import annotations

import enum
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_DENIED_COMMANDS = (
    'rm', 'rmdir', 'mkfs', 'dd', 'format', 'shutdown', 'reboot', 'halt', 'poweroff', 'init',
)  # fmt: skip

INTERACTIVE_COMMANDS = (
    'vi', 'vim', 'nano', 'emacs', 'less', 'more', 'top', 'htop', 'man', 'sudo', 'passwd', 'ssh', 'telnet', 'ftp',
    'su', 'nvim', 'sftp',
)  # fmt: skip


class Decision(enum.IntEnum):
    """What a policy says about a command line; the strictest of all parts wins."""

    ALLOW = 0
    ASK = 1
    DENY = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision with its reason."""

    decision: Decision
    reason: str = ''
    rule: str | None = None
    command: str = ''
    span: tuple[int, int] | None = None


class Policy:
    """Checks command lines."""

    def __init__(self, rules: Sequence[object] = (), *, shell: Literal['bash', 'sh'] = 'bash',
                 unresolved: Literal['deny', 'ask', 'allow'] = 'deny') -> None:
        self.rules = tuple(rules)
        self.shell = shell
        self.unresolved = unresolved
        self._allowed: tuple[str, ...] = ()
        self._denied: tuple[str, ...] = ()
        self._ask: tuple[str, ...] = ()
        self._operators: tuple[str, ...] = ()
        self._interactive = False

    @classmethod
    def from_lists(
        cls,
        *,
        allowed_commands: Sequence[str] = (),
        denied_commands: Sequence[str] = (),
        ask_commands: Sequence[str] = (),
        denied_operators: Sequence[str] = (),
        allow_interactive: bool = False,
        unresolved: Literal['deny', 'ask', 'allow'] = 'deny',
        shell: Literal['bash', 'sh'] = 'bash',
    ) -> Policy:
        policy = cls((), shell=shell, unresolved=unresolved)
        ask = tuple(ask_commands)
        denied = tuple(denied_commands)
        if denied_commands is DEFAULT_DENIED_COMMANDS:
            denied = () if allowed_commands else tuple(d for d in denied if d not in ask)
        policy._allowed = tuple(allowed_commands)
        policy._denied = denied
        policy._ask = ask
        policy._operators = tuple(denied_operators)
        policy._interactive = allow_interactive
        return policy

    def check(self, command: str) -> Verdict:
        """Decide on a command line."""
        lexer = shlex.shlex(command, posix=True, punctuation_chars='();<>|&\n')
        lexer.whitespace = ' \t\r'
        lexer.whitespace_split = True
        lexer.commenters = '#'
        try:
            tokens = list(lexer)
        except ValueError:
            return Verdict(Decision.DENY, 'The command is not valid shell syntax.', 'syntax', command)
        first = True
        worst = Verdict(Decision.ALLOW)
        for token in tokens:
            if token and all(c in '();<>|&\n' for c in token):
                if token in self._operators:
                    return Verdict(Decision.DENY, f'Shell operator {token!r} is not allowed.', 'denied_operators', token)
                first = '<' not in token and '>' not in token
                continue
            if not first or '=' in token:
                continue
            first = False
            name = token.rsplit('/', 1)[-1]
            if name in self._denied:
                return Verdict(Decision.DENY, f'Command {name!r} is denied.', 'denied_commands', token)
            if not self._interactive and name in INTERACTIVE_COMMANDS:
                return Verdict(Decision.DENY, 'Interactive commands are not allowed.', 'allow_interactive', token)
            if name in self._ask:
                worst = Verdict(Decision.ASK, f'Command {name!r} needs approval.', 'ask_commands', token)
            elif self._allowed and name not in (*self._allowed, 'cd', 'pwd', ':', 'true', 'false'):
                return Verdict(Decision.DENY, f'Command {name!r} is not in the allowed list.', 'allowed_commands', token)
        return worst
