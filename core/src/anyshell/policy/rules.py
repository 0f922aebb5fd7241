"""The rules of a policy, and the policy that asks each of them and takes the strictest answer."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from anyshell.errors import PolicyError
from anyshell.policy.calls import Call, Findings, Setting, Unresolved, find
from anyshell.policy.entries import by_program, parse_all
from anyshell.policy.syntax import MAX_BYTES, NotUnderstood

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from anyshell.policy.syntax import Span

DEFAULT_DENIED_COMMANDS = (
    'rm', 'rmdir', 'mkfs', 'dd', 'format', 'shutdown', 'reboot', 'halt', 'poweroff', 'init',
)  # fmt: skip
"""Destructive programs that are denied unless the options say otherwise."""

INTERACTIVE_COMMANDS = (
    'vi', 'vim', 'nano', 'emacs', 'less', 'more', 'top', 'htop', 'man', 'sudo', 'passwd', 'ssh', 'telnet', 'ftp',
    'su', 'nvim', 'sftp',
)  # fmt: skip
"""Programs that wait for a person at a terminal."""

# Each operator that can be denied, with the tokens that it covers.
OPERATORS: dict[str, frozenset[str]] = {
    ';': frozenset((';',)),
    '&': frozenset(('&',)),
    '&&': frozenset(('&&',)),
    '||': frozenset(('||',)),
    '|': frozenset(('|', '|&')),
    '|&': frozenset(('|&',)),
    '>': frozenset(('>', '>>', '>|', '>&', '&>', '&>>', '<>', '>(')),
    '>>': frozenset(('>>', '&>>')),
    '>|': frozenset(('>|',)),
    '>&': frozenset(('>&',)),
    '&>': frozenset(('&>', '&>>')),
    '&>>': frozenset(('&>>',)),
    '<': frozenset(('<', '<>')),
    '<>': frozenset(('<>',)),
    '<&': frozenset(('<&',)),
    '<<': frozenset(('<<', '<<-')),
    '<<-': frozenset(('<<-',)),
    '<<<': frozenset(('<<<',)),
    '<(': frozenset(('<(',)),
    '>(': frozenset(('>(',)),
    '$(': frozenset(('$(', '`')),
    '`': frozenset(('`',)),
    '(': frozenset(('(',)),
    '{': frozenset(('{',)),
    '!': frozenset(('!',)),
    '\n': frozenset(('\n',)),
}

# Commands of the shell that need no entry in a list of allowed commands: they change only the shell's own course, or
# run what is judged anyway.
FREE_COMMANDS = frozenset((
    'cd', 'pwd', ':', 'true', 'false', 'break', 'continue', 'return', 'exit', 'command', 'builtin', 'exec', 'eval',
))  # fmt: skip

# Variables that decide which code is loaded or run, whatever their value.
_LOADED = re.compile(
    r'PATH|LD_.*|DYLD_.*|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|BASH_FUNC_.*|BASH_LOADABLES_PATH|BASH_ALIASES|BASH_CMDS|'
    r'GIT_SSH|GIT_SSH_COMMAND|GIT_EXTERNAL_DIFF|GIT_EXEC_PATH|GIT_PROXY_COMMAND|GIT_CONFIG_(?:COUNT|PARAMETERS|KEY_.*|VALUE_.*)|.*_ASKPASS|EXECIGNORE'
)
# Variables whose value is a command line: what it runs is judged.
RUN_AS_CODE = frozenset((
    'PAGER', 'GIT_PAGER', 'MANPAGER', 'SYSTEMD_PAGER', 'EDITOR', 'VISUAL', 'GIT_EDITOR', 'GIT_SEQUENCE_EDITOR',
    'SUDO_EDITOR', 'SYSTEMD_EDITOR', 'FCEDIT', 'BROWSER', 'SHELL', 'LESSOPEN', 'LESSCLOSE', 'RSYNC_RSH', 'CVS_RSH',
))  # fmt: skip


class Decision(enum.IntEnum):
    """What a policy says about a command line; the strictest of all parts wins."""

    ALLOW = 0
    ASK = 1
    DENY = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy says about a command line, and why.

    Attributes:
        decision: Whether the line may run.
        reason: Sentences for the model: what was matched, and what is still allowed or how to write it plainly.
        rule: The name of the option that decided, or `None` when nothing objects.
        command: The matched part of the line.
        span: The place of that part in the line, as indices of the string.
        line: The whole line, where a session has judged it; it does not count when verdicts are compared.
    """

    decision: Decision
    reason: str = ''
    rule: str | None = None
    command: str = ''
    span: tuple[int, int] | None = None
    line: str = field(default='', compare=False)


