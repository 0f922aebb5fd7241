"""Reads a command line as bash or a POSIX sh does, into the commands that it would run.

A recursive-descent reader of the shell's grammar. What it does not know for certain it refuses with
`NotUnderstood`: the caller then gives a verdict about the line instead of a guess at it. Being more lenient than the
shell is fine (the shell itself refuses such a line); reading a line *differently* from the shell is not.

The traps that every part of this module is shaped by: a backslash before a newline vanishes in the middle of words,
names and operators; only space and tab are blanks; `#` begins a comment only where a word could begin; `name[` at the
place of a command reads on to its `]`, over blanks and `#`; here-documents begin after the line that names them.
"""

# ruff: noqa: C901, PLR0912, PLR0915  # a reader's functions are as long as the forms that they read

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast

from anyshell.policy.words import (
    QUOTED_CODE,
    Part,
    Substitution,
    Word,
    ansi_c,
    arithmetic_names,
    evaluated,
    plain_word,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_BYTES = 262_144
MAX_DEPTH = 50

Shell = Literal['bash', 'sh']
Span = tuple[int, int]


class NotUnderstood(Exception):  # it is a finding about the line, not an error of ours
    """Raised when a text is outside the grammar; the message ends a sentence, `place` is an index into the text."""

    def __init__(self, message: str, place: Span) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        # Whether the shell itself would notice only when it gets there, as with the text of back-ticks.
        self.deferred = False


@dataclass(slots=True, eq=False)
class Assignment:
    """`name=value`, `name+=value`, `name[…]=value` or `name=(…)` before a command or alone."""

    name: str
    value: Word
    subscript: str | None
    array: bool
    span: Span


@dataclass(slots=True, eq=False)
class Redirect:
    """A redirection. `body` is the text of a here-document or here-string."""

    operator: str
    descriptor: str
    target: Word
    span: Span
    body: Word | None = None


@dataclass(slots=True, eq=False)
class Plain:
    """A simple command without any quotes, expansions, assignments or redirections: each word is its own value.

    Most commands of a long line are like this. The words of one are made when they are asked for, since long lines are
    slow by their number of objects.
    """

    text: str
    start: int
    fixed: Span | None

    @property
    def span(self) -> Span:
        """Its place in the line."""
        return self.fixed or (self.start, self.start + len(self.text))

    @property
    def words(self) -> list[Word]:
        """Its words, made anew."""
        return [
            plain_word(
                match[0],
                self.fixed or (self.start + match.start(), self.start + match.end()),
            )
            for match in _NOT_BLANK.finditer(self.text)
        ]


@dataclass(slots=True, eq=False)
class Simple:
    """A simple command."""

    # No list is made for what it does not have.
    words: list[Word] | tuple[()]
    assignments: list[Assignment] | tuple[()]
    redirects: list[Redirect] | tuple[()]
    span: Span


@dataclass(slots=True, eq=False)
class Compound:
    """A compound command: the lists that it may run and the words that it expands."""

    kind: str
    span: Span
    bodies: list[Sequence] = field(default_factory=list['Sequence'])
    words: list[Word] | tuple[()] = ()
    redirects: list[Redirect] | tuple[()] = ()
    name: str = ''
    tests: list[tuple[str, Word, Word]] | tuple[()] = ()


Command = Plain | Simple | Compound


@dataclass(slots=True, eq=False)
class Pipeline:
    """Commands joined by pipes, with the keywords in front of them."""

    commands: list[Command]
    keywords: list[str]


@dataclass(slots=True, eq=False)
class AndOr:
    """Pipelines joined by `&&` and `||`; `background` when it ends in `&`."""

    pipelines: list[Pipeline | Command]
    background: bool = False


# What nothing is joined to stands in these as it is.
Sequence = list[AndOr | Pipeline | Command]

# A whole word of plain text, at the place of a command or an assignment, and elsewhere.
_FIRST_WORD = re.compile(r'[A-Za-z0-9_./:@%+,^-][A-Za-z0-9_./:@%+,^#!-]*+(?=[ \t\n;&|)]|\Z)')
_SETTING = re.compile(r'([A-Za-z_][A-Za-z0-9_]*+)=([A-Za-z0-9_./:@%+=,^#!-]*+)(?=[ \t\n;&|)]|\Z)')
_LATER_WORD = re.compile(r'[A-Za-z0-9_./:@%+=,^!-][A-Za-z0-9_./:@%+=,^#!-]*+(?=[ \t\n;&|)]|\Z)')
_NOT_BLANK = re.compile(r'[^ \t]+')
# A whole plain command up to what ends it.
_PLAIN = re.compile(
    r'([A-Za-z0-9_./:@%+,^-][A-Za-z0-9_./:@%+,^#!-]*+)(?:[ \t]++[A-Za-z0-9_./:@%+=,^!-][A-Za-z0-9_./:@%+=,^#!-]*+)*+'
    r'(?=([ \t]*+)(?:[;\n|)]|&(?![>\\])|\Z))'
)
_RUN = re.compile(r'[^ \t\n;&|<>()\\\'"`$]+')
_TRACKED_RUN = re.compile(r'[^ \t\n;&|<>()\\\'"`$\[=]+')
_DOUBLE_RUN = re.compile(r'[^"\\$`]+')
_HERE_RUN = re.compile(r'[^\\$`]+')
_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_TARGET = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)(\[.*\])?\+?', re.DOTALL)
_DESCRIPTOR_NAME = re.compile(r'\{[A-Za-z_][A-Za-z0-9_]*(\[.*\])?\}', re.DOTALL)
_LETTERS = re.compile(r'[a-z]+')
_KEYWORD = re.compile(r'[a-z]+|\[(?:\\\n)*\[|[!{}]')
# A word that is one word only where bash reads `name[` on to its `]`, or that might be an assignment.
_SUBSCRIPTED = re.compile(r'[A-Za-z_][A-Za-z0-9_]*\[(?![\w.,:*?-]*\](?:[^=+]|$))')
_UNARY = re.compile(r'-[A-Za-z]')
_SCAN_RUN = re.compile(r'[^\\\'"`$<>(){}\[\]]+')
_HARMLESS_QUOTES = re.compile(
    r"'(?:[^'\"$`\\}\n]|\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})*'"
)
# What bash puts in its place is neither a quote nor an expansion, and no end of anything.
_HARMLESS_ANSI_C = re.compile(
    r"\$'(?:[^'\"$`\\}\n]|\\[abefnrtv]|\\x[89a-fA-F][0-9a-fA-F]|\\[23][0-7]{2})*'"
)
_PRINTS_NUMBER = re.compile(
    r'\$\([ \t]*(?:nproc(?:[ \t]+--all)?|id[ \t]+-[ug]|getconf[ \t]+_NPROCESSORS_ONLN|sysctl[ \t]+-n[ \t]+hw\.(?:logical|physical)?cpu)[ \t]*\)'
)
_ESCAPED_META = frozenset(';&|<>()\'"`\\')
_BREAKS = frozenset(' \t\n;&|<>()')
_SPECIAL_PARAMETERS = frozenset('@*#?-$!0123456789')
_NUMBERS = frozenset('#?$')
_ASSIGNING = frozenset(
    ('alias', 'declare', 'export', 'local', 'readonly', 'typeset', 'eval', 'let')
)
_COMPOUND = frozenset(('if', 'while', 'until', 'for', 'case', 'select', '{', '[[', 'function'))
_REDIRECTS = ('<<<', '<<-', '<<', '<&', '<>', '<', '>>', '>&', '>|', '>', '&>>', '&>')
_REDIRECT = re.compile('|'.join(map(re.escape, _REDIRECTS)))
_RESERVED = _COMPOUND | {
    'then', 'elif', 'else', 'fi', 'do', 'done', 'in', 'esac', '}', '!', 'time', 'coproc',
}  # fmt: skip
# Behind some names a word may be an assignment; `shopt` may change how the rest of the line is read.
_NOT_PLAIN = _RESERVED | _ASSIGNING | {'shopt'}
_ENDINGS = frozenset(('then', 'elif', 'else', 'fi', 'do', 'done', 'esac', '}'))
_CLOSINGS = frozenset(('fi', 'done', 'esac', '}'))
_BINARY = frozenset((
    '=', '==', '!=', '=~', '-eq', '-ne', '-lt', '-le', '-gt', '-ge', '-nt', '-ot', '-ef',
))  # fmt: skip
_BASH_ONLY = 'is bash syntax, and this line runs in a POSIX sh'


@dataclass(slots=True)
class _HereDocument:
    redirect: Redirect
    delimiter: str
    quoted: bool
    strip: bool


