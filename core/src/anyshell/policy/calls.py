"""Finds every command that a line would run, wherever the shell or another program would run it."""

from __future__ import annotations

import bisect
import fnmatch
import math
import posixpath
import re
import unicodedata
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from anyshell.policy.syntax import (
    MAX_BYTES,
    MAX_DEPTH,
    AndOr,
    Assignment,
    Compound,
    NotUnderstood,
    Pipeline,
    Plain,
    Redirect,
    Shell,
    Simple,
    Span,
    read,
)
from anyshell.policy.values import Values
from anyshell.policy.words import (
    QUOTED_CODE,
    UNKNOWN,
    Word,
    arithmetic_names,
    fields,
    given,
    static,
    unknown,
)
from anyshell.policy.wrappers import program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from anyshell.policy.syntax import Command, Reader
    from anyshell.policy.syntax import Sequence as Commands

# What a command reads from: the empty input that the runner gives it, a file, text of the line, or who knows what.
Input = Literal['empty', 'file', 'unknown'] | Word

# Code in code is read once more at each level: how deep, and how much of it in all.
_MAX_CODE_DEPTH = 14
# How often a line is walked again at most.
_MAX_WALKS = 4
_MAX_CODE = MAX_BYTES // 2
# How many characters all words with braces may become.
_MAX_EXPANDED = 4 * MAX_BYTES
_STDIN = re.compile(r'(?:.*/)?(?:dev/stdin|fd/0+)|-')
_STDIN_PATHS = ('/dev/stdin', '/dev/fd/0', '/proc/self/fd/0', '/proc/thread-self/fd/0')
# As they are called from the folders of devices and processes.
_STDIN_NAMES = frozenset(('stdin', '0'))
# A line that may change the directory, so that a name says little about the folder.
_IN_DEVICES = re.compile(r'\b(?:cd|pushd|popd|chdir)\b|\s-\w*C')
# A shell that shows prompts.
_INTERACTIVE = re.compile(r'sh\b[^\n;&|]{0,200}\s-\w*i')
_DESCRIPTOR = re.compile(r'(?:.*/)?fd/\d+|/dev/fd/.*|/proc/[^/]*/fd/.*')
_INVISIBLE = frozenset(
    '\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0'
    + ''.join(map(chr, range(0xFE00, 0xFE10)))
    + ''.join(map(chr, range(0xE0100, 0xE01F0)))
)


class Call(NamedTuple):
    """A command that the line would run.

    Attributes:
        name: The program's base name.
        path: The program as it is written, after quote removal; `None` when only its last part is known.
        arguments: The words after the name.
        via: The programs that run it, outermost first.
        text: The command as it is written.
        span: Its place in the line.
        local: Whether it calls a function that the line defines for certain.
        weak: Whether only its being denied counts: it may run, or its runner answers for it.
        extended: Whether its runner adds arguments that are not known.
    """

    name: str
    path: str | None
    arguments: tuple[Word, ...]
    via: tuple[str, ...]
    text: str
    span: Span
    local: bool = False
    weak: bool = False
    extended: bool = False


class Unresolved(NamedTuple):
    """Something that the line would run and that is not known before it runs.

    Attributes:
        what: 'name' for the name of a command, 'code' for text that a shell reads.
        reason: Why it is not known and how to write it plainly, as sentences.
    """

    what: Literal['name', 'code']
    reason: str
    via: tuple[str, ...]
    text: str
    span: Span


class Setting(NamedTuple):
    """A variable that the line sets, with its value when that is one word of the line."""

    name: str
    value: Word | None
    via: tuple[str, ...]
    text: str
    span: Span


class Situation(NamedTuple):
    """Where a command stands: what it reads, which programs run it, and in which shell."""

    shell: Shell
    stdin: Input = 'empty'
    via: tuple[str, ...] = ()
    fixed: Span | None = None
    depth: int = 0
    certain: bool = True
    weak: bool = False
    # Whether it is code with texts in the place of variables that the line gives them: what is not known there does not count.
    pasted: bool = False
    # Whether functions of the line can be called here; not behind a program such as env.
    functions: bool = True
    extglob: bool = False


@dataclass(slots=True)
class Findings:
    """Everything in a line that a rule may judge."""

    calls: list[Call] = field(default_factory=list[Call])
    unresolved: list[Unresolved] = field(default_factory=list[Unresolved])
    settings: list[Setting] = field(default_factory=list[Setting])
    operators: list[tuple[str, Span]] = field(default_factory=list[tuple[str, Span]])


def find(
    command: str,
    *,
    shell: Shell,
    stdin: Input = 'empty',
    judged: frozenset[str] = frozenset(),
) -> Findings:
    """Find what a line would run.

    Args:
        command: The line.
        shell: What reads it.
        stdin: What its commands read unless they are told otherwise.
        judged: The variables whose values are commands that the line runs.

    Raises:
        NotUnderstood: When the line is outside the shell's grammar.
    """
    search = Search(command, shell, judged)
    search.line(command, stdin)
    for _ in range(_MAX_WALKS):
        if not search.late:
            break
        # What stands further on changes what stood before: it is a function, a trap or in a loop.
        first, search = search, Search(command, shell, judged)
        search.follow(first)
        search.line(command, stdin)
    return search.findings