ALLOWED = Verdict(Decision.ALLOW)


class Rule(Protocol):
    """Looks at what a line would run and says what it objects to.

    Attributes:
        name: The option that the rule comes from, or a name of your own; a verdict tells it.
    """

    @property
    def name(self) -> str: ...

    def check(self, findings: Findings) -> Iterable[Verdict]:
        """Every objection to the line; pure, total and deterministic, as the policy is.

        Args:
            findings: What the line holds: its `calls` (with `name`, `path`, `arguments`, `via`, `text` and `span`), the
                `settings` of variables, the `operators`, and what is `unresolved`, which the policy itself judges.
        """
        ...


def _listed(entries: Iterable[str]) -> str:
    names = [repr(entry) for entry in entries]
    if len(names) > 20:  # a sentence that a model still reads
        names = [*names[:20], f'{len(names) - 20} more']
    return ', '.join(names)


def _excerpt(text: str) -> str:
    text = text.strip()
    # As much as a sentence bears.
    return repr(text if len(text) <= 160 else f'{text[:120]} … {text[-30:]}')


class AskCommands:
    """Commands that run after a person's approval.

    Args:
        entries: The entries.

    Raises:
        PolicyError: When an entry can't match any command; the text names it and says what is allowed.
    """

    name = 'ask_commands'

    def __init__(self, entries: Sequence[str]) -> None:
        self.entries = parse_all(entries, self.name)
        self._named = by_program(self.entries)

    def matched(self, call: Call) -> bool:
        """Whether an entry matches for certain."""
        return any(entry.matches(call, exact=False) for entry in self._named.get(call.name, ()))

    def check(self, findings: Findings) -> Iterable[Verdict]:
        """Ask about each command that an entry matches, or may match."""
        for call in findings.calls:
            for entry in self._named.get(call.name, ()):
                found = entry.matches(call, exact=False)
                if found is False:
                    continue
                doubt = '' if found else ', whose arguments are not known before it runs,'
                reason = (
                    f'Command {call.name!r} needs approval. {_excerpt(call.text)}{doubt} matches the entry {entry.text!r} of '
                    f'{self.name}; a person decides whether it runs.'
                )
                yield Verdict(Decision.ASK, reason, self.name, call.text, call.span)
                break


class DeniedCommands:
    """Commands that never run.

    Args:
        entries: The entries.
        unless: What takes a command off this list; the default list steps back where approval is asked.

    Raises:
        PolicyError: When an entry can't match any command; the text names it and says what is allowed.
    """

    name = 'denied_commands'

    def __init__(self, entries: Sequence[str], *, unless: AskCommands | None = None) -> None:
        self.entries = parse_all(entries, self.name)
        self.unless = unless
        self._named = by_program(self.entries)

    def check(self, findings: Findings) -> Iterable[Verdict]:
        """Deny each command that an entry matches, or may match."""
        for call in findings.calls:
            for entry in self._named.get(call.name, ()):
                found = entry.matches(call, exact=False)
                if found is False or (self.unless is not None and self.unless.matched(call)):
                    continue
                doubt = '' if found else ', whose arguments are not known before it runs,'
                plainly = '' if found else ' Write its arguments plainly, and variables in quotes.'
                reason = (
                    f'Command {call.name!r} is denied. {_excerpt(call.text)}{doubt}{_through(call)} matches the entry {entry.text!r} of '
                    f'{self.name}. All commands are allowed but {_listed(entry.text for entry in self.entries)}.{plainly}'
                )
                yield Verdict(Decision.DENY, reason, self.name, call.text, call.span)
                break