@dataclass(slots=True, eq=False)
class _Read:
    """A substitution that was read once: text that is read twice, as in `((…))`, must not be read 2 ** depth times."""

    kind: str
    end: int
    found: list[Substitution]
    operators: list[tuple[str, Span]]
    hidden: list[tuple[str, Span]]
    assigned: list[tuple[str, Word | None, Span]]


class Reader:
    """Reads `text[start:end]`.

    Args:
        text: The text.
        shell: Whose grammar holds.
        start: Where to begin.
        end: Where to stop.
        fixed: The place that everything read here has, for a text that is not part of the line itself.
        depth: How deeply this text is nested in others.
        extglob: Whether extended patterns are read in words.
        numbers: Says whether programs such as nproc are what they are called, and so print a number.
        continued: Whether the text has a line continuation, where that is known: looking takes as long as the text.
    """

    def __init__(
        self,
        text: str,
        *,
        shell: Shell = 'bash',
        start: int = 0,
        end: int | None = None,
        fixed: Span | None = None,
        depth: int = 0,
        extglob: bool = False,
        numbers: Callable[[], bool] = lambda: False,
        continued: bool | None = None,
    ) -> None:
        self.text = text
        self.bash = shell == 'bash'
        self.shell: Shell = shell
        self.at: int = start
        self.end = len(text) if end is None else end
        self.fixed = fixed
        self.depth = depth
        self.extglob = extglob
        self.numbers = numbers
        self.operators: list[tuple[str, Span]] = []
        self.pending: list[_HereDocument] = []
        self.continued = '\\\n' in text if continued is None else continued
        self.closer = ''
        self.strict = False
        self.opening = -1
        self.memo: dict[int, _Read] = {}
        # How many of the forms around this place may be read a second time: only then is it worth keeping what is read.
        self.again = 0
        self.asked = (-1, '')
        # What runs code that no one can see here, and the variables that expansions set, with the value where that is known.
        self.hidden: list[tuple[str, Span]] = []
        self.assigned: list[tuple[str, Word | None, Span]] = []
        # What is a pattern instead should extglob be on.
        self.negations: list[Span] = []

    # Places and errors

    def place(self, start: int, end: int) -> Span:
        """Where a part of this text is in the command line."""
        return self.fixed or (start, end)

    def fail(self, message: str, at: int | None = None) -> NotUnderstood:
        """What to raise when the text is outside the grammar."""
        at = self.at if at is None else at
        return NotUnderstood(message, self.place(min(at, self.end), min(at + 1, self.end)))

    def _operator(self, operator: str, start: int) -> None:
        self.operators.append((operator, self.place(start, self.at)))

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail('it is nested too deeply')

    # What is read twice

    def _mark(self) -> tuple[int, int, int]:
        return len(self.operators), len(self.hidden), len(self.assigned)

    def _forget(self, mark: tuple[int, int, int]) -> None:
        """Drop what was noted since `mark`: the same text is read again."""
        del self.operators[mark[0] :], self.hidden[mark[1] :], self.assigned[mark[2] :]

    def _keep(
        self, start: int, kind: str, found: list[Substitution], mark: tuple[int, int, int]
    ) -> None:
        if self.again:
            operators, hidden, assigned = mark
            self.memo[start] = _Read(
                kind,
                self.at,
                found,
                self.operators[operators:],
                self.hidden[hidden:],
                self.assigned[assigned:],
            )

    def _known(self, start: int, subs: list[Substitution]) -> str | None:
        """The kind of the substitution at `start` if it was read before; moves behind it."""
        known = self.memo.get(start)
        if known is None:
            return None
        self.at = known.end
        self.operators += known.operators
        self.hidden += known.hidden
        self.assigned += known.assigned
        subs += known.found
        return known.kind

    # Characters

    def _skip(self, at: int) -> int:
        """The place of the next character that counts: a backslash with a newline after it is nothing."""
        if self.continued:
            while self.text.startswith('\\\n', at) and at + 2 <= self.end:
                at += 2
        return at

    def _char(self, at: int) -> str:
        return self.text[at] if at < self.end else ''

    def _peek(self) -> str:
        self.at = self._skip(self.at)
        return self.text[self.at] if self.at < self.end else ''

    def _ahead(self, operator: str) -> int:
        """The place after `operator`, with continuations between its characters, or -1."""
        at = self.at
        if not self.continued:
            found = at + len(operator) <= self.end and self.text.startswith(operator, at)
            return at + len(operator) if found else -1
        for char in operator:
            at = self._skip(at)
            if self._char(at) != char:
                return -1
            at += 1
        return at

    def _take(self, operator: str) -> bool:
        at = self._ahead(operator)
        if at < 0:
            return False
        self.at = at
        return True

    def _blanks(self) -> str:
        """Skip blanks and a comment; return the character that follows."""
        text, end, at = self.text, self.end, self.at
        if at < end and (char := text[at]) not in ' \t\\#':
            return char
        while at < end:
            char = text[at]
            if char == ' ' or char == '\t':  # noqa: PLR1714  # the hottest line of the reader
                at += 1
            elif char == '\\' and text.startswith('\n', at + 1) and at + 2 <= end:
                at += 2
            else:
                break
        if at < end and text[at] == '#':
            at = text.find('\n', at, end)
            if at < 0:
                at = end
        self.at = at
        return text[at] if at < end else ''

    def _newlines(self) -> str:
        """Skip blanks, comments and newlines, where the grammar lets lists go on."""
        while self._blanks() == '\n':
            self._newline()
        return self._char(self.at)

    def _newline(self) -> None:
        self.at += 1
        if self.pending:
            pending, self.pending = self.pending, []
            for document in pending:
                self._here_document(document)

    # Words

    def _word(
        self, *, first: bool = False, assigning: bool = False, mode: str = ''
    ) -> Word | Assignment | None:  # one loop over the characters of a word, as in the shell
        """Read a word, or an assignment where one may stand; `None` when no word begins here.

        Args:
            first: At the place of a command, where `name=…` assigns and `name[` reads on to `]`.
            assigning: After `declare` and its like, where `name=(…)` is one word.
            mode: '', 'regex' and 'pattern' inside `[[ ]]`, 'array' inside `name=(…)`.
        """
        text, end, start = self.text, self.end, self._skip(self.at)
        if not mode:
            match = _FIRST_WORD.match(text, start, end)
            if match is None and not first and not assigning:
                match = _LATER_WORD.match(text, start, end)
            if match:
                self.at = match.end()
                return plain_word(match[0], self.fixed or (start, self.at))
            match = _SETTING.match(text, start, end) if first else None
            if match:
                self.at = match.end()
                span = self.fixed or (start, self.at)
                value: tuple[Part, ...] = (('u', match[2]),) if match[2] else ()
                word = Word(match[0], value, span, (), match[2], _known=True)
                return Assignment(match[1], word, None, array=False, span=span)
        at = start
        parts: list[Part] = []
        subs: list[Substitution] = []
        plain = ''
        token: str | None = '' if first or assigning or mode in {'array', 'strict'} else None
        target: tuple[str, str | None, int] | None = None
        subscript: str | None = None
        array = False
        elements: list[Word] | tuple[()] = ()
        while at < end:
            match = (_RUN if token is None else _TRACKED_RUN).match(text, at, end)
            if match:
                run = match[0]
                plain += run
                if token is not None:
                    token += run
                at = match.end()
                if at >= end:
                    break
            char = text[at]
            if char in ' \t\n':
                break
            if char == '\\':
                if text.startswith('\n', at + 1) and at + 1 < end:
                    at += 2
                    continue
                token = None
                if plain:
                    parts.append(('u', plain))
                    plain = ''
                if mode == 'array' and self.closer and text[at + 1 : at + 2] in _ESCAPED_META:
                    # bash 5.2 writes the commands of `$(…)` anew before it runs them, and loses such backslashes.
                    raise self.fail('an array in `$(…)` holds an escaped character', at)
                parts.append(('q', text[at + 1] if at + 1 < end else '\\'))
                at += 2
            elif char == '[' and token is not None:
                opens = (first and _NAME.fullmatch(token)) or (mode == 'array' and not token)
                at += 1
                plain += '['
                token += '['
                if opens and self.bash:
                    self.at = at
                    inner: list[Part] = []
                    self.scan(inner, subs, ']', '[', what='the subscript')
                    subscript = self.text[at : self.at - 1]
                    self._no_hidden_code(inner, at)
                    parts.append(('u', plain))
                    parts += inner
                    parts.append(('u', ']'))
                    plain, at = '', self.at
                    token += 's]'
            elif char == '=' and token is not None:
                match = _TARGET.fullmatch(token)
                at += 1
                plain += '='
                token += '='
                if match is None or not (first or assigning or mode == 'strict'):
                    continue
                if not self.bash and (token.endswith('+=') or match[2]):
                    raise self.fail(f'`{token}` {_BASH_ONLY}', start)
                after = self._skip(at)
                if self._char(after) == '(' and mode != 'strict':
                    if not self.bash:
                        raise self.fail(f'an array {_BASH_ONLY}', start)
                    parts.append(('u', plain))
                    plain = ''
                    self.at = after + 1
                    elements = self._array(subs)
                    at, array = self.at, True
                if first or mode == 'strict':
                    # What follows is the value: the name is not part of the word's value.
                    target = (match[1], subscript, len(token))
                    parts.clear()
                    plain = ''
                if array:
                    parts.append(('x', ''))
                token = None
            elif char in '\'"`$':
                token = None
                if plain:
                    parts.append(('u', plain))
                    plain = ''
                self.at = at
                self._quoted(char, parts, subs)
                at = self.at
            elif char in '<>' and self._char(self._skip(at + 1)) == '(':
                token = None
                parts.append(('u', plain))
                plain = ''
                parts.append(('p', ''))
                self.at = at
                self._process(char, subs)
                at = self.at
            elif char == '(' and self._group_in_word(mode, plain, parts):
                token = None
                parts.append(('u', plain + '('))
                plain = ''
                self.at = at + 1
                self._group(parts, subs, ')', '(', what='the pattern')
                at = self.at
                parts.append(('u', ')*'))
            elif char == '|' and mode == 'regex':
                plain += char
                at += 1
            else:
                break
        if plain:
            parts.append(('u', plain))
        self.at = min(at, end)
        if self.at == start:
            return None
        span = self.fixed or (start, self.at)
        word = Word(text[start : self.at], parts, span, subs or (), elements=elements)
        if target is None:
            return word
        return Assignment(target[0], word, target[1], array, span)

    def _group_in_word(self, mode: str, plain: str, parts: list[Part]) -> bool:
        if mode == 'regex':
            return True
        if not (self.extglob or mode == 'pattern') or not self.bash:
            return False
        before = plain or (parts[-1][1] if parts and parts[-1][0] == 'u' else '')
        return before[-1:] in set('?*+@!') and bool(before)

    def _plain_word(self, what: str) -> Word:
        word = self._word()
        if not isinstance(word, Word):
            raise self.fail(f'{what} is missing')
        return word

    def _quoted(self, char: str, parts: list[Part], subs: list[Substitution]) -> None:
        """Read what begins with one of the four characters that quote or expand, outside double quotes."""
        if char == "'":
            close = self.text.find("'", self.at + 1, self.end)
            if close < 0:
                raise self.fail("a ' is never closed")
            parts.append(('q', self.text[self.at + 1 : close]))
            self.at = close + 1
        elif char == '"':
            self._double(parts, subs)
        elif char == '`':
            self._backtick(parts, subs, double=False)
        else:
            self._dollar(parts, subs, quoted=False)

    def _double(self, parts: list[Part], subs: list[Substitution]) -> None:
        start = self.at
        self.at += 1
        text, end = self.text, self.end
        parts.append(('q', ''))
        while self.at < end:
            match = _DOUBLE_RUN.match(text, self.at, end)
            if match:
                parts.append(('q', match[0]))
                self.at = match.end()
            char = self._char(self.at)
            if char == '"':
                self.at += 1
                return
            if char == '\\':
                after = self._char(self.at + 1)
                if after and after in '$`"\\':
                    parts.append(('q', after))
                elif after != '\n':
                    parts.append(('q', '\\' + after))
                self.at += 2
            elif char == '`':
                self._backtick(parts, subs, double=True)
            elif char == '$':
                self._dollar(parts, subs, quoted=True)
        raise self.fail('a " is never closed', start)

    def _backtick_end(self) -> int:
        """The place of the back-tick that ends what begins here."""
        text, end, at = self.text, self.end, self.at + 1
        close = 0
        while True:
            if close < at:
                close = text.find('`', at, end)
            if close < 0:
                raise self.fail('a back-tick is never closed')
            escape = text.find('\\', at, close)
            if escape < 0:
                return close
            at = escape + 2

    def _backtick(self, parts: list[Part], subs: list[Substitution], *, double: bool) -> None:
        start, close = self.at, self._backtick_end()
        self.at = close + 1
        parts.append(('X' if double else 'x', ''))
        commands = self._clear(start + 1, close)
        reader = None
        if commands is None:
            self._deeper()
            body = self.text[start + 1 : close]
            if '\\' in body:
                reader = Reader(
                    _back_tick_text(body, double=double),
                    shell=self.shell,
                    fixed=self.place(start, self.at),
                    depth=self.depth,
                    extglob=self.extglob,
                    numbers=self.numbers,
                )
            else:
                reader = self._inside(start + 1, close)
            commands = reader.deferred()
            self.depth -= 1
        place = self.place(start, self.at)
        subs.append(Substitution('`', commands, place))
        self.operators.append(('`', place))
        if reader is not None:
            self._adopt(reader)

    def _clear(self, start: int, end: int) -> Sequence | None:
        """The commands between two places where there are none or a plain one; else `None`: they have to be read."""
        if start == end:
            return []
        match = _PLAIN.match(self.text, start, end)
        if match is None or match.end(2) != end or match[1] in _NOT_PLAIN:
            return None
        return [Plain(match[0], start, self.fixed)]

    def _inside(self, start: int, end: int) -> Reader:
        reader = Reader(
            self.text,
            shell=self.shell,
            start=start,
            end=end,
            fixed=self.fixed,
            depth=self.depth,
            extglob=self.extglob,
            numbers=self.numbers,
            continued=self.continued,
        )
        reader.memo, reader.again = self.memo, self.again
        return reader

    def _adopt(self, reader: Reader) -> None:
        self.operators += reader.operators
        self.hidden += reader.hidden
        self.assigned += reader.assigned
        self.negations += reader.negations

    def _process(self, char: str, subs: list[Substitution]) -> None:
        start = self.at
        if not self.bash:
            raise self.fail(f'`{char}(` {_BASH_ONLY}')
        if self._known(start, subs) is not None:
            return
        mark = self._mark()
        self.at = self._skip(start + 1) + 1
        self._operator(f'{char}(', start)
        commands = self._until_parenthesis(start)
        found = Substitution(f'{char}(', commands, self.place(start, self.at))
        subs.append(found)
        self._keep(start, 'p', [found], mark)

    def _until_parenthesis(self, start: int) -> Sequence:
        """Read commands up to the `)` of a substitution."""
        self._blanks()
        begin, command = self.at, self._plain()
        if command is not None and self._char(self.at) == ')':
            self.at += 1
            return [command]
        self.at = begin
        self._deeper()
        pending, self.pending = self.pending, []
        closer, self.closer = self.closer, ')'
        self.opening = self.at
        commands = self._list(')')
        if self._peek() != ')':
            raise self.fail('a ( is never closed', start)
        if self.pending:
            raise self.fail('a here-document has no end', start)
        self.at += 1
        self.pending, self.closer = pending, closer
        self.depth -= 1
        return commands

    # Expansions

    def _dollar(self, parts: list[Part], subs: list[Substitution], *, quoted: bool) -> None:
        start = self.at
        at = self._skip(start + 1)
        char = self._char(at)
        if char == '(':
            self._dollar_parenthesis(start, at, parts, subs, quoted=quoted)
        elif char == '{':
            self.at = at + 1
            self._braced(start, parts, subs, quoted=quoted)
        elif char == '[':
            if not self.bash:
                raise self.fail(f'`$[` {_BASH_ONLY}')
            parts.append(('n', ''))
            if self._known(start, subs) is None:
                mark = self._mark()
                self.at = at + 1
                inner: list[Part] = []
                found: list[Substitution] = []
                self._group(inner, found, ']', '[', what='the arithmetic')
                self._no_hidden_code(inner, start)
                self._keep(start, 'n', found, mark)
                subs += found
        elif char == "'" and not quoted:
            if not self.bash:
                raise self.fail(f"`$'` {_BASH_ONLY}")
            self._ansi_c(start, at, parts)
        elif char == '"' and not quoted:
            if not self.bash:
                raise self.fail(f'`$"` {_BASH_ONLY}')
            self.at = at
            self._double(parts, subs)
        elif name := self._name(at):
            parts.append(('V' if quoted else 'v', name))
        elif char in _SPECIAL_PARAMETERS and char:
            self.at = at + 1
            if char in _NUMBERS:
                parts.append(('n', ''))
            elif quoted:
                parts.append(('m' if char == '@' else 'X', ''))
            else:
                parts.append(('x', ''))
        else:
            parts.append(('q', '$'))
            self.at = start + 1

    def _name(self, at: int) -> str:
        """A name at `at`, over continuations; moves behind it when there is one."""
        match = _NAME.match(self.text, at, self.end)
        if match is None:
            return ''
        name = match[0]
        self.at = match.end()
        while self.continued and (after := self._skip(self.at)) != self.at:
            match = re.compile(r'[A-Za-z0-9_]+').match(self.text, after, self.end)
            if match is None:
                break
            name += match[0]
            self.at = match.end()
        return name

    def _ansi_c(self, start: int, at: int, parts: list[Part]) -> None:
        close = at + 1
        while True:
            close = self.text.find("'", close, self.end)
            if close < 0:
                raise self.fail("a $' is never closed", start)
            before = close
            while self.text[before - 1] == '\\':
                before -= 1
            if not (close - before) % 2:
                break
            close += 1
        parts.append(('q', ansi_c(self.text[at + 1 : close])))
        self.at = close + 1

    def _dollar_parenthesis(
        self, start: int, at: int, parts: list[Part], subs: list[Substitution], *, quoted: bool
    ) -> None:
        known = self._known(start, subs)
        if known is not None:
            parts.append(('n' if known == 'n' else 'X' if quoted else 'x', ''))
            return
        mark = self._mark()
        found = list[Substitution]()
        second = self._skip(at + 1)
        arithmetic = False
        if self._char(second) == '(':
            inner: list[Part] = []
            self.again += 1
            arithmetic = self._arithmetic_end(second, inner, found, command=False)
            self.again -= 1
            if arithmetic:
                self._no_hidden_code(inner, start)
                parts.append(('n', ''))
            else:
                self._forget(mark)
                # `$((a); b)`: not arithmetic, so bash takes the same text, up to the same `)`, as commands.
                if self.bash:
                    self.at = at + 1
                    self._close(')', '(', what='the substitution')
                    close = self.at
                    self._deeper()
                    inside = self.text[at + 1 : close - 1]
                    if '\\\n' in inside and ('#' in inside or '<<' in inside):
                        # bash joins these lines before it knows that they are commands, in comments too.
                        error = self.fail(
                            'a line is continued in `$((…); …)` with a comment or a here-document'
                        )
                        error.deferred = True
                        raise error
                    reader = self._inside(at + 1, close - 1)
                    commands = reader.deferred()
                    self._adopt(reader)
                    self.depth -= 1
                else:
                    self.at = at + 1
                    commands = self._until_parenthesis(start)
                found = [Substitution('$(', commands, self.place(start, self.at))]
        else:
            self.at = at + 1
            found = [Substitution('$(', self._until_parenthesis(start), self.place(start, self.at))]
        if not arithmetic:
            number = _PRINTS_NUMBER.fullmatch(self.text, start, self.at)
            known = number is not None and self.numbers()
            parts.append(('n' if known else 'X' if quoted else 'x', ''))
            self.operators.append(('$(', self.place(start, self.at)))
        self._keep(start, 'n' if arithmetic else 'x', found, mark)
        subs += found

    def _arithmetic_end(
        self, second: int, parts: list[Part], subs: list[Substitution], *, command: bool = True
    ) -> bool:
        """Read from the second `(` of `((`; say whether this is arithmetic, which ends in `))`."""
        self.at = begin = second + 1
        if self.bash:
            self._close(')', '(', what='the arithmetic')
            end = self.at
        else:
            self.scan(parts, subs, ')', '(', what='the arithmetic')
            end = 0
        if command and self.text.startswith('\\\n', self.at):
            raise self.fail('a line is continued behind a `)` of `((`')
        if self._peek() != ')':
            return False
        if end:
            self._between(begin, end - 1, parts, subs, what='the arithmetic')
        self.at += 1
        return True

    def _braced(
        self, start: int, parts: list[Part], subs: list[Substitution], *, quoted: bool
    ) -> None:  # the forms of ${…}
        char = self._peek()
        if char and char in ' \t\n|':
            raise self.fail('`${ …; }` is not read', start)
        length = indirect = False
        if char == '#' and self._char(self._skip(self.at + 1)) not in set('}:-+=?%#/^,@') | {''}:
            length = True
            self.at += 1
        elif char == '!' and self._char(self._skip(self.at + 1)) not in set('}:-+=?%#/^,@') | {''}:
            indirect = True
            self.at += 1
            if not self.bash:
                raise self.fail(f'`${{!` {_BASH_ONLY}', start)
        at = self._skip(self.at)
        name = self._name(at)
        opens = self._char(at) == '$' and self._char(self._skip(at + 1)) in {'{', '('}
        if not name and (char := self._char(at)) in _SPECIAL_PARAMETERS and char and not opens:
            name = char
            self.at = at + 1
            if char == '$' and self._char(self.at) == '$':
                self.at += (
                    1  # bash takes `$$` as a pair even here, so that a `{` behind it opens nothing
                )
            while name.isdigit() and (char := self._peek()).isdigit():
                name += char
                self.at += 1
        several = name == '@'
        subscripted = bool(name) and self._peek() == '['
        if subscripted and not self.bash:
            raise self.fail(f'a subscript {_BASH_ONLY}', start)
        plain = bool(name) and not length and not indirect
        if plain and self._peek() == '}':
            self.at += 1
            if several or not _NAME.fullmatch(name):
                parts.append(
                    ('n', '')
                    if name in '#?$'
                    else (('m' if several else 'X') if quoted else 'x', '')
                )
            else:
                parts.append(('V' if quoted else 'v', name))
            return
        begin = self.at
        if not self.bash and self._sh_lacks_form():
            raise self.fail(f'this form of `${{…}}` {_BASH_ONLY}', start)
        inner: list[Part] = []
        before = len(subs)
        self.scan(inner, subs, '}', '', double=quoted, what='the expansion')
        rest = self.text[begin : self.at - 1].replace('\\\n', '')
        assigns = False
        if subscripted:
            # Only now is its end known: bash looks for the `}` first, over any brackets.
            several = several or rest.startswith(('[@]', '[*]'))
            self._no_hidden_code(_subscript(inner), start)
            assigns = re.search(r'\]:?=', rest) is not None
            behind = _behind_subscript(inner)
            if behind is None:
                # bash ends the expansion here where it splits the line, and at a later `}` where it expands the word.
                error = self.fail('a subscript has no `]` before the `}`', start)
                error.deferred = True
                raise error
            rest = behind
        first, second = rest[:1], rest[1:2]
        if first == '@' and 'P' in rest:
            self.hidden.append(
                (
                    '`@P` expands a value as a prompt, which runs the commands in it',
                    self.place(start, self.at),
                )
            )
        if first == ':' and second not in set('-+=?'):
            self._no_hidden_code(inner, start)
        if name and (assigns or first == '=' or (first == ':' and second == '=')):
            place = self.place(start, self.at)
            value = None
            if not assigns:
                whole = Word(self.text[start : self.at], inner, place, subs[before:])
                value = whole.without(len(rest[: rest.index('=') + 1]))
            self.assigned.append(('' if indirect else name, value, place))
        if length:
            parts.append(('n', ''))
        else:
            kind = ('m' if several or indirect or '@' in rest else 'X') if quoted else 'x'
            parts.append((kind, evaluated(inner)))

    def _sh_lacks_form(self) -> bool:
        first, second = self._peek(), self._char(self._skip(self.at + 1))
        return (first != '' and first in '/^,@') or (first == ':' and second not in set('-+=?'))

    def _group(
        self, parts: list[Part], subs: list[Substitution], close: str, opener: str, *, what: str
    ) -> None:
        """Read up to the `close` that matches, and then what stands in between.

        bash counts the brackets of arithmetic and patterns over quotes, in arithmetic also over `$(…)` and `$[…]`, but
        not over `${…}`, which it reads when the text is expanded.
        """
        begin = self.at
        self._close(close, opener, what=what, arithmetic=what != 'the pattern')
        self._between(begin, self.at - 1, parts, subs, what=what)

    def _close(self, close: str, opener: str, *, what: str, arithmetic: bool = True) -> None:
        """Move behind the `close` that matches, of what is read later."""
        mark = self._mark()
        self.again += 1
        self._raw(close, opener, what=what, arithmetic=arithmetic)
        self.again -= 1
        self._forget(mark)

    def _between(
        self, begin: int, end: int, parts: list[Part], subs: list[Substitution], *, what: str
    ) -> None:
        """Read the quotes and expansions between two places."""
        reader = self._inside(begin, end)
        inside = self.text[begin:end]
        if '$' not in inside and '`' not in inside:
            reader.scan(parts, subs, '', '', what=what)
            return
        reader.depth += 1
        try:
            reader.scan(parts, subs, '', '', what=what)
        except NotUnderstood as error:
            error.deferred = True
            raise
        self._adopt(reader)

    def _raw(self, close: str, opener: str, *, what: str, arithmetic: bool) -> None:
        """Move behind the `close` that matches, over quotes, and in arithmetic over `$(…)` and `$[…]`."""
        start, text, end, count = self.at, self.text, self.end, 1
        while self.at < end:
            match = _SCAN_RUN.match(text, self.at, end)
            if match:
                self.at = match.end()
            char = self._char(self.at)
            if char == close:
                count -= 1
                self.at += 1
                if not count:
                    return
            elif char == opener:
                count += 1
                self.at += 1
            elif char == '\\':
                self.at += 2
            elif char == '"':
                self._double([], [])
            elif char == "'":
                self._quoted(char, [], [])
            elif char == '`':
                self.at = self._backtick_end() + 1
            elif char == '$' and arithmetic and self._char(self._skip(self.at + 1)) == '(':
                self._dollar([], [], quoted=False)
            elif char == '$' and arithmetic and self._char(self._skip(self.at + 1)) == '[':
                try:
                    self._dollar([], [], quoted=False)
                except NotUnderstood as error:
                    error.deferred = True  # bash notices when it evaluates the text
                    raise
            elif char == '$' and self._char(self._skip(self.at + 1)) == "'":
                self._ansi_c(self.at, self._skip(self.at + 1), [])
            else:
                self.at += 1
        raise self.fail(f'{what} is never closed', start)

    def scan(
        self,
        parts: list[Part],
        subs: list[Substitution],
        close: str,
        opener: str,
        *,
        what: str,
        double: bool = False,
    ) -> None:
        """Read up to the `close` that matches, over quotes and expansions; moves behind it."""
        start, text, end, count = self.at, self.text, self.end, 1
        run = _SCAN_RUN
        self._deeper()
        while self.at < end:
            match = run.match(text, self.at, end)
            if match:
                parts.append(('u', match[0]))
                self.at = match.end()
            char = self._char(self.at)
            if not char:
                break
            if char == close:
                count -= 1
                self.at += 1
                if not count:
                    self.depth -= 1
                    return
                parts.append(('u', char))
            elif char == opener:
                count += 1
                self.at += 1
                parts.append(('u', char))
            elif char == '\\':
                if self._char(self.at + 1) != '\n':
                    parts.append(('q', self._char(self.at + 1)))
                self.at += 2
            elif char == "'" and double:
                # bash looks for the second ' where it splits the line, and takes both as text where it expands it.
                match = _HARMLESS_QUOTES.match(text, self.at, end)
                if match is None:
                    raise self.fail("a ' inside a quoted `${…}` is not read")
                parts.append(('q', match[0]))
                self.at = match.end()
            elif char in '\'"`':
                if char == '`':
                    self._backtick(parts, subs, double=double)
                else:
                    self._quoted(char, parts, subs)
            elif char == '$':
                match = _HARMLESS_ANSI_C.match(text, self.at, end) if double else None
                if match is None:
                    self._dollar(parts, subs, quoted=double)
                else:
                    parts.append(('q', match[0]))
                    self.at = match.end()
            elif (
                char in '<>'
                and (close in {']', '}'} or what == 'the pattern')
                and self._char(self._skip(self.at + 1)) == '('
            ):
                begin = self.at
                self._process(char, subs)
                if close and close in text[begin : self.at]:
                    raise self.fail(f'{what} holds `{char}(…)` with a `{close}`', begin)
            else:
                parts.append(('u', char))
                self.at += 1
        if not close:
            self.depth -= 1
            return
        raise self.fail(f'{what} is never closed', start)

    def _no_hidden_code(self, parts: list[Part], start: int) -> None:
        """Note text that arithmetic expands a second time: a subscript in it runs its `$(…)`."""
        text = evaluated(parts)
        if QUOTED_CODE.search(text):
            self.hidden.append(
                (
                    'Arithmetic and subscripts expand their text again, which runs the commands quoted in it',
                    self.place(start, self.at),
                )
            )
        if '=' in text or '++' in text or '--' in text:
            place = self.place(start, self.at)
            self.assigned += [(name, None, place) for name in arithmetic_names(parts)]

    def _array(self, subs: list[Substitution]) -> list[Word]:
        """Read the words of `name=(…)` up to its `)`."""
        start = self.at
        words: list[Word] = []
        while True:
            char = self._blanks()
            if char == '\n':
                if self.pending:
                    raise self.fail('a here-document begins before an array has ended')
                self.at += 1
            elif char == ')':
                self.at += 1
                return words
            else:
                word = self._word(mode='array')
                if not isinstance(word, Word):
                    raise self.fail('an array is never closed', start)
                words.append(word)
                subs += word.substitutions

    # Here-documents

    def _here_document(self, document: _HereDocument) -> None:
        """Read a body from the start of a line; moves to the line behind its end."""
        text, end, at = self.text, self.end, self.at
        body: list[str] = []
        exact = True
        while True:
            if at >= end:
                raise NotUnderstood('a here-document has no end', document.redirect.span)
            line_start = at
            line, at = self._here_line(at, joined=not document.quoted)
            raw_line = text[line_start:at]
            if document.strip:
                exact = exact and not line.startswith('\t')
                line = line.lstrip('\t')
            if line == document.delimiter:
                if not self.bash and '\\\n' in raw_line:
                    raise NotUnderstood(
                        'the end of a here-document is continued', document.redirect.span
                    )
                break
            if (
                self.closer
                and line.startswith(document.delimiter)
                and ')' in line[len(document.delimiter) :]
            ):
                # Inside `$(…)` bash ends the text at `EOF)` too, and reads on right behind the word.
                if not self.bash or '\\\n' in raw_line:
                    raise NotUnderstood(
                        'a line begins with the end of a here-document', document.redirect.span
                    )
                at = line_start + raw_line.index(document.delimiter) + len(document.delimiter)
                break
            exact = exact and '\\\n' not in raw_line
            body.append(line + '\n')
        content = ''.join(body)
        begin, self.at = self.at, min(at, end)
        span = document.redirect.span
        if document.quoted or not ('$' in content or '`' in content or '\\' in content):
            document.redirect.body = Word(content, (('q', content),), span)
            return
        self._deeper()
        if exact:
            reader = self._inside(begin, begin + len(content))
        else:
            reader = Reader(
                content,
                shell=self.shell,
                fixed=span,
                depth=self.depth,
                extglob=self.extglob,
                numbers=self.numbers,
            )
        try:
            document.redirect.body = reader.here_text(span)
        except NotUnderstood as error:
            error.deferred = True
            raise
        self._adopt(reader)
        self.depth -= 1

    def _here_line(self, at: int, *, joined: bool) -> tuple[str, int]:
        """The line at `at` without its newline, with the lines that continue it, and where the next begins."""
        line = ''
        while True:
            close = self.text.find('\n', at, self.end)
            if close < 0:
                return line + self.text[at : self.end], self.end + 1
            piece = self.text[at:close]
            at = close + 1
            if not joined or (len(piece) - len(piece.rstrip('\\'))) % 2 == 0:
                return line + piece, at
            line += piece[:-1]

    def here_text(self, span: Span) -> Word:
        """Read the whole text as the body of an unquoted here-document."""
        start = self.at
        parts: list[Part] = []
        subs: list[Substitution] = []
        while self.at < self.end:
            match = _HERE_RUN.match(self.text, self.at, self.end)
            if match:
                parts.append(('q', match[0]))
                self.at = match.end()
            char = self._char(self.at)
            if char == '\\':
                after = self._char(self.at + 1)
                parts.append(('q', after if after and after in '$`\\' else '\\' + after))
                self.at += 2
            elif char == '`':
                self._here_backtick(parts, subs)
            elif char == '$':
                self._dollar(parts, subs, quoted=True)
        return Word(self.text[start : self.end], parts, span, subs)

    def _here_backtick(self, parts: list[Part], subs: list[Substitution]) -> None:
        start = self.at
        self._backtick(parts, subs, double=False)
        # bash keeps the backslash of `\"` here, dash removes it, as both do inside double quotes.
        if not self.bash and '\\"' in self.text[start : self.at]:
            raise self.fail(r'a `\"` inside back-ticks in a here-document is not read', start)

    # Redirections

    def _redirect(self, descriptor: str, start: int, redirects: list[Redirect]) -> None:
        """Read the redirection that begins here."""
        match = None if self.continued else _REDIRECT.match(self.text, self.at, self.end)
        if match:
            operator, self.at = match[0], match.end()
        else:
            operator = next(op for op in _REDIRECTS if self._take(op))
        if not self.bash and (operator in {'<<<', '&>', '&>>'} or descriptor.startswith('{')):
            raise self.fail(f'`{descriptor}{operator}` {_BASH_ONLY}', start)
        self._operator(operator, start)
        char = self._blanks()
        if operator in {'<&', '>&'} and char == '-':
            # The `-` is a token of its own in bash: `>&-rm x` runs rm. Other shells read a word.
            self.at += 1
            if not self.bash and self._peek() and self._char(self.at) not in _BREAKS:
                raise self.fail(f'text right behind `{operator}-` is read in different ways', start)
            redirects.append(
                Redirect(
                    operator,
                    descriptor,
                    Word('-', (('u', '-'),), self.place(self.at - 1, self.at)),
                    self.place(start, self.at),
                )
            )
            return
        target = self._word()
        if not isinstance(target, Word):
            raise self.fail(f'`{operator}` has no target')
        if operator not in {'<&', '>&'} and self._is_descriptor(target):
            raise self.fail(f'`{operator}` has no target')
        redirect = Redirect(operator, descriptor, target, self.place(start, self.at))
        if not self.bash and operator == '>&' and not (target.value or '0').isdigit():
            raise self.fail(f'`>&` with a file {_BASH_ONLY}', start)
        if operator in {'<<', '<<-'}:
            self.pending.append(self._delimiter(redirect))
        elif operator == '<<<':
            redirect.body = Word(
                target.raw, (*target.parts, ('q', '\n')), target.span, target.substitutions
            )
        redirects.append(redirect)

    def _delimiter(self, redirect: Redirect) -> _HereDocument:
        target = redirect.target
        text = ''
        for kind, part in target.parts:
            if kind in 'uq':
                text += part
            elif kind in 'vV' and '{' not in target.raw:
                text += '$' + part
            elif not any(char in target.raw for char in '\'"\\'):
                # Nothing is expanded here: the end is named by the text as it stands.
                text = target.raw
                break
            else:
                raise NotUnderstood(
                    'the end of a here-document is named by an expansion', redirect.span
                )
        if '\n' in text:
            # No line can be equal to it.
            raise NotUnderstood('a here-document has no end', redirect.span)
        quoted = any(char in target.raw.replace('\\\n', '') for char in '\'"\\')
        redirect.target = Word(target.raw, (('q', text),), target.span)
        return _HereDocument(redirect, text, quoted, redirect.operator == '<<-')

    def _redirects(self) -> list[Redirect] | tuple[()]:
        """Read the redirections behind a compound command."""
        redirects: list[Redirect] = []
        while True:
            char = self._blanks()
            start = self.at
            descriptor = ''
            if char and (char.isdigit() or char == '{'):
                descriptor = self._descriptor(start)
                if not descriptor:
                    return redirects
            elif char not in {'<', '>', '&'}:
                return redirects or ()
            if not self._starts_redirect():
                self.at = start
                return redirects or ()
            self._redirect(descriptor, start, redirects)

    def _descriptor(self, start: int) -> str:
        """The number or `{name}` at `start` when a redirection follows at once; moves behind it."""
        word = self._word()
        if isinstance(word, Word) and self._is_descriptor(word):
            return word.literal
        self.at: int = start
        return ''

    def _is_descriptor(self, word: Word) -> bool:
        if len(word.parts) != 1 or word.parts[0][0] != 'u' or self._peek() not in {'<', '>'}:
            return False
        text = word.parts[0][1]
        if text.isdigit() and text.isascii():
            if not self.bash and len(text) > 1:
                raise self.fail(
                    'a number of two digits before a redirection is read in different ways'
                )
            return int(text[:12]) <= 0x7FFFFFFF
        return self.bash and _DESCRIPTOR_NAME.fullmatch(text) is not None

    def _starts_redirect(self) -> bool:
        char = self._peek()
        if char in {'<', '>'}:
            return self._char(self._skip(self.at + 1)) != '('
        if char != '&' or self._ahead('&>') < 0:
            return False
        if not self.bash:
            raise self.fail(f'`&>` {_BASH_ONLY}')
        return True

    # Lists

    def script(self) -> Sequence:
        """Read the whole text as a program."""
        commands = self._list('')
        if self._blanks():
            word = self._keyword() or self._char(self.at)
            raise self.fail(f'`{word}` does not belong here')
        if self.pending:
            raise NotUnderstood('a here-document has no end', self.pending[0].redirect.span)
        return commands

    def deferred(self) -> Sequence:
        """Read the whole text as a program that the shell parses only when it runs it."""
        try:
            return self.script()
        except NotUnderstood as error:
            error.deferred = True
            raise

    def _list(self, closer: str, *, needed: bool = False) -> Sequence:
        """Read commands up to `closer`, a keyword that ends a list, or the end of the text."""
        items: Sequence = []
        while True:
            char = self._newlines()
            if not char or char == closer == ')':
                break
            item = self._plain()
            if item is None:
                if self._keyword() in _ENDINGS or (char == ';' and self._ends_case()):
                    break
                item = self._and_or(None)
            elif self.at < self.end and self.text[self.at] in '|&':
                item = self._and_or(item)
            char = self._blanks()
            if char == ';' and not self._ends_case():
                self.operators.append((';', self.place(self.at, self.at + 1)))
                self.at += 1
            elif char == '\n':
                place = self.place(self.at, self.at + 1)
                char = self._newlines()
                # One that only ends a line, or stands before what closes a command, separates nothing.
                if char and char not in ');' and self._keyword() not in _CLOSINGS:
                    self.operators.append(('\n', place))
            elif char == '&' and self._ahead('&&') < 0:
                self.operators.append(('&', self.place(self.at, self.at + 1)))
                self.at += 1
                if isinstance(item, AndOr):
                    item.background = True
                else:
                    item = AndOr([item], background=True)
            elif not char or char in ';)' or self._keyword() in _ENDINGS:
                items.append(item)
                break
            else:
                raise self.fail(f'`{char}` does not belong here')
            items.append(item)
        if needed and not items:
            raise self.fail('a command is missing')
        return items

    def _ends_case(self) -> bool:
        """Whether the `;` that stands here is part of what ends a branch of `case`."""
        after = self._char(self._skip(self.at + 1))
        return after == ';' or (after == '&' and self.bash)

    def _plain(self) -> Plain | None:
        """Read a command if it is plain; moves behind it and the blanks that follow."""
        start = self.at
        match = _PLAIN.match(self.text, start, self.end)
        if match is None or match[1] in _NOT_PLAIN or self.strict:
            return None
        self.at = match.end(2)
        return Plain(match[0], start, self.fixed)

    def _and_or(self, plain: Plain | None) -> AndOr | Pipeline | Command:
        """Read pipelines and what joins them, the first command of which may have been read."""
        first = self._pipeline(plain)
        pipelines = [first]
        while self._blanks() in {'&', '|'} and self._char(self.at):
            start = self.at
            operator = self.text[start] * 2
            if not self._take(operator):
                break
            self._operator(operator, start)
            self._newlines()
            pipelines.append(self._pipeline(self._plain()))
        return first if len(pipelines) == 1 else AndOr(pipelines)

    def _pipeline(self, plain: Plain | None) -> Pipeline | Command:
        """Read commands and the pipes that join them, the first of which may have been read."""
        self._deeper()
        keywords: list[str] = []
        twice = False
        if plain is None:
            start = self._skip(self.at)
            keywords = self._prefixes()
            if start == self.opening and keywords[:1] == ['time'] and self.bash:
                twice = self._read_as_words()
            if keywords and self._ends_command():
                self.depth -= 1
                return Pipeline([], keywords)
        try:
            first = plain or self._command(first=True)
        except NotUnderstood as error:
            error.deferred = error.deferred or twice
            raise
        commands = [first]
        while self._blanks() == '|' and self._ahead('||') < 0:
            start = self.at
            self.at += 1
            operator = '|'
            if self._ahead('&') > 0:
                if not self.bash:
                    raise self.fail(f'`|&` {_BASH_ONLY}', start)
                self._take('&')
                operator = '|&'
            self._operator(operator, start)
            self._newlines()
            commands.append(self._plain() or self._command(first=False))
        self.depth -= 1
        return Pipeline(commands, keywords) if keywords or len(commands) > 1 else first

    def _read_as_words(self) -> bool:
        """Make sure that `time` right behind `$(` is read in one way; say whether it was read, and is read again.

        There bash 5.2 takes `time` for a program first, so that what follows must be words, and for the keyword when it
        runs the substitution. What it can't read the first time it drops, and goes on with the next line.
        """
        if self._peek() != '(' and not self._keyword():
            self.strict = True
            return False
        state, mark = (self.at, self.depth, self.pending[:]), self._mark()
        self.strict, self.opening = True, -1
        self.again += 1
        try:
            self._simple()
            if (
                any(self._take(operator) for operator in ('&&', '||', '|&', '|', ';', '&'))
                or self._peek() == '\n'
            ):
                self._list(')', needed=True)
            understood = self._peek() == ')'
        except NotUnderstood:
            understood = False
        if not understood:
            raise self.fail('`time` right behind `$(` times only simple commands', state[0])
        self.at, self.depth, self.pending = state
        self.again -= 1
        self._forget(mark)
        return True

    def _ends_command(self) -> bool:
        char = self._blanks()
        if char == '&' and self._starts_redirect():
            return False
        return not char or char in '\n;&|)' or self._keyword() in _ENDINGS

    def _prefixes(self) -> list[str]:
        """Read `!` and `time`, which may stand before a pipeline any number of times."""
        keywords: list[str] = []
        while True:
            self._blanks()
            start = self.at
            word = self._keyword()
            if word == '!':
                negates = self._char(self._after_keyword(word)) == '('
                if negates and self.extglob:
                    raise self.fail('`!(` is a pattern or a subshell, as extglob says')
                self._take(word)
                if negates:
                    self.negations.append(self.place(start, self.at + 1))
                self._operator('!', start)
            elif word == 'time' and self.bash:
                self._take(word)
                self._blanks()
                for option in ('-p', '--'):
                    after = self._after_keyword(option)
                    if after > 0:
                        self.at = after
                        self._blanks()
            else:
                return keywords
            keywords.append(word)

    def _after_keyword(self, word: str) -> int:
        """The place behind `word` when it stands here as a whole word, else -1."""
        after = self._ahead(word)
        if after < 0:
            return -1
        after = self._skip(after)
        char = self._char(after)
        if char and char not in _BREAKS:
            return -1
        if char and char in '<>' and self._char(self._skip(after + 1)) == '(':
            return -1
        return after

    def _keyword(self) -> str:
        """The reserved word that stands here, or ''. Several forms ask for the same one."""
        if self.at != self.asked[0]:
            self.asked = (self.at, self._find_keyword())
        return self.asked[1]

    def _find_keyword(self) -> str:
        match = _KEYWORD.match(self.text, self._skip(self.at), self.end)
        if match is None or len(match[0]) > len('function'):
            return ''
        word, at = match[0].replace('\\\n', ''), match.end()
        while self.continued and (after := self._skip(at)) != at and len(word) < len('function'):
            match = _LETTERS.match(self.text, after, self.end)
            if match is None:
                break
            word, at = word + match[0], match.end()
        return word if word in _RESERVED and self._after_keyword(word) > 0 else ''

    # Commands

    def _command(self, *, first: bool) -> Command:
        char = self._blanks()
        start = self.at
        if char == '(':
            return self._parenthesis(start)
        word = self._keyword()
        if not word or (word == 'time' and (not first or not self.bash)):
            # `time` is a plain word behind a pipe and in a POSIX sh.
            if self.bash and char == ']' and self._after_keyword(']]') > 0:
                raise self.fail('`]]` does not belong here')
            return self._simple()
        if word in _ENDINGS or word in {'!', 'time', 'in'}:
            raise self.fail(f'`{word}` does not belong here')
        if not self.bash and word in {'[[', 'function', 'select', 'coproc'}:
            raise self.fail(f'`{word}` {_BASH_ONLY}')
        self._take(word)
        if word == 'coproc':
            return self._coprocess(start)
        return self._compound(word, start)

    def _compound(self, word: str, start: int) -> Compound:
        command = Compound(word, self.place(start, start))
        if word == '{':
            self._operator('{', start)
            command.bodies.append(self._list('', needed=True))
            self._expect('}')
        elif word == 'if':
            self._if(command)
        elif word in {'while', 'until'}:
            command.bodies += [self._list('', needed=True)]
            self._expect('do')
            command.bodies += [self._list('', needed=True)]
            self._expect('done')
        elif word in {'for', 'select'}:
            self._for(command)
        elif word == 'case':
            self._case(command)
        elif word == '[[':
            self._condition(command)
        else:
            self._blanks()
            name = self._plain_word('the name of a function')
            command.name = name.raw
            if self._blanks() == '(' and self._char(self._skip_blanks(self.at + 1)) == ')':
                self.at = self._skip_blanks(self.at + 1) + 1
            return self._function(command, start)
        command.redirects = self._redirects()
        command.span = self.place(start, self.at)
        return command

    def _skip_blanks(self, at: int) -> int:
        while (after := self._skip(at)) < self.end and (after != at or self.text[after] in ' \t'):
            at = after + 1 if after == at else after
        return at

    def _expect(self, word: str) -> None:
        self._newlines()
        after = self._after_keyword(word)
        if after < 0:
            char = self._keyword() or self._char(self.at)
            found = f'`{char}` stands' if char.strip() else 'the text ends'
            raise self.fail(f'{found} where `{word}` is expected')
        self.at = after

    def _parenthesis(self, start: int) -> Compound:
        second = self._skip(start + 1)
        if self._char(second) == '(':
            if not self.bash:
                raise self.fail(f'`((` {_BASH_ONLY}')
            parts: list[Part] = []
            subs: list[Substitution] = []
            mark = self._mark()
            self.again += 1
            arithmetic = self._arithmetic_end(second, parts, subs)
            self.again -= 1
            if arithmetic:
                self._no_hidden_code(parts, start)
                word = Word('', parts, self.place(start, self.at), subs)
                command = Compound('((', self.place(start, self.at), words=[word])
                command.redirects = self._redirects()
                return command
            self._forget(mark)
            self.at = start
        command = Compound('(', self.place(start, start))
        self.at = start + 1
        self._operator('(', start)
        command.bodies.append(self._list(')', needed=True))
        if self._peek() != ')':
            raise self.fail('a ( is never closed', start)
        self.at += 1
        command.redirects = self._redirects()
        command.span = self.place(start, self.at)
        return command

    def _if(self, command: Compound) -> None:
        command.bodies.append(self._list('', needed=True))
        self._expect('then')
        command.bodies.append(self._list('', needed=True))
        while True:
            self._newlines()
            word = self._keyword()
            if word == 'elif':
                self._take(word)
                command.bodies.append(self._list('', needed=True))
                self._expect('then')
                command.bodies.append(self._list('', needed=True))
            elif word == 'else':
                self._take(word)
                command.bodies.append(self._list('', needed=True))
                self._expect('fi')
                return
            else:
                self._expect('fi')
                return

    def _for(self, command: Compound) -> None:
        char = self._blanks()
        if char == '(' and command.kind == 'for':
            second = self._skip(self.at + 1)
            if self._char(second) != '(' or not self.bash:
                raise self.fail('`for (` is not read')
            start = self.at
            parts: list[Part] = []
            subs: list[Substitution] = []
            if not self._arithmetic_end(second, parts, subs):
                raise self.fail('`for ((` has no `))`', start)
            if sum(part.count(';') for kind, part in parts if kind == 'u') != 2:
                raise self.fail(
                    '`for ((` needs three expressions, with a `;` after the first two', start
                )
            self._no_hidden_code(parts, start)
            command.words = [Word('', parts, self.place(start, self.at), subs)]
            if self._blanks() == ';':
                self._separator()
        else:
            name = self._plain_word('the variable of a loop')
            if name.value is None:
                raise self.fail('the variable of a loop is not a name', name.span[0])
            command.name = name.value
            char = self._blanks()
            if char == ';':
                self._separator()
            else:
                self._newlines()
                if self._after_keyword('in') > 0:
                    self._take('in')
                    words: list[Word] = []
                    while isinstance(word := self._word_of_list(), Word):
                        words.append(word)
                    command.words = words
                    if self._blanks() == ';':
                        self._separator()
                    elif self._char(self.at) != '\n':
                        raise self.fail('a loop lacks its `;`')
        self._newlines()
        if self.bash and self._after_keyword('{') > 0:
            self._take('{')
            command.bodies.append(self._list('', needed=True))
            self._expect('}')
        else:
            self._expect('do')
            command.bodies.append(self._list('', needed=True))
            self._expect('done')

    def _separator(self) -> None:
        start = self.at
        self.at += 1
        self._operator(';', start)

    def _word_of_list(self) -> Word | None:
        self._blanks()
        word = self._word()
        return word if isinstance(word, Word) else None

    def _case(self, command: Compound) -> None:
        self._blanks()
        words = [self._plain_word('the subject of a case')]
        command.words = words
        self._expect('in')
        while True:
            char = self._newlines()
            if not char:
                raise self.fail('a case has no `esac`')
            if char == '(':
                self.at += 1
                self._blanks()
            elif self._after_keyword('esac') > 0:
                self._take('esac')
                return
            while True:
                self._blanks()
                words.append(self._plain_word('a pattern'))
                if self._blanks() != '|':
                    break
                self.at += 1
            if self._char(self.at) != ')':
                raise self.fail('a pattern lacks its `)`')
            self.at += 1
            command.bodies.append(self._list(''))
            self._newlines()
            ending = next((op for op in (';;&', ';;', ';&') if self._ahead(op) > 0), None)
            if ending is None:
                self._expect('esac')
                return
            if ending != ';;' and not self.bash:
                raise self.fail(f'`{ending}` {_BASH_ONLY}')
            self._take(ending)

    def _function(self, command: Compound, start: int) -> Compound:
        self._newlines()
        command.kind = 'function'
        at = self.at
        word = self._keyword()
        if self._char(at) != '(' and word not in _COMPOUND - {'function'}:
            raise self.fail('the body of a function is not a compound command')
        self._deeper()
        body = self._command(first=True)
        self.depth -= 1
        command.bodies.append([body])
        command.span = self.place(start, self.at)
        return command

    def _coprocess(self, start: int) -> Compound:
        self._blanks()
        begin = self.at
        command = Compound('coproc', self.place(start, start))
        self._deeper()
        word = self._keyword()
        if word in _COMPOUND or self._char(self.at) == '(':
            body = self._command(first=True)
        elif word and word != 'time':
            raise self.fail(f'`{word}` does not belong here')
        else:
            mark = self._mark()
            self.again += 1
            word = self._word(first=True)
            self.again -= 1
            name = None
            if isinstance(word, Word):
                char = self._blanks()
                second = self._keyword()
                compound = char == '(' or second in _COMPOUND
                if (second and second != 'time' and not compound) or self._after_keyword(']]') > 0:
                    raise self.fail(f'`{second or "]]"}` does not belong here')
                name = word if compound else None
            if name is not None:
                self.assigned.append((name.value or '', None, name.span))
                body = self._command(first=True)
            else:
                self._forget(mark)
                self.at = begin
                body = self._simple()
                if self.closer:
                    # bash 5.2 writes the commands of `$(…)` anew before it runs them: `coproc x` becomes `coproc COPROC x`.
                    command.name = 'COPROC'
        self.depth -= 1
        command.bodies.append([body])
        command.span = self.place(start, self.at)
        return command

    def _condition(self, command: Compound) -> None:
        """Read a `[[ ]]` up to its end; the words are expanded, and some are evaluated as arithmetic."""
        words: list[Word] = []
        tests: list[tuple[str, Word, Word]] = []
        self._test_list(words, tests)
        command.words, command.tests = words, tests
        self._test_blanks()
        after = self._after_keyword(']]')
        if after < 0:
            raise self.fail('a `[[` has no `]]`')
        self.at = after

    def _test_blanks(self) -> str:
        while self._blanks() == '\n':
            self._newline()
        return self._char(self.at)

    def _test_list(self, words: list[Word], tests: list[tuple[str, Word, Word]]) -> None:
        self._deeper()
        while True:
            self._test(words, tests)
            self._test_blanks()
            if not (self._take('&&') or self._take('||')):
                break
        self.depth -= 1

    def _test(self, words: list[Word], tests: list[tuple[str, Word, Word]]) -> None:
        char = self._test_blanks()
        if char == '(':
            self.at += 1
            self._test_list(words, tests)
            if self._test_blanks() != ')':
                raise self.fail('a ( is never closed')
            self.at += 1
            return
        if (after := self._after_keyword('!')) > 0:
            self.at = after
            self._deeper()
            self._test(words, tests)
            self.depth -= 1
            return
        if self._after_keyword(']]') > 0:
            raise self.fail('an operand of `[[` is missing')
        left = self._plain_word('an operand of `[[`')
        words.append(left)
        char = self._test_blanks()
        if not char or char in ')&|' or self._after_keyword(']]') > 0:
            return
        if _UNARY.fullmatch(left.raw.replace('\\\n', '')):
            self._blanks()
            operand = self._plain_word('an operand of `[[`')
            words.append(operand)
            tests.append((left.raw, operand, operand))
            return
        if char in '<>':
            self.at += 1
            operator = char
        else:
            operator = self._plain_word('an operator of `[[`').raw.replace('\\\n', '')
            if operator not in _BINARY:
                raise self.fail(f'`{operator}` is no operator of `[[`')
        self._blanks()
        if self._after_keyword(']]') > 0:
            raise self.fail('an operand of `[[` is missing')
        mode = 'regex' if operator == '=~' else 'pattern' if operator in {'=', '==', '!='} else ''
        right = self._word(mode=mode)
        if not isinstance(right, Word):
            raise self.fail('an operand of `[[` is missing')
        words.append(right)
        tests.append((operator, left, right))

    def _simple(self) -> Command:
        start = self._skip(self.at)
        self.at: int = start
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        assigning = False
        # Where a redirection follows an assignment, bash reads neither `name[…]` nor `name=(…)` in what comes next.
        strict, self.strict = self.strict, False
        while True:
            last = self.at
            char = self._blanks()
            if not char or char in '\n;|)':
                break
            begin = self.at
            if char == '(':
                if len(words) == 1 and not assignments and not redirects:
                    return self._defined_function(words[0], start)
                raise self.fail('`(` does not belong here')
            if char in '&<>':
                if self._starts_redirect():
                    assigning = False
                    strict = strict or bool(assignments)
                    self._redirect('', begin, redirects)
                    continue
                if char == '&':
                    break
            mode = '' if words or not strict else 'strict'
            # One begins here: all that could stand in its place was looked for.
            word = cast(
                'Word | Assignment',
                self._word(first=not words and not strict, assigning=assigning, mode=mode),
            )
            if isinstance(word, Assignment):
                assignments.append(word)
                continue
            if self._is_descriptor(word) and self._starts_redirect():
                self._redirect(word.literal, begin, redirects)
                assigning = False
                strict = strict or bool(assignments)
                continue
            if not words:
                if redirects and not assignments and self.closer and word.raw in _RESERVED:
                    # bash 5.2 writes the commands of `$(…)` anew, with redirections last: the word becomes a keyword.
                    raise self.fail(f'`{word.raw}` behind a redirection is read in two ways', begin)
                if strict and _SUBSCRIPTED.match(word.raw):
                    raise self.fail('a `[` behind a redirection is read in different ways', begin)
                assigning = word.raw.replace('\\\n', '') in _ASSIGNING and not strict
                if not self.bash and word.raw == 'function':
                    raise self.fail(f'`function` {_BASH_ONLY}')
            words.append(word)
        if not (words or assignments or redirects):
            char = self._char(self.at)
            raise self.fail(
                f'`{char}` does not belong here' if char.strip() else 'a command is missing'
            )
        if (
            len(words) > 1
            and words[0].raw == 'shopt'
            and any('extglob' in word.literal for word in words)
        ):
            self.extglob = self.bash
        return Simple(words or (), assignments or (), redirects or (), self.fixed or (start, last))

    def _defined_function(self, name: Word, start: int) -> Compound:
        self.at += 1
        if self._blanks() != ')':
            raise self.fail('`(` does not belong here')
        self.at += 1
        if not self.bash and not _NAME.fullmatch(name.raw):
            raise self.fail('the name of a function is not an identifier', start)
        return self._function(Compound('function', self.place(start, start), name=name.raw), start)


