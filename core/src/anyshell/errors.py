"""Every error that anyshell raises, in one tree with two branches.

A `CommandError` speaks to the model: its text is a sentence that says what to do next, and another call can succeed.
Any other `AnyshellError` speaks to the developer: no call of the model can mend it. Each class also subclasses the
builtin that it resembles, so that code which knows nothing of anyshell still catches the right thing.

    AnyshellError
    ├── CommandError                      another call can succeed; str(error) is written for the model
    │   ├── CommandDenied                 (PermissionError) the policy says no
    │   ├── ApprovalRequired              (PermissionError) the policy wants a person to say yes
    │   ├── InvalidCommand                (ValueError) a text that no shell can run, or a bad argument
    │   ├── UnknownCommandID              (LookupError) no job of this session has that ID
    │   ├── JobsRefused                   (RuntimeError) too many jobs, or a sandbox that can't keep any
    │   └── WorkingDirectoryGone          (FileNotFoundError)
    ├── OptionError                       (ValueError) a setting with a value that is not allowed
    ├── PolicyError                       (ValueError) a rule or a policy file that can't be used
    ├── SessionClosed                     (RuntimeError) a call after `aclose`
    └── SandboxError                      (OSError) the place where commands run can't do what was asked
        ├── SandboxClosed                 (SessionClosed) a call after its `aclose`
        ├── SandboxUnavailable            a program is missing, an engine is down, a host refuses
        ├── SandboxTimeoutError           (TimeoutError) with the partial output
        └── SandboxPathNotFoundError      (FileNotFoundError)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anyshell.policy import Verdict

__all__ = [
    'AnyshellError',
    'ApprovalRequired',
    'CommandDenied',
    'CommandError',
    'InvalidCommand',
    'JobsRefused',
    'OptionError',
    'PolicyError',
    'SandboxClosed',
    'SandboxError',
    'SandboxPathNotFoundError',
    'SandboxTimeoutError',
    'SandboxUnavailable',
    'SessionClosed',
    'UnknownCommandID',
    'WorkingDirectoryGone',
]


class AnyshellError(Exception):
    """The root of all errors of this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with the message alone, which most classes here do not take.
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(
    kind: type[AnyshellError], args: tuple[Any, ...], state: dict[str, Any]
) -> AnyshellError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class CommandError(AnyshellError):
    """Raised when a call of the model can't be done; `str(error)` tells the model what to do instead."""


class CommandDenied(CommandError, PermissionError):
    """Raised when the policy denies a command, also after an approval.

    Attributes:
        verdict: The policy's decision, with the rule, the matched part and its place.
    """

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict

    @property
    def facts(self) -> dict[str, Any]:
        """What a reply's facts would be."""
        return _facts(self.verdict)


class ApprovalRequired(CommandError, PermissionError):
    """Raised when the policy asks for a person's approval and the call carries none.

    Attributes:
        verdict: The policy's decision, with the rule, the matched part and its place.
    """

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict

    @property
    def facts(self) -> dict[str, Any]:
        """What a reply's facts would be."""
        return _facts(self.verdict)

    def request(self, tool: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """What a person needs to decide, as plain data that survives JSON.

        Args:
            tool: The tool's name.
            arguments: The arguments of the call.
        """
        return {
            'tool': tool,
            'arguments': dict(arguments),
            'command': arguments.get('command', ''),
            'part': self.verdict.command,
            'reason': self.verdict.reason,
            'rule': self.verdict.rule,
        }

    def refused(self, message: str = '') -> str:
        """The text for the model when a person has said no, with that person's message."""
        said = f': {message}' if message else '.'
        return f'A person denied this command{said}\nIt has not run; ask before you try it another way.'

    @staticmethod
    def edited(command: object, text: str) -> str:
        """The text for the model when the command that ran is another than its own, on top of the call's text."""
        return f'[A person changed the command; this ran: {command!r}]\n{text}'

    def unanswered(self) -> str:
        """The text for the model when nobody is there to ask."""
        return f'{self} Nobody is there to approve it, so it is denied; do it another way.'


def _facts(verdict: Verdict) -> dict[str, Any]:
    return {'decision': verdict.decision.name.lower(), 'rule': verdict.rule}


class InvalidCommand(CommandError, ValueError):
    """Raised when a command or an argument can't be used at all, such as a NUL character or a negative timeout."""


class UnknownCommandID(CommandError, LookupError):
    """Raised when an ID names no background command of this session; `known` lists those that do."""

    def __init__(self, command_id: str, known: tuple[str, ...]) -> None:
        super().__init__(f'unknown command ID {command_id!r}')
        self.command_id = command_id
        self.known = known


class JobsRefused(CommandError, RuntimeError):
    """Raised when no further background command can be started."""


class WorkingDirectoryGone(CommandError, FileNotFoundError):
    """Raised when the directory in which a command should start is no longer there; nothing has run."""


class OptionError(AnyshellError, ValueError):
    """Raised at construction when a setting has a value that is not allowed.

    Args:
        option: The setting's name.
        value: What was given.
        allowed: What would be right, as the end of the sentence "it must be …".
    """

    def __init__(self, option: str, value: object, allowed: str) -> None:
        super().__init__(f'{option}={value!r} is not allowed: it must be {allowed}')
        self.option = option
        self.value = value


class PolicyError(AnyshellError, ValueError):
    """Raised when a rule or a policy file can't be used; the message names the rule and the place."""


class SessionClosed(AnyshellError, RuntimeError):
    """Raised when a session, or the sandbox under it, is used after it was closed."""


class SandboxError(AnyshellError, OSError):
    """Raised when a sandbox can't do what was asked; the text says whether a command may still be running."""


class SandboxClosed(SessionClosed, SandboxError):
    """Raised when a sandbox is used after it was closed."""

    def __init__(self) -> None:
        super().__init__('this sandbox is closed; make a new one to run commands')


class SandboxUnavailable(SandboxError):
    """Raised when a sandbox can't be reached or started; the text says what to install, start or change."""


class SandboxTimeoutError(SandboxError, TimeoutError):
    """Raised by the `execute` methods of a sandbox when the time limit has passed; the command has been ended.

    Args:
        seconds: The limit that elapsed.
        stdout: What the command had written to standard output (its last 8 MiB).
        stderr: What the command had written to standard error (its last 8 MiB).
    """

    def __init__(self, seconds: float | None, stdout: str = '', stderr: str = '') -> None:
        super().__init__(f'Execution timed out after {seconds} seconds')
        self.seconds = seconds
        self.stdout = stdout
        self.stderr = stderr


class SandboxPathNotFoundError(SandboxError, FileNotFoundError):
    """Raised by `list_files` when the path does not exist or is not a directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f'Path not found: {path}')
        self.path = path