class Search:
    """One walk over a line and the code in it."""

    def __init__(self, text: str, shell: Shell, judged: frozenset[str] = frozenset()) -> None:
        self.text = text
        self.shell: Shell = shell
        self._judged = judged
        self.findings = Findings()
        self.functions: dict[str, tuple[int, list[Compound], bool]] = {}
        self.aliases: dict[str, dict[str, Word]] = {}
        # Whether they were defined before this walk.
        self._aliases_known = False
        self.aliased: set[str] = set()
        # The names that functions may be removed by; '' for one that is not known.
        self.removed: set[str] = set()
        # Whether a call counted as one of a function that the line does not remove, or may be one that it defines later.
        self._trusted = self._waits = False
        # Of each function the place of the first command that may run it, as another walk has found.
        self._begins: Beginnings | None = None
        self.redirected = False
        # Whether a shell was taken to read nothing.
        self.took_nothing = False
        self.integers = False
        # Whether the output of a program such as nproc was taken for a number, and what was not: it may be another program.
        self._counted = self._renamed = False
        # What is a pattern instead of a subshell should the line switch extglob on.
        self._negations: list[Span] = []
        # The variables whose values are evaluated: those with the integer attribute, and references to others.
        self.evaluated: set[str] = set(_EVALUATED) if shell == 'bash' else set()
        # The commands in `functions`, by identity: to compare each with all others would take too long.
        self._defined: set[int] = set()
        # What was walked for what it reads: the bodies of functions, and the text of aliases.
        self._entered: set[tuple[str, Input]] = set()
        self._read: set[tuple[str, Shell, Input]] = set()
        # What was found for plain commands, by their text; and for those that run others, by all that it depends on.
        self._plain: dict[str, tuple[str, str | None, tuple[Word, ...]] | None] = {}
        self._programs: dict[
            tuple[str, int, tuple[bool, bool, bool, int] | None],
            tuple[Situation, int, list[Call], list[Unresolved], list[Setting]],
        ] = {}
        self._derived: dict[tuple[int, int], tuple[Situation, Situation]] = {}
        self._nested = 0
        self._expanded = 0
        self._splitting = self._split_first = 'IFS' in text
        self._last_argument = _LAST_ARGUMENT.search(text) is not None
        self._values: Values | None = None
        # The commands in folders from variables, with the program that runs them.
        self._in_folders: dict[tuple[int, tuple[str, ...]], Word] = {}
        # The first words of what project runners run, and what that reads: a line may be read in many ways, but each
        # of them is judged once.
        self.run_by_runners: set[tuple[Word, Input]] = set()

    @cached_property
    def _in_devices(self) -> bool:
        return _IN_DEVICES.search(self.text) is not None

    @cached_property
    def _interactive(self) -> bool:
        return _INTERACTIVE.search(self.text) is not None

    @cached_property
    def _quotes_subscript(self) -> bool:
        return _SUBSCRIPT_CODE.search(self.text) is not None

    @cached_property
    def _risky(self) -> bool:
        return _RISKY.search(self.text) is not None

    @cached_property
    def _redefines(self) -> bool:
        return _REDEFINES.search(self.text.replace('\\\n', '')) is not None

    def _numbers(self) -> bool:
        """Whether programs such as nproc are what they are called, as far as the line has been walked."""
        known = not (self._redefines or self._renamed or self._renames)
        self._counted = self._counted or known
        return known

    @property
    def _renames(self) -> bool:
        return any(name in self.functions or name in self.aliases for name in _COUNTING)

    @property
    def values(self) -> Values:
        """What the line gives its variables; made when it is asked for, since most lines have none."""
        if self._values is None:
            self._values = Values(self.text, self.functions, self.aliases)
        return self._values

    @property
    def late(self) -> bool:
        """Whether something was found that changes what stood before it."""
        return (
            (self._values is not None and self._values.late)
            or (self.redirected and self.took_nothing)
            or (bool(self.removed) and self._trusted)
            or (bool(self.aliases) and not self._aliases_known)
            or (self._counted and self._renames)
            or self._waits
            or self._splitting is not self._split_first
        )

    def follow(self, first: Search) -> None:
        """Begin with what another walk over the same line has found out."""
        self._values, self.redirected, self.removed = first.values, first.redirected, first.removed
        self._splitting = self._split_first = first._splitting
        self._renamed = first._renames or first._renamed
        self.aliases, self._aliases_known = first.aliases, bool(first.aliases)
        self._values.walk_again()
        if first._waits:
            self._begins = Beginnings(first.functions, first.findings.calls)

    def line(self, command: str, stdin: Input) -> None:
        """Walk the line itself."""
        commands, reader = read(command, shell=self.shell, numbers=self._numbers)
        self._declare(commands)
        situation = Situation(self.shell, stdin)
        self.commands(commands, situation)
        self._adopt(reader, situation)
        if self._negations and self._switches_extglob():
            for span in self._negations:
                reason = '`!(` is a pattern or a subshell, as extglob says. Put a blank behind the `!`, or leave extglob out.'
                self.unresolve('code', reason, situation, self.text[slice(*span)], span)

    def _switches_extglob(self) -> bool:
        return any(setting.name == 'BASHOPTS' for setting in self.findings.settings) or any(
            word.value is None or 'extglob' in word.value
            for call in self.findings.calls
            if call.name == 'shopt'
            for word in call.arguments
        )

    def _adopt(self, reader: Reader, situation: Situation) -> None:
        self.findings.operators += reader.operators
        self._negations += reader.negations
        for message, span in reader.hidden:
            text = self.text[slice(*span)]
            self.unresolve(
                'code', f'{message}. Write those commands on their own.', situation, text, span
            )
        for name, value, span in reader.assigned:
            self.set(name, None, situation, self.text[slice(*span)], span, values=(value,))

    def unresolve(
        self,
        what: Literal['name', 'code'],
        reason: str,
        situation: Situation,
        text: str,
        span: Span,
        *,
        sure: bool = False,
    ) -> None:
        """Record something that can't be known; where it is no more than possible it has to be `sure`."""
        guessed = situation.pasted and (UNKNOWN in text or '…' in text)
        if not (situation.weak or guessed) or sure:
            text = text.replace(UNKNOWN, '…')
            self.findings.unresolved.append(Unresolved(what, reason, situation.via, text, span))

    def code(
        self,
        word: Word,
        situation: Situation,
        *,
        by: str,
        shell: Shell | None = None,
        extglob: bool = False,
    ) -> None:
        """Walk a text that a program runs as shell code; what is not known in it may only be an argument."""
        text = word.code
        if not text.strip():
            return
        span = word.span
        inner = situation._replace(
            shell=shell or situation.shell,
            fixed=span,
            depth=situation.depth + 1,
            certain=False,
        )
        self._nested += len(text)
        if inner.depth > _MAX_CODE_DEPTH or self._nested > _MAX_CODE:
            self.unresolve(
                'code',
                'It is code in code, too deep or too long. Write its commands on the line itself.',
                situation,
                word.raw,
                span,
                sure=True,
            )
            return
        if not text.strip(UNKNOWN + ' \t\n'):
            self.unresolve(
                'code',
                f'It is the code that {by!r} runs. Write the commands themselves.',
                situation,
                word.raw,
                span,
            )
            return
        try:
            commands, reader = read(
                text,
                shell=inner.shell,
                fixed=span,
                depth=inner.depth,
                extglob=extglob,
                numbers=self._numbers,
            )
        except NotUnderstood as error:
            # A shell runs the lines in front of the one that it does not understand.
            if '\n' in text or not (situation.weak or situation.pasted):
                reason = f'The code that {by!r} runs is not understood: {error.message}. Write the commands themselves.'
                self.unresolve('code', reason, situation, word.raw, span, sure=True)
            return
        self.commands(commands, inner)
        self._adopt(reader, inner)
        if UNKNOWN in text:
            pasted = situation._replace(pasted=True)
            for filled in self.values.filled(word):
                self.code(filled, pasted, by=by, shell=shell, extglob=extglob)
            if self.values.overflows(word):
                reason = 'The variables in it get too many values. Write its commands on the line itself.'
                self.unresolve('code', reason, situation, word.raw, span, sure=True)

    # The walk

    def commands(self, commands: Commands, situation: Situation) -> None:
        """Walk a list."""
        for item in commands:
            if isinstance(item, Plain):
                self.plain(item, situation)
            elif isinstance(item, AndOr):
                later = self._uncertain(situation)
                first = later if item.background else situation
                for pipeline in item.pipelines:
                    self._pipeline(pipeline, first)
                    first = later
            else:
                self._pipeline(item, situation)

    def _pipeline(self, item: Pipeline | Command, situation: Situation) -> None:
        """Walk the commands of a pipeline, or a command that is alone."""
        if isinstance(item, Pipeline):
            situation = self._uncertain(situation)
            for command in item.commands:
                self._pipeline(command, situation)
                situation = self._uncertain(situation, 'unknown')
        elif isinstance(item, Plain):
            self.plain(item, situation)
        elif isinstance(item, Simple):
            self.simple(item, situation)
        else:
            self.compound(item, situation)

    def _uncertain(self, situation: Situation, stdin: Input | None = None) -> Situation:
        """The situation of something that may not run, or run elsewhere; `stdin` when it reads something else.

        It is one object for each pair of arguments, so that what was found for one is known by it.
        """
        stdin = situation.stdin if stdin is None else stdin
        if not situation.certain and stdin is situation.stdin:
            return situation
        key = (id(situation), id(stdin))
        known = self._derived.get(key)
        if known is None:
            known = (situation, situation._replace(stdin=stdin, certain=False))
            self._derived[key] = known
        return known[1]

    def _declare(self, commands: Commands) -> None:
        """Note the functions that a list defines for certain."""
        for item in commands:
            command = item.pipelines[0] if isinstance(item, AndOr) and not item.background else item
            if (
                isinstance(command, Compound)
                and command.kind == 'function'
                and not command.redirects
            ):
                start, bodies, _ = self.functions.get(command.name, (command.span[0], [], True))
                bodies.append(command)
                self._defined.add(id(command))
                self.functions[command.name] = (start, bodies, True)
            elif isinstance(command, Compound) and command.kind == '{' and not command.redirects:
                for body in command.bodies:
                    self._declare(body)

    def compound(self, command: Compound, situation: Situation) -> None:  # noqa: C901  # each kind of command is a case
        """Walk a compound command."""
        inner = situation
        if command.redirects:
            stdin = self.redirects(command.redirects, situation)
            inner = inner if stdin is inner.stdin else inner._replace(stdin=stdin)
        for word in command.words:
            self.substitutions(word, inner)
        if command.kind == 'function':
            known = self.functions.get(command.name)
            if known is None:
                self.functions[command.name] = (command.span[0], [command], False)
                self._defined.add(id(command))
            elif id(command) not in self._defined:
                known[1].append(command)
                self._defined.add(id(command))
            # bash calls this one with the input of the command that is missing.
            missing = command.name == _NOT_FOUND
            inner = self._uncertain(inner, 'unknown' if missing else None)
        elif command.kind == 'coproc':
            inner = self._uncertain(inner, 'unknown')
            if command.name:
                self.run([static(command.name, command.span)], situation, command.span)
        elif command.kind != '{':
            inner = self._uncertain(inner)
        if command.kind in {'for', 'select'} and command.name:
            text = self.text[slice(*command.span)]
            values = command.words or (unknown(command.span, '$@'),)
            self.set(command.name, None, situation, text, command.span, values=values)
        for operator, left, right in command.tests:
            self._test(operator, left, right, situation)
        for body in command.bodies:
            self.commands(body, inner)

    def _test(self, operator: str, left: Word, right: Word, situation: Situation) -> None:
        """Look at a test of `[[`."""
        if operator in _ARITHMETIC_TESTS:
            self.hidden((left, right), situation)
        elif operator == '=~':
            self.values.learn('BASH_REMATCH', None)

    def substitutions(self, word: Word, situation: Situation) -> None:
        """Walk the commands that run while a word is expanded."""
        for found in word.substitutions:
            stdin: Input = 'unknown' if found.operator == '>(' else situation.stdin
            self.commands(found.commands, self._uncertain(situation, stdin))

    def redirects(self, redirects: Sequence[Redirect], situation: Situation) -> Input:
        """Walk redirections; return what the command then reads."""
        stdin = situation.stdin
        for redirect in redirects:
            # One after the other: what stands in a later one reads what an earlier one gives.
            here = situation if stdin is situation.stdin else situation._replace(stdin=stdin)
            self.substitutions(redirect.target, here)
            if redirect.body is not None and redirect.operator != '<<<':
                self.substitutions(redirect.body, here)
            if redirect.descriptor.startswith('{'):
                target = redirect.descriptor[1:-1]
                text = self.text[slice(*redirect.span)]
                self.hidden([static(target, redirect.span)], situation)
                self.set(target.split('[')[0], None, situation, text, redirect.span)
            if redirect.descriptor.lstrip('0') or (
                redirect.operator.startswith(('>', '&')) and not redirect.descriptor
            ):
                continue
            if redirect.body is not None:
                stdin = redirect.body
            elif redirect.operator in {'<&', '>&'}:
                same = (
                    redirect.target.literal.strip('0-') == '' and redirect.target.value is not None
                )
                stdin = stdin if same else 'unknown'
            elif redirect.target.reads_process:
                stdin = 'unknown'
            else:
                stdin = self.file(redirect.target, situation._replace(stdin=stdin))
        return stdin

    def file(self, word: Word, situation: Situation) -> Input:
        """What a program reads when it opens the file that a word names."""
        text = word.literal if word.value is None else word.value
        if word.reads_process or (word.value is None and _DESCRIPTOR.fullmatch(word.code)):
            return 'unknown'
        text = posixpath.normpath(text).replace('//', '/')
        if (
            _STDIN.fullmatch(text)
            or (text in _STDIN_NAMES and self._in_devices)
            or (word.globs and _may_match(text, _STDIN_PATHS))
            or (word.value is None and self._may_name_stdin(word))
        ):
            return situation.stdin
        return 'unknown' if _DESCRIPTOR.fullmatch(text) else 'file'

    def _may_name_stdin(self, word: Word) -> bool:
        """Whether a word with an expansion may be a name of the standard input, as far as the line says."""
        literal = word.literal
        return (
            literal.startswith(('/dev/', '/proc/'))
            or literal.endswith('/stdin')
            or self.values.inputs.holds(word.parameters)
        )

    # Simple commands

    def plain(self, command: Plain, situation: Situation) -> None:
        """Walk a simple command that is plain. What its text says is found once for a line."""
        text = command.text
        if text not in self._plain:
            first, *arguments = command.words
            name, path, _ = resolve(first)
            self._plain[text] = (
                (name, path, tuple(arguments)) if name and program(name) is None else None
            )
        found = self._plain[text]
        if (
            found is None
            or found[0] in self.aliases
            or found[0] in self.functions
            or self._last_argument
            or command.fixed is not situation.fixed
            or situation.depth > MAX_DEPTH // 2
        ):
            self._program(command, situation)
            return
        name, path, arguments = found
        self.findings.calls.append(
            Call(name, path, arguments, situation.via, text, command.span, weak=situation.weak)
        )

    def _program(self, command: Plain, situation: Situation) -> None:
        """Walk a plain command that runs something; one that stood in the same situation finds the same, elsewhere.

        What such a command finds depends on its text, its situation, and on what the line has done so far. Where that
        holds functions or aliases nothing is kept.
        """
        state = self._state()
        key = (command.text, id(situation), state)
        known = self._programs.get(key)
        if known is not None:
            _, start, calls, unresolved, settings = known
            by = command.start - start if command.fixed is None else 0
            found = self.findings
            found.calls += [item._replace(span=_moved(item.span, by)) for item in calls]
            found.unresolved += [item._replace(span=_moved(item.span, by)) for item in unresolved]
            found.settings += [item._replace(span=_moved(item.span, by)) for item in settings]
            return
        found = self.findings
        calls, unresolved, settings = (
            len(found.calls),
            len(found.unresolved),
            len(found.settings),
        )
        self.run(command.words, situation, command.span)
        if state is not None and state == self._state() and command.fixed is situation.fixed:
            # It holds the situation too, whose identity must not pass to another.
            self._programs[key] = (
                situation,
                command.start,
                found.calls[calls:],
                found.unresolved[unresolved:],
                found.settings[settings:],
            )

    def _state(self) -> tuple[bool, bool, bool, int] | None:
        """What commands so far change for those that follow; `None` where that is not told apart."""
        if self.functions or self.aliases:
            return None
        return self.redirected, self.integers, self._splitting, len(self.evaluated)

    def simple(self, command: Simple, situation: Situation) -> None:
        """Walk a simple command."""
        for word in command.words:
            if word.substitutions:
                self.substitutions(word, situation)
        for assignment in command.assignments:
            self.substitutions(assignment.value, situation)
            self.assignment(assignment, situation)
        stdin = (
            self.redirects(command.redirects, situation) if command.redirects else situation.stdin
        )
        if not command.words:
            return
        words: list[Word] = command.words
        if situation.shell == 'bash':
            words = [part for word in words for part in self._fields(word)]
            if not words:
                return
        here = situation if stdin is situation.stdin else situation._replace(stdin=stdin)
        if here is not situation and words[0].value == 'exec' and len(words) == 1:
            self.redirected = True
        self.run(words, here, command.span)

    def _fields(self, word: Word) -> Sequence[Word]:
        """The word after brace expansion, as long as the braces of the line stand for so much text and no more."""
        if word.value is not None or not word.braces:
            return (word,)
        if self._expanded > _MAX_EXPANDED:
            return (unknown(word.span, word.raw),)
        found, tried = fields(word)
        self._expanded += tried * len(word.raw)
        if self._expanded > _MAX_EXPANDED:
            return (unknown(word.span, word.raw),)
        return found

    def assignment(self, assignment: Assignment, situation: Situation) -> None:
        """Record a variable that is set, and judge values that the shell runs later."""
        text = self.text[slice(*assignment.span)]
        value = assignment.value
        self.set(
            assignment.name,
            None if assignment.array else value,
            situation,
            text,
            assignment.span,
            plain=True,
            values=value.elements if assignment.array else (value,),
        )
        if assignment.name in {'BASH_ALIASES', 'BASH_CMDS'}:
            key = (assignment.subscript or '').strip('\'"')
            if assignment.array or value.value is None or not key or re.search(r'[$`\\]', key):
                self.unresolve(
                    'code',
                    f'{assignment.name} changes what names run. Leave it out and run each program by its own name.',
                    situation,
                    text,
                    assignment.span,
                )
            elif assignment.name == 'BASH_CMDS':
                self.run([value], situation, assignment.span)
            else:
                self.alias(key, value, situation)

    def set(  # noqa: C901  # each variable that runs what it holds is a case
        self,
        name: str,
        value: Word | None,
        situation: Situation,
        text: str,
        span: Span,
        *,
        plain: bool = False,
        values: Sequence[Word | None] | None = None,
    ) -> None:
        """Record a variable that is set.

        Args:
            name: The variable; '' when that is not known.
            value: Its value.
            situation: Where that happens.
            text: What sets it.
            span: The place of that.
            plain: Whether it is an assignment of the line itself.
            values: All values that it may get, where those are more or less than `value`.
        """
        all_values = (value,) if values is None else values
        self.values.learn_all(name, all_values)
        for item in all_values:
            if self._evaluates(name, item):
                self.unresolve(
                    'code',
                    'A variable with the integer attribute, or a reference to one, runs what its value quotes. Write those commands on their own.',
                    situation,
                    text,
                    span,
                )
        if name == 'IFS' or (not name and not plain):
            self._splitting = True
        self.findings.settings.append(Setting(name, value, situation.via, text, span))
        if (not plain and (name in _NAMES_RUN or (value is None and name in _RUN_BY_ITSELF))) or (
            not name and not plain and self._risky
        ):
            self.unresolve(
                'code',
                f'{name or "A variable whose name is not known"} decides what runs, and is set in a way that is not read. Leave it out.',
                situation,
                text,
                span,
            )
        expands = name in {'PS4', 'BASH_ENV', 'ENV'} or (
            name in {'PS0', 'PS1', 'PS2'} and self._interactive
        )
        hidden = expands and self._hides_code(name, all_values, span)
        reads = (
            name in {'BASH_ENV', 'ENV'}
            and value is not None
            and self.file(value, situation._replace(stdin='unknown')) == 'unknown'
        )
        if reads or hidden:
            self.unresolve(
                'code',
                f'{name} holds code that the shell runs by itself. Write those commands on their own.',
                situation,
                text,
                span,
            )
        elif value is None:
            return
        elif name.startswith('BASH_FUNC_'):
            self.unresolve(
                'code',
                f'{name} defines a function in the shells that follow. Define it in the code that calls it.',
                situation,
                text,
                span,
            )
        elif name == 'PROMPT_COMMAND':
            self.code(value, situation, by=name)
        elif name in self._judged and value.value != 'cat':  # the usual way to switch a pager off
            self.code(value, situation._replace(via=(*situation.via, name)), by=name)
        elif (self.integers or name in self.evaluated) and (names := arithmetic_names(value.parts)):
            integers, evaluated = self.integers, self.evaluated
            self.integers, self.evaluated = False, set()  # what is set here is no integer's text
            for inner in names:
                self.set(inner, None, situation, text, span, values=())
            self.integers, self.evaluated = integers, evaluated

    def _hides_code(self, name: str, values: Sequence[Word | None], span: Span) -> bool:
        """Whether a variable that the shell expands by itself may hold commands, with what the line has put in it."""
        found = [item for item in values if item is not None]
        names = {name}.union(*(item.parameters for item in found))
        # What is learned later is looked at in another walk.
        self.values.pasted.holds(names)
        texts = [text for name in names for text in self.values.texts.get(name, ())]
        texts += [piece for item in found for piece in (item.evaluated, *_pieces(item))]
        texts = list(map(_as_prompt, texts))
        return (
            any(map(QUOTED_CODE.search, texts))
            # In which order they come together is not looked at.
            or (
                any(text.endswith('$') for text in texts) and any(text[:1] == '(' for text in texts)
            )
            or self.values.overflows(Word('', (('V', name),), span))
            or (name == 'PS4' and any(item.substitutions for item in found))
        )

    def _evaluates(self, name: str, value: Word | None) -> bool:
        """Whether a value runs what it quotes, since a variable gets it whose values are evaluated."""
        known = value is not None and all(kind in 'uqn' for kind, _ in value.parts)
        if name in self.evaluated and not known:
            return self._quotes_subscript
        evaluated = self.integers or name in self.evaluated
        return evaluated and value is not None and QUOTED_CODE.search(value.evaluated) is not None

    def hidden(self, words: Iterable[Word], situation: Situation) -> None:
        """Note words whose text is evaluated as a subscript or arithmetic, which runs what they quote."""
        for word in words:
            if QUOTED_CODE.search(word.evaluated):
                self.unresolve(
                    'code',
                    'Its text is evaluated as arithmetic, which runs the commands quoted in it. Write those commands on their own.',
                    situation,
                    word.raw,
                    word.span,
                )
            for name in arithmetic_names(word.parts):
                self.set(name, None, situation, word.raw, word.span, values=())

    def run(  # noqa: C901  # each way not to know a name is a case
        self, words: list[Word], situation: Situation, span: Span
    ) -> None:
        """Judge `words` as a command, and what that command runs."""
        first = words[0]
        text = self._text(words, situation, span)
        name, path, reason = resolve(first)
        if name is not None and path is None:
            if situation.weak and (id(first), situation.via[-1:]) in self._in_folders:
                return
            reason = self._folder(first, situation)
        if name is None or reason:
            self.unresolve('name', reason, situation, text, first.span)
            return
        extended = bool(words[1:]) and words[-1].raw == APPENDED.raw
        call = Call(
            name,
            path,
            tuple(words[1:]),
            situation.via,
            text,
            span,
            local=path == name and self._is_local(name, first, situation),
            weak=situation.weak,
            extended=extended,
        )
        self.findings.calls.append(call)
        if situation.depth > MAX_DEPTH // 2:
            self.unresolve(
                'code',
                'It is a command in a command, nested too deeply. Write the inner command on its own.',
                situation._replace(weak=False),  # nothing looks at what it runs
                text,
                span,
                sure=True,
            )
            return
        if self._last_argument:
            self.values.learn('_', words[-1])
        if path == name:
            if name in self.functions:
                self.values.learn_all('@', words[1:])
            self._enter(name, situation)
            if name in self.aliases:
                self._aliased(name, words, situation, span)
        entry = program(name)
        if entry is not None:
            inner = situation._replace(via=(*situation.via, name), depth=situation.depth + 1)
            entry(self, name, words[1:], inner, span)
        if path is None and situation.via:
            self._as_option(words, situation, span)

    def splits(self, word: Word) -> bool:
        """Whether a `$x` in the word may become several words, since the line gives it a value with blanks."""
        names = {text for kind, text in word.parts if kind == 'v'}
        return bool(names) and (self._splitting or self.values.blank.holds(names))

    def gives_dash(self, word: Word) -> bool:
        """Whether the word begins with a variable that the line gives a dash."""
        dash, names, _ = self.values.leading(word)
        return dash or self.values.dashed.holds(names)

    def may_give_dash(self, word: Word) -> bool:
        """Whether the word begins with something that may be a dash, as far as the line says."""
        dash, names, unsure = self.values.leading(word)
        return dash or unsure or self.values.dashed.holds(names) or self.values.unsure.holds(names)

    def may_give_action(self, word: Word) -> bool:
        """Whether a word with expansions may become an -exec that the line spells out."""
        if word.substitutions or word.raw == APPENDED.raw:
            return self.values.tells_actions
        return self.values.actions.holds(word.parameters)

    def _folder(self, first: Word, situation: Situation) -> str:
        """Why a command whose folder is an expansion can't be judged by its last part; '' when it can."""
        if self.splits(first):
            return 'Its folder may become several words. Put the variable in quotes.'
        if situation.via and self.gives_dash(first):
            return f'Its folder may be an option of {situation.via[-1]!r}. Write the folder itself.'
        return ''

    def _as_option(self, words: list[Word], situation: Situation, span: Span) -> None:
        """Judge what follows a path that may be an option with its value, as in `-u/x`."""
        name = situation.via[-1]
        key = (id(words[0]), (name,))
        known = key in self._in_folders
        self._in_folders[key] = words[0]
        entry = program(name)
        if entry is not None and not known and self.may_give_dash(words[0]):
            inner = situation._replace(weak=True, depth=situation.depth + 1)
            entry(self, name, words[1:], inner, span)

    def _text(self, words: Sequence[Word], situation: Situation, span: Span) -> str:
        """The command as it is written: its place in the line, or the words when it stands in other code."""
        if situation.fixed is None and not situation.via:
            return self.text[slice(*span)]
        return ' '.join(word.raw for word in words).replace(UNKNOWN, '…')

    def _is_local(self, name: str, word: Word, situation: Situation) -> bool:
        known = self.functions.get(name)
        if known is None or not known[2] or not situation.functions:
            return False
        if not self.removed.isdisjoint((name, '')):
            return False
        self._trusted = True
        if word.span[0] > known[0]:
            return True
        self._waits = self._begins is None
        return self._begins is not None and self._begins.of(word.span[0]) > known[0]

    def _enter(self, name: str, situation: Situation) -> None:
        """Walk the body of a function again when a call gives it something to read."""
        known = self.functions.get(name)
        if known is None or situation.stdin in ('empty', 'file'):
            return
        key = (name, situation.stdin)
        if key in self._entered:
            return
        self._entered.add(key)
        for function in known[1]:
            if isinstance(situation.stdin, Word):
                # Each text is another input, so that all of them for all functions could be too many.
                self._nested += function.span[1] - function.span[0]
            if self._nested > _MAX_CODE:
                reason = 'It gives too many functions something to read. Write the commands of the function themselves.'
                self.unresolve('code', reason, situation, name, function.span)
                return
            # Should a program of that name run instead, then the body does not.
            inner = situation._replace(certain=False, functions=True, depth=situation.depth + 1)
            for body in function.bodies:
                self.commands(body, inner)

    # Aliases: bash expands them only with expand_aliases, dash always. They are judged as if always.

    def alias(self, name: str, value: Word, situation: Situation) -> None:
        """Record an alias and judge its text as code."""
        if name in _RESERVED_WORDS:
            self.unresolve(
                'code',
                'An alias of a keyword changes how the line is read. Choose another name.',
                situation,
                value.raw,
                value.span,
            )
        elif value.literal.endswith((' ', '\t')) and value.literal.strip():
            self.unresolve(
                'code',
                'An alias that ends in a blank changes how the next word is read. Leave the blank out.',
                situation,
                value.raw,
                value.span,
            )
        self.aliases.setdefault(name, {})[value.raw] = value
        self.code(value, situation, by='alias')

    def _aliased(self, name: str, words: Sequence[Word], situation: Situation, span: Span) -> None:
        if name in self.aliased or len(self.aliased) > MAX_DEPTH:
            return
        self.aliased.add(name)
        for value in tuple(self.aliases[name].values()):
            code = ' '.join((value.code, *(word.raw for word in words[1:])))
            key = (code, situation.shell, situation.stdin)
            if key not in self._read:
                self._read.add(key)
                self.code(static(code, span, value.raw), situation, by='alias')
        self.aliased.discard(name)

    # What programs that run code or commands call

    def shell_input(
        self, situation: Situation, *, by: str, span: Span, shell: Shell | None = None
    ) -> None:
        """Judge what a shell reads from its standard input."""
        stdin = situation.stdin
        if isinstance(stdin, Word):
            self.code(stdin, situation._replace(stdin='empty'), by=by, shell=shell)
        elif stdin == 'empty' and not self.redirected:
            self.took_nothing = True
        elif stdin != 'file':
            self.unresolve(
                'code',
                f'{by!r} reads its code from an input. Write the commands themselves, or save the code to a file and read it first.',
                situation,
                self.text[slice(*span)],
                span,
            )


