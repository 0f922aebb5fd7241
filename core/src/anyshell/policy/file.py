"""Policy files: the options of a policy in YAML, with examples that are checked when the file is loaded."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from anyshell.errors import PolicyError
from anyshell.policy.calls import find
from anyshell.policy.entries import Entry
from anyshell.policy.rules import (
    DEFAULT_DENIED_COMMANDS,
    INTERACTIVE_COMMANDS,
    OPERATORS,
    DeniedOperators,
    Policy,
)
from anyshell.policy.syntax import NotUnderstood

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LISTS = ('allowed_commands', 'denied_commands', 'ask_commands', 'denied_operators')
_CHOICES: dict[str, tuple[object, ...]] = {
    'allow_interactive': (True, False),
    'unresolved': ('deny', 'ask', 'allow'),
    'shell': ('bash', 'sh'),
}


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One entry of a list in a policy file, with its examples and its line in the file."""

    option: str
    text: str
    line: int
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()

    def matches(self, command: str, shell: Literal['bash', 'sh']) -> bool:
        """Whether the entry matches anything that a line would run.

        Raises:
            NotUnderstood: When the line is outside the shell's grammar.
        """
        findings = find(command, shell=shell)
        if self.option == 'denied_operators':
            return any(token in OPERATORS[self.text] for token, _ in findings.operators)
        entry = Entry.parse(self.text, self.option)
        exact = self.option == 'allowed_commands'
        return any(entry.matches(call, exact=exact) for call in findings.calls)


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy file that was read.

    Attributes:
        path: Where it lies.
        settings: The options that are not lists.
        entries: The entries of its lists, in their order.
        lists: The lists that the file names; one that it does not name has its default.
    """

    path: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    entries: tuple[FileEntry, ...] = ()
    lists: frozenset[str] = frozenset()

    @property
    def shell(self) -> Literal['bash', 'sh']:
        """The shell that the file is for."""
        return self.settings.get('shell', 'bash')

    def options(self) -> dict[str, Any]:
        """The keywords of `Policy.from_lists`."""
        options = dict(self.settings)
        for name in self.lists:
            options[name] = tuple(entry.text for entry in self.entries if entry.option == name)
        if 'denied_commands' not in self.lists:
            options['denied_commands'] = DEFAULT_DENIED_COMMANDS
        return options

    def policy(self, *, shell: Literal['bash', 'sh'] | None = None) -> Policy:
        """The policy that the file describes."""
        options = self.options()
        if shell is not None:
            options['shell'] = shell
        return Policy.from_lists(**options)

    def failed_examples(self) -> list[str]:
        """A sentence for each example that does not hold."""
        failed: list[str] = []
        for entry in self.entries:
            for wanted, examples in ((True, entry.match), (False, entry.not_match)):
                for example in examples:
                    try:
                        found = entry.matches(example, self.shell)
                    except NotUnderstood as error:
                        failed.append(
                            f'{self._place(entry)}: the example {example!r} is not understood: {error.message}'
                        )
                        continue
                    if found != wanted:
                        verb = 'does not match' if wanted else 'matches'
                        failed.append(
                            f'{self._place(entry)}: {entry.text!r} {verb} its example {example!r}'
                        )
        return failed

    def unreachable(self) -> list[str]:
        """A sentence for each entry that can never decide anything, since another one always comes first."""
        found: list[str] = []
        for index, entry in enumerate(self.entries):
            reason = self._covered(index, entry)
            if reason:
                found.append(f'{self._place(entry)}: {entry.text!r} can never match: {reason}')
        return found

    def _covered(self, index: int, entry: FileEntry) -> str:
        words = (
            Entry.parse(entry.text, entry.option) if entry.option != 'denied_operators' else None
        )
        for other_index, other in enumerate(self.entries):
            if other is entry:
                continue
            same = other.option == entry.option
            if words is None:
                if (
                    same
                    and OPERATORS[entry.text] <= OPERATORS[other.text]
                    and (entry.text != other.text or other_index < index)
                ):
                    return f'{other.text!r} in line {other.line} covers it'
                continue
            wins = (
                other.option == 'denied_commands'
                or (same and entry.text != other.text)
                or (same and other_index < index)
            )
            if not wins or other.option == 'denied_operators':
                continue
            outer = Entry.parse(other.text, other.option)
            shorter = words.arguments[: len(outer.arguments)] == outer.arguments
            if (
                outer.program == words.program
                and shorter
                and not (same and outer.arguments == words.arguments and other_index > index)
            ):
                return f'{other.text!r} of {other.option} in line {other.line} covers it'
        interactive = words is not None and words.program.rsplit('/', 1)[-1] in INTERACTIVE_COMMANDS
        if (
            interactive
            and entry.option != 'denied_commands'
            and not self.settings.get('allow_interactive', False)
        ):
            return 'it is interactive, and allow_interactive is off'
        return ''

    def _place(self, entry: FileEntry) -> str:
        return f'{self.path}, line {entry.line}, {entry.option}'


def load(path: str | Path) -> PolicyFile:
    """Read a policy file and check its examples.

    Raises:
        PolicyError: When the file can't be read, holds a key or a value that is not known, or an example does not
            hold; the text names the place.
    """
    loaded = read(path)
    if failed := loaded.failed_examples():
        raise PolicyError('; '.join(failed))
    return loaded


def read(path: str | Path) -> PolicyFile:
    """Read a policy file; its examples are not checked.

    Raises:
        PolicyError: When the file can't be read, or holds a key or a value that is not known.
    """
    try:
        text = Path(path).read_text(encoding='utf-8')
    except OSError as error:
        raise PolicyError(
            f'{path}: the policy file can not be read: {error.strerror or error}'
        ) from error
    except UnicodeDecodeError as error:
        raise PolicyError(f'{path}: the policy file is not UTF-8: {error.reason}') from error
    return parse(text, str(path))


def parse(text: str, path: str = 'policy') -> PolicyFile:
    """Read the text of a policy file; its examples are not checked.

    Raises:
        PolicyError: When it holds a key or a value that is not known.
    """
    import yaml  # noqa: PLC0415  # only those who use policy files pay for it

    try:
        root = cast('Any', yaml.compose(text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]  # PyYAML's stubs
    except yaml.YAMLError as error:
        where = str(error).replace('"<unicode string>"', path)
        raise PolicyError(f'{path}: not valid YAML: {where}') from error
    if root is None:
        return PolicyFile(path)
    loader = yaml.SafeLoader('')
    settings: dict[str, Any] = {}
    entries: list[FileEntry] = []
    lists: set[str] = set()
    for name, node, line in _pairs(root, f'{path}, line 1', (*_LISTS, *_CHOICES)):
        place = f'{path}, line {line}'
        if name in settings or name in lists:
            raise PolicyError(f'{place}: {name} stands twice')
        if name in _CHOICES:
            value = cast('object', loader.construct_object(node, deep=True))  # pyright: ignore[reportUnknownMemberType]  # PyYAML's stubs
            if not any(
                value is choice or (isinstance(choice, str) and value == choice)
                for choice in _CHOICES[name]
            ):
                allowed = ', '.join(map(_yaml, _CHOICES[name]))
                raise PolicyError(f'{place}: {name} is {value!r}: it must be one of {allowed}')
            settings[name] = value
            continue
        lists.add(name)
        if node.id != 'sequence':
            raise PolicyError(f'{place}: {name} must be a list')
        entries += [_entry(name, item, path) for item in node.value]
    loader.dispose()  # pyright: ignore[reportUnknownMemberType]  # PyYAML's stubs
    file = PolicyFile(path, settings, tuple(entries), frozenset(lists))
    file.policy()
    return file


def _yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pairs(node: Any, place: str, known: Sequence[str]) -> list[tuple[str, Any, int]]:
    if node.id != 'mapping':
        raise PolicyError(f'{place}: a mapping of {", ".join(known)} belongs here')
    found: list[tuple[str, Any, int]] = []
    for key, value in node.value:
        name = str(key.value)
        line = key.start_mark.line + 1
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f'; did you mean {close[0]!r}?' if close else f'; known are {", ".join(known)}'
            raise PolicyError(
                f'{place.rsplit(", line", 1)[0]}, line {line}: the key {name!r} is not known{hint}'
            )
        found.append((name, value, line))
    return found


def _entry(option: str, node: Any, path: str) -> FileEntry:
    line = node.start_mark.line + 1
    place = f'{path}, line {line}'
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()
    if node.id == 'mapping':
        key = 'operator' if option == 'denied_operators' else 'command'
        text = None
        for name, value, _ in _pairs(node, place, (key, 'match', 'not_match')):
            if name == key:
                text = _text(value, f'{place}: {key}')
            elif value.id != 'sequence':
                raise PolicyError(f'{place}: {name} must be a list of command lines')
            elif name == 'match':
                match = tuple(_text(item, f'{place}: {name}') for item in value.value)
            else:
                not_match = tuple(_text(item, f'{place}: {name}') for item in value.value)
        if text is None:
            raise PolicyError(f'{place}: the key {key!r} is missing')
    else:
        text = _text(node, f'{place}: {option}')
    try:
        if option == 'denied_operators':
            DeniedOperators((text,))
        else:
            Entry.parse(text, option)
    except PolicyError as error:
        raise PolicyError(f'{place}: {error}') from error
    return FileEntry(option, text, line, match, not_match)


def _text(node: Any, place: str) -> str:
    if node.id != 'scalar':
        raise PolicyError(f'{place}: a text belongs here')
    return str(node.value)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a policy file, for editors."""
    lines = {'type': 'array', 'items': {'type': 'string'}}

    def entries(key: str, description: str, text: dict[str, Any]) -> dict[str, Any]:
        full = {
            'type': 'object',
            'properties': {
                key: text,
                'match': {**lines, 'description': 'Command lines that this entry must match.'},
                'not_match': {
                    **lines,
                    'description': 'Command lines that this entry must not match.',
                },
            },
            'required': [key],
            'additionalProperties': False,
        }
        return {'type': 'array', 'description': description, 'items': {'anyOf': [text, full]}}

    command = {
        'type': 'string',
        'description': "A program, or a program and its first arguments: 'git push'.",
    }
    operator = {'enum': list(OPERATORS)}
    return {
        '$schema': 'https://json-schema.org/draft/2020-12/schema',
        'title': 'anyshell policy',
        'type': 'object',
        'properties': {
            'allowed_commands': entries('command', 'When not empty, only these run.', command),
            'denied_commands': entries(
                'command', 'These never run. The default holds ten destructive programs.', command
            ),
            'ask_commands': entries('command', "These run after a person's approval.", command),
            'denied_operators': entries('operator', 'Shell operators that are refused.', operator),
            'allow_interactive': {
                'type': 'boolean',
                'description': 'Whether programs that expect a terminal may run.',
            },
            'unresolved': {
                'enum': list(_CHOICES['unresolved']),
                'description': 'What to do with commands and code that are not known before they run.',
            },
            'shell': {
                'enum': list(_CHOICES['shell']),
                'description': 'The shell that runs the commands.',
            },
        },
        'additionalProperties': False,
    }