def _back_tick_text(body: str, *, double: bool) -> str:
    """The commands of a back-tick substitution, after the shell has removed one level of backslashes."""
    removed = '$`\\"' if double else '$`\\'
    text, at = '', 0
    while (escape := body.find('\\', at)) >= 0:
        text += body[at:escape]
        after = body[escape + 1 : escape + 2]
        if after == '\n':
            pass
        elif after and after in removed:
            text += after
        else:
            text += '\\' + after
        at = escape + 2
    return text + body[at:]


def read(
    text: str,
    *,
    shell: Shell = 'bash',
    fixed: Span | None = None,
    depth: int = 0,
    extglob: bool = False,
    numbers: Callable[[], bool] = lambda: False,
) -> tuple[Sequence, Reader]:
    """Read a program.

    Returns:
        Its commands, and the reader with what it found beside them: operators, hidden code, assigned variables.

    Raises:
        NotUnderstood: When the text is outside the grammar.
    """
    reader = Reader(text, shell=shell, fixed=fixed, depth=depth, extglob=extglob, numbers=numbers)
    return reader.script(), reader


def _subscript(parts: list[Part]) -> list[Part]:
    """What stands up to the last `]`: at least the subscript with which an expansion begins."""
    last = max(
        (index for index, (kind, text) in enumerate(parts) if kind == 'u' and ']' in text),
        default=-1,
    )
    return parts[: last + 1]


def _behind_subscript(parts: list[Part]) -> str | None:
    """What stands behind the `]` of the subscript with which an expansion begins, or `None` where it has none."""
    count = 0
    for index, (kind, text) in enumerate(parts):
        for at, char in enumerate(text if kind == 'u' else ''):
            count += (char == '[') - (char == ']')
            if not count:
                # What is quoted or expanded is no operator.
                marked = (text if kind == 'u' else '\0' + text for kind, text in parts[index + 1 :])
                return text[at + 1 :] + ''.join(marked)
    return None