class Beginnings:
    """Where each function of a line may begin to run: at the first command that calls it, itself or through others.

    Args:
        functions: The functions of the line, with the places of their bodies.
        calls: Every command that the line would run.
    """

    def __init__(
        self, functions: Mapping[str, tuple[int, list[Compound], bool]], calls: Iterable[Call]
    ) -> None:
        bodies = sorted(
            (body.span[0], body.span[1], name)
            for name, (_, found, _) in functions.items()
            for body in found
        )
        # What is defined in a function runs later than the function.
        self._outer: list[tuple[int, int, str]] = []
        for body in bodies:
            if not self._outer or body[0] >= self._outer[-1][1]:
                self._outer.append(body)
        inner: dict[str, set[str]] = {}
        begins: list[tuple[int, str]] = []
        for call in calls:
            if call.name not in functions:
                continue
            caller = self._body(call.span[0])
            if caller:
                inner.setdefault(caller, set()).add(call.name)
            else:
                begins.append((call.span[0], call.name))
        if _NOT_FOUND in functions:  # bash calls it by itself
            begins.append((functions[_NOT_FOUND][0], _NOT_FOUND))
        self._begins: dict[str, int] = {}
        for place, name in sorted(begins):
            reached = [name]
            while reached:
                name = reached.pop()  # noqa: PLW2901  # what the function calls begins there too
                if name not in self._begins:
                    self._begins[name] = place
                    reached += inner.get(name, ())

    def of(self, place: int) -> float:
        """Where the function may begin to run in whose body this place is; 0 when it is in none."""
        name = self._body(place)
        return self._begins.get(name, math.inf) if name else 0

    def _body(self, place: int) -> str:
        at = bisect.bisect(self._outer, (place, math.inf)) - 1
        return self._outer[at][2] if at >= 0 and place < self._outer[at][1] else ''