def _through(call: Call) -> str:
    return f' (run by {" ".join(call.via)})' if call.via else ''


class AllowedCommands:
    """When there is such a list, only its commands run.

    Args:
        entries: The entries.
        asked: Commands that count as listed, since approval is asked for them.

    Raises:
        PolicyError: When an entry can't match any command; the text names it and says what is allowed.
    """

    name = 'allowed_commands'

    def __init__(self, entries: Sequence[str], *, asked: AskCommands | None = None) -> None:
        self.entries = parse_all(entries, self.name)
        self.asked = asked
        self._named = by_program(self.entries)

    def allows(self, call: Call) -> bool:
        """Whether a command is listed, or needs no entry."""
        if call.weak or call.local or (call.name in FREE_COMMANDS and call.path == call.name):
            return True
        if any(entry.matches(call, exact=True) for entry in self._named.get(call.name, ())):
            return True
        return self.asked is not None and self.asked.matched(call)

    def check(self, findings: Findings) -> Iterable[Verdict]:
        """Deny each command that is not listed, and each variable that would change what a listed one runs."""
        for call in findings.calls:
            if not self.allows(call):
                reason = (
                    f'Command {call.name!r} is not in the allowed list. {_excerpt(call.text)}{_through(call)} is not covered by '
                    f'{self.name}. Allowed commands: {_listed(self._names())}.'
                )
                yield Verdict(Decision.DENY, reason, self.name, call.text, call.span)
        unread = {name for item in findings.unresolved for name in item.via}
        for setting in findings.settings:
            if not self._harmless(setting, unread):
                what = (
                    f'Variable {setting.name!r}'
                    if setting.name
                    else 'A variable whose name is not known'
                )
                reason = (
                    f'{what} decides which program runs, so it is not set in a list of allowed commands. Run '
                    f'{_excerpt(setting.text)} without it. Allowed commands: {_listed(self._names())}.'
                )
                yield Verdict(Decision.DENY, reason, self.name, setting.text, setting.span)

    def _names(self) -> list[str]:
        asked = self.asked.entries if self.asked else ()
        return [entry.text for entry in (*self.entries, *asked)]

    def _harmless(self, setting: Setting, unread: set[str]) -> bool:
        if not setting.name or _LOADED.fullmatch(setting.name):
            return False
        if setting.name not in RUN_AS_CODE:
            return True
        # What the value runs is judged as the rest of the line is, as far as it is known.
        return setting.value is not None and setting.name not in unread


class DeniedOperators:
    """Tokens of the shell's grammar that are refused; never text in quotes, tests or arithmetic.

    Args:
        operators: The operators; one covers its other forms too, as `>` does `>>`.

    Raises:
        PolicyError: When one is no operator that can be denied; the text lists those.
    """

    name = 'denied_operators'

    def __init__(self, operators: Sequence[str]) -> None:
        if isinstance(operators, str):
            raise PolicyError(
                f'{self.name} is the text {operators!r}: it must be a list such as [{operators!r}]'
            )
        for operator in operators:
            if operator not in OPERATORS:
                raise PolicyError(
                    f'{self.name} holds {operator!r}: an operator is one of {" ".join(map(repr, OPERATORS))}'
                )
        self.operators = tuple(operators)

    def check(self, findings: Findings) -> Iterable[Verdict]:
        """Deny each token that a denied operator covers."""
        for token, span in findings.operators:
            for operator in self.operators:
                if token in OPERATORS[operator]:
                    also = '' if token == operator else f' {token!r} is a form of it.'
                    reason = (
                        f'Shell operator {operator!r} is not allowed.{also} It stands at character {span[0]} and is refused by '
                        f'{self.name}. All operators are allowed but {_listed(self.operators)}; text in quotes is not an operator.'
                    )
                    yield Verdict(Decision.DENY, reason, self.name, token, span)
                    break