def _as_prompt(text: str) -> str:
    """What a prompt makes of a text before it is expanded, without what may leave nothing."""
    plain = _OCTAL.sub(lambda match: chr(int(match[1], 8) & 0x7F), text)
    return _PROMPT_NOTHING.sub('', plain)


def _pieces(word: Word) -> list[str]:
    """The texts of a word between its expansions, and in them."""
    text = ''.join(
        text if kind in 'uq' else f'\0{given((kind, text)) or ""}\0' for kind, text in word.parts
    )
    return text.split('\0')


def _may_match(pattern: str, paths: Iterable[str]) -> bool:
    """Whether a pattern of the shell may stand for one of these files."""
    # Wider than it is: extended patterns have one of these signs in front, and brackets stand for what they hold.
    wide = re.sub(r'\(.*\)|[@+!?]|\[[^/]*', '*', pattern)
    return any(fnmatch.fnmatchcase(path, wide) for path in paths)


def _moved(span: Span, by: int) -> Span:
    return span[0] + by, span[1] + by


# What xargs adds to a command: any number of arguments that nobody knows.
APPENDED = unknown((0, 0), '…')

_ARITHMETIC_TESTS = frozenset(('-eq', '-ne', '-lt', '-le', '-gt', '-ge', '-v', '-R'))
_NOT_FOUND = 'command_not_found_handle'
# Arrays that say what names run, and variables that the shell runs by itself.
_NAMES_RUN = frozenset(('BASH_CMDS', 'BASH_ALIASES'))
_RUN_BY_ITSELF = frozenset(('PS4', 'BASH_ENV', 'PROMPT_COMMAND'))
# Variables of bash itself with the integer attribute.
_EVALUATED = ('RANDOM', 'SRANDOM', 'OPTIND', 'HISTCMD')
# Programs whose output is taken for a number. By a function, an alias or a path the same name could print anything.
_COUNTING = frozenset(('nproc', 'id', 'getconf', 'sysctl'))
_REDEFINES = re.compile(
    r'\([ \t\n]*\)|\b(?:function|alias|hash|enable|eval|source|PATH|BASH_CMDS|BASH_ALIASES)\b'
)
_LAST_ARGUMENT = re.compile(r'\$(?:_\b|\{[!#]?_\b)')
# Commands in a subscript anywhere in a line.
_SUBSCRIPT_CODE = re.compile(r'(?<=[^\s\[;(|&!{])\[[^\[\]]*(?:\$\(|`)')
_OCTAL = re.compile(r'\\([0-7]{1,3})')
_PROMPT_NOTHING = re.compile(r'\\(?:[\[\]]|D\{[^}]*\})')
_RISKY = re.compile(r'CMDS|ALIASES|\bPS4\b|\bBASH_ENV\b|\bPROMPT_COMMAND\b')
_RESERVED_WORDS = frozenset((
    'if', 'then', 'elif', 'else', 'fi', 'while', 'until', 'for', 'do', 'done', 'case', 'esac', 'in', 'select',
    'function', 'time', 'coproc', '{', '}', '!', '[[', ']]',
))  # fmt: skip


def resolve(word: Word) -> tuple[str | None, str | None, str]:
    """The base name and the path of the program that a word names, or why it is not known."""
    value = word.value
    if value is None:
        return _last_part(word)
    name = value.rsplit('/', 1)[-1]
    name = name[1:] or name if value.startswith('=') else name  # zsh runs `ls` for `=ls`
    if not value.isascii() or not value.isprintable():
        for char in name:
            if char in _INVISIBLE or unicodedata.category(char) in {
                'Cc',
                'Cf',
                'Zl',
                'Zp',
                'Zs',
                'Co',
                'Cs',
                'Cn',
            }:
                return (
                    None,
                    None,
                    (
                        f'Its name holds the invisible character U+{ord(char):04X}. Write it in plain letters.'
                    ),
                )
    return name, value, ''


def _last_part(word: Word) -> tuple[str | None, str | None, str]:
    """`"$VENV/bin/python"` runs something called python, whatever the folder: its last part is known."""
    reason = 'Its name comes from an expansion, a pattern or an input. Write the name itself; only a folder may come from a variable, as in "$DIR/bin/tool".'
    name = word.last_part
    if name is None:
        return None, None, reason
    known, _, why = resolve(static(name, word.span))
    return known, None, why