class NoInteractive:
    """Programs that wait for a person are refused, by their names."""

    name = 'allow_interactive'

    def check(self, findings: Findings) -> Iterable[Verdict]:
        """Deny each interactive program."""
        for call in findings.calls:
            if call.name in INTERACTIVE_COMMANDS:
                reason = (
                    f'Interactive commands are not allowed. {call.name!r} in {_excerpt(call.text)}{_through(call)} expects a person at a '
                    'terminal (allow_interactive is off). Use a command that needs none: cat, sed -n, git --no-pager, a script.'
                )
                yield Verdict(Decision.DENY, reason, self.name, call.text, call.span)


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a policy came to its verdict on a command line.

    Attributes:
        command: The line.
        verdict: The winner.
        objections: What each rule said, in the order of the rules.
        findings: Every command that the line would run, with the programs that run it; variables; operators.
    """

    command: str
    verdict: Verdict
    objections: tuple[Verdict, ...]
    findings: Findings


class Policy:
    """Decides whether command lines may run.

    Args:
        rules: The rules; the strictest answer wins.
        shell: The shell that runs the lines: `bash -p -c`, or a POSIX `sh -c`, in which bash-only syntax is refused.
        unresolved: What to do with commands and code that are not known before they run.

    Raises:
        PolicyError: When `shell` or `unresolved` is none of the values that it may have.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        *,
        shell: Literal['bash', 'sh'] = 'bash',
        unresolved: Literal['deny', 'ask', 'allow'] = 'deny',
    ) -> None:
        if shell not in ('bash', 'sh'):
            raise PolicyError(f"shell is {shell!r}: it must be 'bash' or 'sh'")
        if unresolved not in ('deny', 'ask', 'allow'):
            raise PolicyError(f"unresolved is {unresolved!r}: it must be 'deny', 'ask' or 'allow'")
        self.rules = tuple(rules)
        self.shell: Literal['bash', 'sh'] = shell
        self.unresolved: Literal['deny', 'ask', 'allow'] = unresolved
        self._unresolved = {'deny': Decision.DENY, 'ask': Decision.ASK, 'allow': Decision.ALLOW}[
            unresolved
        ]
        # What is not known matters only to rules about what runs: with none of them it can't evade anything.
        about_names = [
            rule for rule in self.rules if not isinstance(rule, (NoInteractive, DeniedOperators))
        ]
        about_code = [rule for rule in self.rules if not isinstance(rule, NoInteractive)]
        self._about = {'name': bool(about_names), 'code': bool(about_code)}
        # With a list of allowed commands the values of such variables are commands of the line.
        listed = any(isinstance(rule, AllowedCommands) for rule in self.rules)
        self._judged = RUN_AS_CODE if listed else frozenset[str]()

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
        """The policy that these options describe.

        When `denied_commands` is the object `DEFAULT_DENIED_COMMANDS`, it steps back: entirely when there are allowed
        commands, and for commands that an entry of `ask_commands` matches. Any other list is explicit and always wins.

        Raises:
            PolicyError: When an entry or an operator can't be used; the text names it and says what is allowed.
        """
        default = denied_commands is DEFAULT_DENIED_COMMANDS
        rules: list[Rule] = []
        ask = AskCommands(ask_commands) if ask_commands else None
        if denied_commands and not (default and allowed_commands):
            rules.append(DeniedCommands(denied_commands, unless=ask if default else None))
        if allowed_commands:
            rules.append(AllowedCommands(allowed_commands, asked=ask))
        if denied_operators:
            rules.append(DeniedOperators(denied_operators))
        if not allow_interactive:
            rules.append(NoInteractive())
        if ask is not None:
            rules.append(ask)
        return cls(rules, shell=shell, unresolved=unresolved)

    @classmethod
    def from_file(cls, path: str | Path, *, shell: Literal['bash', 'sh'] | None = None) -> Policy:
        """The policy of a YAML file, whose examples are checked.

        Args:
            path: The file.
            shell: Takes the place of the shell that the file names.

        Raises:
            PolicyError: When the file can't be used; the text names the place.
        """
        from anyshell.policy.file import load  # noqa: PLC0415  # it needs this module, and YAML

        return load(path).policy(shell=shell)

    def check(self, command: str, *, open_input: bool = False) -> Verdict:
        """Decide whether a command line may run. Pure, total and deterministic: it never raises.

        Args:
            command: The line.
            open_input: Whether somebody will write to its standard input. A shell that reads its commands from there
                runs what is not known before; otherwise standard input is empty.
        """
        return self.explain(command, open_input=open_input).verdict

    def explain(self, command: str, *, open_input: bool = False) -> Explanation:
        """Decide, and keep everything that led to the decision; arguments as `check`."""
        refused = _unreadable(command)
        if refused is not None:
            return Explanation(command[:MAX_BYTES], refused, (refused,), Findings())
        try:
            stdin = 'unknown' if open_input else 'empty'
            findings = find(command, shell=self.shell, stdin=stdin, judged=self._judged)
        except NotUnderstood as error:
            verdict = _syntax(command, error.message, error.place)
            return Explanation(command, verdict, (verdict,), Findings())
        except RecursionError:
            # The depth cap comes first, unless the caller itself is deep in its stack.
            verdict = _syntax(command, 'it is nested too deeply', (0, 0))
            return Explanation(command, verdict, (verdict,), Findings())
        objections = [verdict for rule in self.rules for verdict in rule.check(findings)]
        objections += self._judge(findings.unresolved)
        winner = ALLOWED
        for verdict in objections:
            if verdict.decision > winner.decision:
                winner = verdict
        return Explanation(command, winner, tuple(objections), findings)

    def _judge(self, unresolved: Iterable[Unresolved]) -> list[Verdict]:
        return [
            Verdict(
                self._unresolved,
                f'{_excerpt(item.text)} is not known before it runs. {item.reason}'
                + (
                    f' It needs approval (unresolved is {self.unresolved!r}).'
                    if self._unresolved is Decision.ASK
                    else ''
                ),
                'unresolved',
                item.text,
                item.span,
            )
            for item in unresolved
            if self._about[item.what]
        ]


def _unreadable(command: str) -> Verdict | None:
    """A verdict on a text that no shell can be given, or `None`."""
    try:
        size = len(command.encode()) if len(command) <= MAX_BYTES else len(command)
    except UnicodeEncodeError as error:
        return _syntax(
            command, 'it holds a character that can not be encoded', (error.start, error.start + 1)
        )
    if size > MAX_BYTES:
        reason = f'The command is too long: {size} bytes, and {MAX_BYTES} are allowed. Write its text to a file in parts, then run the file.'
        return Verdict(Decision.DENY, reason, 'syntax', '', (0, len(command)))
    at = command.find('\0')
    return None if at < 0 else _syntax(command, 'it holds a NUL character', (at, at + 1))


def _syntax(command: str, message: str, place: Span) -> Verdict:
    start = min(place[0], len(command))
    near = command[max(0, start - 20) : start + 20]
    line = command.count('\n', 0, start) + 1
    reason = (
        f'The command is not understood: {message}, at character {start} (line {line}), near {near!a}. '
        'Nothing was run. Write it in plain shell syntax, perhaps as several commands.'
    )
    return Verdict(Decision.DENY, reason, 'syntax', near, place)
