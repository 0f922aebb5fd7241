"""What runs what: the programs that run their arguments, or code in them, each with its own options.

One table, `PROGRAMS`: to add a program, add an entry. An entry names the options as `getopt` does (`n:` takes a value,
`d::` takes one only when it is glued on) and says what the rest of the words is. An option that an entry does not name
makes the command unresolved: a guess about which word is the command would be a hole.
"""

# ruff: noqa: ARG001, C901, PLR0911, PLR0912, PLR0915, PLR0917, S604  # every entry of the table has one signature; `shell` is a grammar

from __future__ import annotations

import itertools
import re
import shlex
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Protocol

from anyshell.policy.words import UNKNOWN, Word, static, unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyshell.policy.calls import Search, Situation
    from anyshell.policy.syntax import Shell, Span
    from anyshell.policy.words import Part


_SETTING = re.compile(r'[A-Za-z_]\w*=')


class Runs(Protocol):
    """Judges what a program runs."""

    def __call__(
        self, search: Search, name: str, words: list[Word], situation: Situation, span: Span, /
    ) -> None: ...


@dataclass(slots=True)
class Options:
    """The options of a program, as it parses them itself."""

    found: list[tuple[str, Word | None]] = field(default_factory=list[tuple[str, 'Word | None']])
    rest: list[Word] = field(default_factory=list[Word])
    open: list[Word] = field(default_factory=list[Word])
    problem: str = ''

    def has(self, *names: str) -> bool:
        """Whether one of these options is there."""
        return any(name in names for name, _ in self.found)

    def values(self, *names: str) -> list[Word]:
        """The values of these options."""
        return [value for name, value in self.found if name in names and value is not None]


@dataclass(frozen=True, slots=True)
class Grammar:
    """The options that a program knows: letters as in `getopt`, and long names with `=` or `?` for a value.

    `:::` and `=?` stand for a value that is the next word unless that begins with a dash, as Perl's programs have it.
    The first `operands` words that are no options may come from variables.
    """

    short: str
    names: str
    permute: bool = False
    number: re.Pattern[str] | None = None
    lenient: bool = False
    single_dash: bool = False
    operands: int = 0

    @property
    def letters(self) -> dict[str, str]:
        """Each letter with its colons."""
        return _letters(self.short)

    @property
    def long(self) -> dict[str, str]:
        """Each long name with its `=` or `?`."""
        return _names(self.names)

    def parse(self, name: str, words: Sequence[Word]) -> Options:  # one loop, as getopt has it
        """Read the options in front of the operands, or among them where the program permutes."""
        options = Options()
        index = 0
        while index < len(words):
            word = words[index]
            index += 1
            text = word.value
            if text is None:
                prefix = word.prefix()
                if not prefix and word.last_part:
                    # A path. That its folder begins with a dash is looked at where it runs.
                    prefix = word.last_part
                elif len(options.rest) < self.operands and word.stands_alone:
                    options.open.append(word)
                    prefix = word.raw
                elif not word.one_field or not prefix:
                    if self.permute and options.rest and not prefix.startswith('-'):
                        options.rest.append(word)
                        continue
                    options.problem = f'An argument of {name!r} in front of its command is not written out. Write it in plain words.'
                    break
                text = prefix
            known = word.value is not None
            if text == '--' and known:
                options.rest += words[index:]
                return options
            if self.number and self.number.fullmatch(text) and known:
                continue
            if not text.startswith('-') or (text == '-' and known):
                options.rest.append(word)
                if not self.permute:
                    options.rest += words[index:]
                    return options
                continue
            long = text.startswith('--') or (self.single_dash and len(text) > 2)  # `-x` is a letter
            index = (
                self._long(name, word, words, index, options)
                if long
                else self._short(name, word, words, index, options)
            )
            if options.problem:
                break
        return options

    def _long(
        self, name: str, word: Word, words: Sequence[Word], index: int, options: Options
    ) -> int:
        text = word.value if word.value is not None else word.prefix()
        given, equals, _ = text.lstrip('-').partition('=')
        matches = (
            [given] if given in self.long else [key for key in self.long if key.startswith(given)]
        )
        kinds = {self.long[key] for key in matches}
        if word.value is None and not equals:
            options.problem = f'An option of {name!r} is not written out. Write it in plain words.'
        elif len(kinds) != 1:
            if self.lenient or (equals and not kinds):
                options.found.append((given, None))
            else:
                options.problem = f'The policy does not know the option --{given} of {name!r}. Write the command without it.'
        elif equals:
            options.found.append((matches[0], word.without(text.index('=') + 1)))
        elif kinds == {'='} or (kinds == {'=?'} and self._follows(name, words, index, options)):
            return self._value(name, matches[0], words, index, options)
        else:
            options.found.append((matches[0], None))
        return index

    def _short(
        self, name: str, word: Word, words: Sequence[Word], index: int, options: Options
    ) -> int:
        text = word.value if word.value is not None else word.prefix()
        for place, letter in enumerate(text[1:], 1):
            kind = self.letters.get(letter)
            if kind is None and not self.lenient:
                options.problem = f'The policy does not know the option -{letter} of {name!r}. Write the command without it.'
                return index
            if kind in {':', '::', ':::'}:
                glued = word.without(place + 1)
                if glued.parts and (glued.literal or word.value is None):
                    options.found.append((letter, glued))
                    return index
                if kind == ':' or (kind == ':::' and self._follows(name, words, index, options)):
                    return self._value(name, letter, words, index, options)
            options.found.append((letter, None))
        if word.value is None:
            options.problem = f'An option of {name!r} is not written out. Write it in plain words.'
        return index

    @staticmethod
    def _follows(name: str, words: Sequence[Word], index: int, options: Options) -> bool:
        """Whether the next word is the value of an option that may stand without one."""
        following = words[index].value if words[index:] else '-'
        if following is None:
            options.problem = f'The word behind an option of {name!r} is not written out. Write it in plain words.'
        return following is not None and not following.startswith('-')

    def _value(
        self, name: str, option: str, words: Sequence[Word], index: int, options: Options
    ) -> int:
        if index >= len(words):
            options.found.append((option, None))
        elif not words[index].one_field:
            options.problem = (
                f'The value of an option of {name!r} may become several words. Put it in quotes.'
            )
        else:
            options.found.append((option, words[index]))
        return index + 1


@cache
def _letters(short: str) -> dict[str, str]:
    return {match[1]: match[2] for match in re.finditer(r'(\S)(:{0,3})', short.replace(' ', ''))}


@cache
def _names(names: str) -> dict[str, str]:
    return {
        name.rstrip('=?'): name[len(name.rstrip('=?')) :]
        for name in (*names.split(), 'help', 'version')
    }


def _grammar(
    short: str = '', long: str = '', **settings: bool | int | re.Pattern[str] | None
) -> Grammar:
    return Grammar(short, long, **settings)  # pyright: ignore[reportArgumentType]  # the keywords are this module's


def _options(search: Search, grammar: Grammar, name: str, words: Sequence[Word]) -> Options:
    """Read the options of a program whose operands may come from variables that the line gives no dash."""
    options = grammar.parse(name, words)
    if any(search.may_give_dash(word) for word in options.open):
        options.problem = f'An argument of {name!r} may be an option. Write it in plain words.'
    return options


def _blind(
    search: Search, name: str, reason: str, words: Sequence[Word], situation: Situation, span: Span
) -> None:
    text = ' '.join((name, *(word.raw for word in words)))
    search.unresolve('name', reason, situation, text, span)


# A program whose words can be read in two ways is read in both only this deep, and not in a second reading: the number
# of readings would double at each level.
_MAX_READINGS = 5


def _second_reading(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    """Judge what a program runs should it read its words in another way than the one that was judged."""
    if situation.depth < _MAX_READINGS:
        deeper = situation._replace(depth=situation.depth + _MAX_READINGS)
        search.run(words, deeper, span)
    else:
        reason = f'It can be read in more than one way. Write the options of {name!r} in front of its command.'
        _blind(search, name, reason, words, situation, span)


def rest(
    short: str = '',
    long: str = '',
    *,
    operands: int = 0,
    settings: bool = False,
    number: str = '',
    code: Sequence[str] = (),
    nothing: Sequence[str] = (),
    functions: bool = False,
    single_dash: bool = False,
    lenient: bool = False,
    shell: bool | Sequence[str] = False,
) -> Runs:
    """A program that runs the rest of its words.

    Args:
        short: Its letters, as for `getopt`.
        long: Its long options; `name=` takes a value, `name?` only behind a `=`.
        operands: How many words stand before the command.
        settings: Whether `NAME=value` words do.
        number: A pattern of old-style options such as `-5`.
        code: Options whose value is shell code.
        nothing: Options with which it runs nothing.
        functions: Whether the shell's functions can be run by it.
        single_dash: Whether long options have one dash.
        lenient: Whether options that are not listed are taken as ones without a value.
        shell: Whether it starts a shell when it is given no command, or the options with which it does.
    """
    grammar = _grammar(
        short,
        long,
        number=re.compile(number) if number else None,
        lenient=lenient,
        single_dash=single_dash,
        operands=operands,
    )

    def runs(
        search: Search, name: str, words: list[Word], situation: Situation, span: Span
    ) -> None:
        options = _options(search, grammar, name, words)
        for value in options.values(*code):
            search.code(value, situation._replace(functions=False), by=name)
        if options.has(*nothing, 'help', 'version'):
            return
        if options.problem:
            _blind(search, name, options.problem, words, situation, span)
            return
        left = options.rest
        if settings:
            left = _settings(search, left, situation, span)
        if any(not word.one_field for word in left[:operands]):
            _blind(
                search,
                name,
                f'An argument of {name!r} in front of its command may become several words. Put it in quotes.',
                words,
                situation,
                span,
            )
        elif left[operands:]:
            search.run(
                left[operands:],
                situation if functions else situation._replace(functions=False),
                span,
            )
        elif shell is True or (shell and options.has(*shell)):
            search.run([static('sh', span)], situation._replace(functions=False), span)

    return runs


def _may_be_option(word: Word) -> bool:
    return word.value is None and word.prefix() in {'', '-', '+'}


def _whole(search: Search, words: list[Word]) -> list[Word]:
    """The words, with `NAME=$x` taken for one word unless the line gives that variable a value with blanks."""
    return [
        word.as_one_field()
        if _SETTING.match(word.prefix())
        and not any(kind in 'xm' for kind, _ in word.parts)
        and not search.splits(word)
        else word
        for word in words
    ]


def _settings(search: Search, words: list[Word], situation: Situation, span: Span) -> list[Word]:
    """Take `NAME=value` words off the front."""
    for index, word in enumerate(words):
        name, equals, _ = word.prefix().partition('=')
        if not equals or not word.one_field:
            return words[index:]
        search.set(name, word.without(len(name) + 1), situation, word.raw, span)
    return []


def code_rest(
    short: str = '',
    long: str = '',
    *,
    argv: Sequence[str] = (),
    operands: int = 0,
) -> Runs:
    """A program that joins the rest of its words to shell code, or runs them as they are with an option of `argv`."""
    grammar = _grammar(short, long)

    def runs(
        search: Search, name: str, words: list[Word], situation: Situation, span: Span
    ) -> None:
        options = grammar.parse(name, words)
        situation = situation._replace(functions=False)
        if options.has('help', 'version'):
            return
        if options.problem:
            _blind(search, name, options.problem, words, situation, span)
            return
        left = options.rest[operands:]
        if not left:
            return
        if argv and options.has(*argv):
            search.run(left, situation, span)
        else:
            search.code(_joined(left, span), situation, by=name)

    return runs


def _joined(words: Sequence[Word], span: Span) -> Word:
    parts: list[Part] = []
    for word in words:
        if parts:
            parts.append(('q', ' '))
        parts += word.parts
    return Word(' '.join(word.raw for word in words), parts, span)


# env

_ENV = _grammar(
    'i u: C: P: a: v S: 0 L: U:',
    'ignore-environment null unset= chdir= argv0= split-string= block-signal? default-signal? ignore-signal? list-signal-handling debug',
)


_ENV_ESCAPES = {
    'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '_': ' ', '"': '"', "'": "'", '#': '#', '$': '$', '\\': '\\',
}  # fmt: skip


def _split_string(text: str) -> list[str] | None:
    """The words that `env -S` makes of a text, or `None` where it expands variables or has an escape that env refuses."""
    words: list[str] = []
    word: str | None = None
    quote = ''
    chars = iter(text)
    for char in chars:
        made = char
        if char == '\\':
            escaped = next(chars, '')
            if quote == "'":
                made = escaped if escaped in {"'", '\\'} else char + escaped
            elif escaped == 'c' and not quote:
                break
            elif escaped == '_' and not quote:
                made = ''
            elif escaped not in _ENV_ESCAPES:
                return None
            else:
                made = _ENV_ESCAPES[escaped]
        elif quote:
            if char == '$' and quote == '"':
                return None
            made, quote = ('', '') if char == quote else (char, quote)
            word = (word or '') + made
            continue
        elif char in {'"', "'"}:
            quote, word = char, word or ''
            continue
        elif char in ' \t\n\v\f\r':
            made = ''
        elif char == '#' and word is None:
            break
        elif char == '$':
            return None
        if made:
            word = (word or '') + made
        elif word is not None:
            words.append(word)
            word = None
    return None if quote else [*words, *([] if word is None else [word])]


def _env(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    words = _whole(search, words)
    options = _ENV.parse(name, words)
    if options.problem or options.has('help', 'version'):
        if options.problem:
            _blind(search, name, options.problem, words, situation, span)
        return
    left = options.rest
    while left and left[0].value == '-':
        left = left[1:]
    for value in options.values('S', 'split-string'):
        split = _split_string('$' if value.value is None else value.value)
        if split is None:
            _blind(
                search,
                name,
                f'{name!r} splits a text that is not plain. Write its words without -S.',
                words,
                situation,
                span,
            )
            return
        made = [static(part, value.span) for part in split]
        _env(search, name, [*made, *left], situation, span)
        return
    left = _settings(search, left, situation, span)
    if left:
        search.run(left, situation, span)


# Builtins of the shell

# Options of a shell, by letter and by name: history expansion, and assignments among the arguments.
_HISTORY = frozenset(('H', 'histexpand', 'history'))
_KEYWORD = frozenset(('k', 'keyword'))
# What bash replaces by commands of its history where that is on, as it is in one that shows prompts.
_EXPANDS_HISTORY = re.compile(r'!(?![\s=(]|\Z)|^\^', re.MULTILINE)
# A variable with a subscript, of which something may come from an expansion.
_SUBSCRIPTED = re.compile(rf'[A-Za-z_{UNKNOWN}][\w{UNKNOWN}]*\[')
_FC = _grammar('e: l n r s')
_JOBS = _grammar('l n p r s x')
_EXEC = _grammar('c l a:')
_COMMAND = _grammar('p v V')
_WAIT = _grammar('f n p:')
_READ = _grammar('a: d: e E i: n: N: p: r s t: u:')
_MAPFILE = _grammar('d: n: O: s: t u: C: c:')
_COMPLETE = _grammar('a b c d e f g j k s u v p r D E I o: A: G: W: F: C: X: P: S:')
_HASH = _grammar('l r p: d t')
_DECLARING = re.compile(r'[A-Za-z_]\w*(\[.*\])?\+?=', re.DOTALL)


def _command(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    if words and re.fullmatch(r'-[pvV]*[vV][pvV]*', words[0].value or ''):
        return  # a look-up, whatever it looks for
    options = _COMMAND.parse(name, words)
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)
    elif options.rest and not options.has('v', 'V'):
        search.run(options.rest, situation._replace(functions=False), span)


def _exec(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    options = _EXEC.parse(name, words)
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)
    elif options.rest:
        search.run(options.rest, situation._replace(functions=False), span)
    elif situation.stdin != 'empty':
        search.redirected = True


def _builtin(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:  # the interface of the table
    if words and words[0].value == '--':
        words = words[1:]
    if words:
        search.run(words, situation._replace(functions=False), span)


def _eval(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    if words and words[0].value == '--':
        words = words[1:]
    if words:
        # Only with extglob the shell has read a pattern with parentheses among them.
        extended = any(kind == 'u' and '(' in text for word in words for kind, text in word.parts)
        extglob = situation.extglob or extended
        search.code(_joined(words, span), situation, by=name, extglob=extglob)


def _trap(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    index = 0
    while index < len(words) and (words[index].value or '') in {
        '-l',
        '-p',
        '-P',
        '-lp',
        '-pl',
        '--',
    }:
        if words[index].value != '--':
            return
        index += 1
    if len(words) - index > 1 and words[index].value != '-':
        if any(word.value not in {'EXIT', '0'} for word in words[index + 1 :]):
            # It runs in the middle of other commands, with their input.
            situation = situation._replace(stdin='unknown')
        search.code(words[index], situation, by=name)
    elif len(words) - index == 1 and not words[index].one_field:
        search.code(words[index], situation, by=name)


def _alias(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    for word in words:
        key, equals, _ = word.prefix().partition('=')
        if equals:
            search.alias(key, word.without(len(key) + 1), situation)
        elif word.value is None:
            search.unresolve(
                'code',
                'It may give any name another meaning. Write the alias as name=text.',
                situation,
                word.raw,
                word.span,
            )


def _hash(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    options = _HASH.parse(name, words)
    for value in options.values('p'):
        search.run([value], situation, span)
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)


def _complete(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    options = _COMPLETE.parse(name, words)
    for value in options.values('C'):
        search.code(_joined([value, unknown(value.span)], span), situation, by=name)
    search.hidden(options.values('W'), situation)
    for value in options.values('F') if name == 'compgen' else ():
        search.run([value], situation, span)
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)


def _mapfile(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    options = _MAPFILE.parse(name, words)
    for value in options.values('C'):
        search.code(_joined([value, unknown(value.span)], span), situation, by=name)
    search.hidden(options.rest, situation)
    names = options.rest or [static('MAPFILE', span)]
    _set_names(search, names, situation, values=(None, _read_text(situation)))
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)


def _enable(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    if any(
        (word.value is None) or (word.value.startswith('-') and 'f' in word.value) for word in words
    ):
        text = ' '.join((name, *(word.raw for word in words)))
        search.unresolve(
            'code',
            'It loads code of a file into the shell. Use what the shell has.',
            situation,
            text,
            span,
        )


def _test(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    if name == '[' and words and words[-1].value == ']':
        words = words[:-1]
    if (
        len(words) == 3
        and all(word.one_field for word in words)
        and words[1].value in {'=', '==', '!=', '<', '>'}
    ):
        return  # with three arguments the middle one is the operator (POSIX, test)
    if any(word.value in {'-v', '-R'} or _may_be_option(word) for word in words):
        search.hidden([word for word in words if _subscripted(word)], situation)


def _subscripted(word: Word) -> bool:
    """Whether a word may be a variable with a subscript."""
    given = ''.join(text for kind, text in word.parts if kind in 'xXm')
    return _SUBSCRIPTED.match(word.code) is not None or _SUBSCRIPTED.search(given) is not None


def _let(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    search.hidden(words, situation)


def _read(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    options = _READ.parse(name, words)
    names = [*options.values('a'), *options.rest] if not options.problem else words
    names = names or [static('REPLY', span)]
    search.hidden(names, situation)
    _set_names(search, names, situation, values=(None, _read_text(situation)))


def _read_text(situation: Situation) -> Word | None:
    return situation.stdin if isinstance(situation.stdin, Word) else None


def _unset(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    search.hidden(words, situation)
    options = list(itertools.takewhile(lambda word: re.match('-[fnv]', word.literal), words))
    flags = ''.join(word.literal for word in options)
    for word in words:
        if 'v' not in flags and '[' not in word.prefix():
            search.removed.add(word.value or '')
        if word.value is None and 'f' not in flags:
            for text in search.values.known(word):
                search.set(text, None, situation, word.raw, word.span, plain=True, values=())
    if 'f' not in flags:
        _set_names(search, words, situation, plain=True, values=())


def _set(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    switched: list[str] = []
    arguments = iter(enumerate(words))
    for index, word in arguments:
        if word.value in {'-', '--'} or not word.prefix().startswith(('-', '+')):
            search.values.learn_all('@', words[index + (word.value in {'-', '--'}) :])
            break
        on = word.literal.startswith('-')
        for letter in word.literal[1:]:
            _, option = next(arguments, (0, None)) if letter == 'o' else (0, None)
            switched += (option.literal if option else letter,) if on else ()
    _switch(search, switched, name, words, situation, span)


def _shopt(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    flags = ''.join(word.literal for word in words if word.literal.startswith('-'))
    if 'o' in flags and 's' in flags:
        _switch(search, [word.literal for word in words], name, words, situation, span)


def _switch(
    search: Search,
    options: Sequence[str],
    name: str,
    words: Sequence[Word],
    situation: Situation,
    span: Span,
) -> None:
    """Judge options of a shell that change what it runs."""
    text = ' '.join((name, *(word.raw for word in words)))
    if not _HISTORY.isdisjoint(options):
        reason = 'It lets the shell run commands of its history. Leave it out.'
        search.unresolve('code', reason, situation, text, span)
    if not _KEYWORD.isdisjoint(options):  # words that look like assignments set variables
        search.set('', None, situation, text, span, plain=True, values=())


def _fc(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    options = _FC.parse(name, words)
    if not options.has('l') or options.has('s') or options.problem:
        text = ' '.join((name, *(word.raw for word in words)))
        reason = (
            'It runs commands of the history. Write those commands themselves; fc -l lists them.'
        )
        search.unresolve('code', reason, situation, text, span)


def _jobs(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    options = _JOBS.parse(name, words)
    if options.problem and words[1:]:
        _blind(search, name, options.problem, words, situation, span)
    elif options.has('x') and options.rest:
        search.run(options.rest, situation, span)


def _printf(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    if words and words[0].prefix().startswith('-v'):
        target = (
            words[0].without(2)
            if words[0].literal != '-v'
            else (words[1] if words[1:] else words[0])
        )
        search.hidden([target], situation)
        _set_names(search, [target], situation, values=(None, *words[2:]))
    elif words and _may_be_option(words[0]):
        search.hidden([word for word in words[1:2] if _subscripted(word)], situation)


def _wait(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    search.hidden(words, situation)
    _set_names(search, _WAIT.parse(name, words).values('p'), situation)


def _getopts(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:  # the interface of the table
    search.hidden(words[1:2], situation)
    _set_names(search, [*words[1:2], static('OPTARG', span)], situation)


def _set_names(
    search: Search,
    words: Sequence[Word],
    situation: Situation,
    *,
    plain: bool = False,
    values: Sequence[Word | None] | None = None,
) -> None:
    for word in words:
        name = re.match(r'[A-Za-z_]\w*(?=\[|$)', word.prefix())
        if name and (word.value is not None or '[' in word.prefix()):
            search.set(name[0], None, situation, word.raw, word.span, plain=plain, values=values)
        elif word.value is None and not plain:
            search.set('', None, situation, word.raw, word.span)


def _declare(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:  # the interface of the table; one loop over the words
    flags = ''.join(word.literal[1:] for word in words if word.literal[:1] in {'-', '+'})
    unsure = any(_may_be_option(word) for word in words)
    # A local variable without a value hides the one of that name.
    hides = name in {'declare', 'typeset', 'local'} and not set('fFgpI') & set(flags)
    for word in words:
        literal = word.literal
        if literal[:1] in {'-', '+'} and word.value is not None:
            continue
        match = _DECLARING.match(word.prefix())
        target, value = (
            (word.prefix()[: match.end()], word.without(match.end()))
            if match
            else (word.evaluated, None)
        )
        search.hidden([static(re.sub(r'\+?=$', '', target), word.span, word.raw)], situation)
        evaluated = unsure or 'i' in flags or 'n' in flags
        if value is not None and (evaluated or value.literal.startswith('(')):
            search.hidden([value, *value.elements], situation)
        named = match is not None or word.value is not None or '[' in word.prefix()
        variable = re.match(r'[A-Za-z_]\w*', target) if named else None
        if evaluated and variable:
            search.evaluated.add(variable[0])
        elif 'i' in flags:
            search.integers = True  # of a variable whose name is not known
        if 'n' in flags and name in {'declare', 'typeset', 'local'}:
            # The name stands for another variable from here on.
            known = re.match(r'[A-Za-z_]\w*', value.value or '') if value is not None else None
            search.set(known[0] if known else '', None, situation, word.raw, word.span)
            if variable:
                search.values.learn(variable[0], None)
            if variable and known:
                search.values.learn(variable[0], Word('', (('V', known[0]),), word.span))
        if variable:
            if value is not None:
                values = value.elements or (value,)
                search.set(variable[0], value, situation, word.raw, word.span, values=values)
            elif 'f' not in flags and not word.value:
                search.set(variable[0], None, situation, word.raw, word.span)
            elif hides:
                search.set(variable[0], None, situation, word.raw, word.span, plain=True, values=())
        elif word.value is None:
            # Which variable this sets is not known: a list of allowed commands may depend on it.
            search.set('', None, situation, word.raw, word.span)


# Shells and sourced files

_FISH = _grammar(
    'c: C: d: D: f: i l n N o: P p: v h',
    'command= init-command= debug= debug-output= debug-stack-frames= features= interactive login no-execute no-config profile= profile-startup= private print-rusage-self print-debug-categories',
)
_BASHES = frozenset(('bash', 'bash-static', 'rbash'))
# These take code glued on to `-c`.
_GLUES_CODE = frozenset(('hush', 'osh', 'brush'))
_POSIX_SHELLS = frozenset(('sh', 'dash', 'ash', 'hush', 'posh'))
# The shells whose options take their value glued on too, with the letters that take one.
_KORN = ('ksh', 'ksh93', 'mksh', 'lksh', 'pdksh', 'oksh', 'loksh', 'posh')
_SHELL_VALUED = {'zsh': 'o', 'yash': 'o', **dict.fromkeys(_KORN, 'oRT')}
_SHELL_LONG = _names(
    'norc noprofile posix login restricted verbose debug debugger dump-strings dump-po-strings noediting pretty-print wordexp protected rcfile= init-file='
)
_SHELL_LONGS = {
    'zsh': _names(
        'emulate= exec noexec shinstdin interactive login rcs norcs globalrcs noglobalrcs errexit noerrexit unset nounset pipefail xtrace verbose extendedglob shwordsplit nullglob nomatch nonomatch'
    ),
    'yash': _names(
        'profile= rcfile= noprofile norcfile exec noexec cmdline stdin interactive login posixlycorrect errexit unset nounset pipefail xtrace verbose extendedglob'
    ),
    **dict.fromkeys(
        _KORN, _names('exec noexec login rc norc posix restricted errexit nounset pipefail xtrace verbose')
    ),
}  # fmt: skip
# What `-o` or a long option may name, as the letter.
_SHELL_LETTERS = {
    'noexec': 'n', 'cmdline': 'c', 'stdin': 's', 'shinstdin': 's', 'interactive': 'i', 'histexpand': 'H', 'history': 'H', 'keyword': 'k',
}  # fmt: skip
# Among what the line gives a variable: something that a shell takes for options.
_SHELL_OPTION = re.compile(r'[-+]([A-Za-z]+)|--[\w-]+')


def shell(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    """Judge what a shell runs: the code of `-c`, a script, or what it reads."""
    situation = situation._replace(functions=False)
    grammar: Shell = 'sh' if name in _POSIX_SHELLS else 'bash'
    command = reads = syntax_only = prompts = ended = False
    switched: list[str] = []
    index = 0
    while index < len(words):
        word = words[index]
        text = word.value
        if text is None:
            if syntax_only:
                return
            prefix = word.prefix()
            if word.code.startswith(UNKNOWN) and all(kind == 'q' for kind, _ in word.parts):
                reason = f'What {name!r} runs comes from an input. Write its commands themselves.'
                _blind(search, name, reason, words, situation, span)
                return
            if prefix.startswith(('-', '+')) or not (
                prefix
                or word.one_field
                or word.reads_process
                or (word.last_part and not search.splits(word))
            ):
                reason = f'An argument of {name!r} is not written out. Write it in plain words.'
                _blind(search, name, reason, words, situation, span)
                return
            break
        if text in {'-', '--'}:
            index += 1
            ended = True
            break
        if not text.startswith(('-', '+')):
            break
        index += 1  # also for a lone `+`, which bash and dash pass over
        settings, index, problem = _shell_options(search, name, words, index, situation, span)
        if problem:
            _blind(search, name, problem, words, situation, span)
            return
        for on, letter in settings:
            if letter in {'help', 'version'}:
                return
            command = command or letter == 'c'  # with either sign, in bash and dash alike
            reads = reads or letter == 's'
            prompts = prompts or letter == 'i'
            if letter in {'n', 'exec'}:
                syntax_only = on is (letter == 'n')
            elif on:
                switched.append(letter)
    operands = words[index:]
    if syntax_only:
        return
    _switch(search, switched, name, words, situation, span)
    if not ended:
        _given_options(search, name, operands, situation, span, grammar)
    if command:
        if not operands:
            return
        code = operands[0]
        if not code.one_field:
            reason = f'The code that {name!r} runs may become several words. Put it in quotes.'
            _blind(search, name, reason, words, situation, span)
            return
        search.values.learn_all('@', operands[1:])
        extglob = any(word.value is None or 'extglob' in word.value for word in words[:index])
        search.code(code, situation, by=name, shell=grammar, extglob=extglob)
    elif reads or not operands:
        read = situation.stdin
        if prompts and isinstance(read, Word) and _EXPANDS_HISTORY.search(read.code):
            _switch(search, ['history'], name, words, situation, span)
        search.shell_input(situation, by=name, span=span, shell=grammar)
    else:
        _script(search, name, operands[0], situation, span, grammar)
        script = operands[0]
        if operands[1:] and script.value is None and not (script.prefix() or script.last_part):
            # `bash "$x" code`: should the value be `-c`, the next word is code.
            weak = situation._replace(weak=not search.gives_dash(script))
            search.code(operands[1], weak, by=name, shell=grammar)


def _shell_options(
    search: Search, name: str, words: Sequence[Word], index: int, situation: Situation, span: Span
) -> tuple[list[tuple[bool, str]], int, str]:
    """Read the options of the word before `index`.

    Returns:
        Whether each is switched on, with its letter or name; the index of the next word; and why it is not known, or ''.
    """
    word = words[index - 1]
    text = word.literal
    valued = _SHELL_VALUED.get(name, '')
    long = text.lstrip('-+')
    if text[:2] in {'--', '++'} or (long in _SHELL_LONG and not valued):
        key, equals, _ = long.partition('=')
        known = _SHELL_LONGS.get(name, _SHELL_LONG)
        option = _option_name(key) if valued else key
        if option not in known:
            unknown_one = f'The policy does not know the option {text} of {name!r}. Write the command without it.'
            return [], index, '' if name in _BASHES else unknown_one
        if known[option] and not equals:
            if known is _SHELL_LONG:
                for file in words[index : index + 1]:
                    _script(search, name, file, situation, span, 'bash')
            index += 1
        return [(text[0] == '-', _SHELL_LETTERS.get(option, option))], index, ''
    settings: list[tuple[bool, str]] = []
    on = text[0] == '-'
    for place, letter in enumerate(text[1:], 1):
        if letter not in 'oO' + valued:
            settings.append((on, letter))
            if letter == 'c' and name in _GLUES_CODE:
                search.code(word.without(place + 1), situation, by=name)
            continue
        value = word.without(place + 1)
        glued = letter in valued and bool(value.literal)
        if not glued:
            # In ksh the value of -o may be left out.
            if not words[index:] or (letter in 'oO' and words[index].prefix()[:1] in {'-', '+'}):
                continue
            value = words[index]
            index += 1
        if not value.one_field or (value.value is None and valued):
            unread = f'An argument of {name!r} is not written out. Write it in plain words.'
            return settings, index, unread
        option = _option_name(value.literal)
        if letter == 'o':
            if name == 'yash' and option not in _SHELL_LONGS[name]:  # it takes abbreviations
                unknown_one = f'The policy does not know the option {value.raw} of {name!r}. Write the command without it.'
                return settings, index, unknown_one
            # One that is not known may be `exec`.
            settings.append((on, _SHELL_LETTERS.get(option, option) if value.value else 'n'))
        if glued:
            break
    return settings, index, ''


def _option_name(text: str) -> str:
    """The name of an option of a shell; zsh and yash know it with dashes and capitals too."""
    return re.sub('[-_]', '', text).lower()


def _given_options(
    search: Search,
    name: str,
    operands: Sequence[Word],
    situation: Situation,
    span: Span,
    grammar: Shell,
) -> None:
    """Judge what a shell runs should the line give variables options: `o=-c; bash "$o" "$code"`."""
    letters = ''
    for word in operands:
        texts = [word.value] if word.value is not None else []
        if word.value is None and search.may_give_dash(word):
            texts = search.values.known(word)
            if search.values.full:
                reason = (
                    f'An argument of {name!r} may have too many values. Write it in plain words.'
                )
                _blind(search, name, reason, operands, situation, span)
                return
        options = [match for text in texts if (match := _SHELL_OPTION.fullmatch(text))]
        if 'c' in letters and (word.value is None or not options):
            search.code(word, situation, by=name, shell=grammar)
        elif not options:
            break
        letters += ''.join(match[1] or '' for match in options)
    if 's' in letters:
        search.shell_input(situation, by=name, span=span, shell=grammar)


def _repeat(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    """`repeat 3 ls`, in zsh also `repeat 3 { ls }`."""
    left = words[2 if [word.value for word in words[1:2]] == ['{'] else 1 :]
    if left:
        search.run(left, situation, span)


def _fish(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    options = _FISH.parse(name, words)
    if options.has('n', 'no-execute', 'help', 'version', 'v', 'h'):
        return
    for value in options.values('c', 'command', 'C', 'init-command'):
        search.code(value, situation, by=name, shell='bash')
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)
    elif not options.has('c', 'command'):
        # The script and its arguments are as another shell has them.
        shell(search, name, [static('--', span), *options.rest], situation, span)


def _script(
    search: Search, name: str, word: Word, situation: Situation, span: Span, grammar: Shell
) -> None:
    stdin = search.file(word, situation)
    if stdin == 'file':
        return
    search.shell_input(situation._replace(stdin=stdin), by=name, span=span, shell=grammar)


def _source(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    while words and words[0].value in {'--', '-p'}:
        words = words[1 if words[0].value == '--' else 2 :]
    if not words:
        return
    if words[0].raw == _APPENDED:
        _blind(
            search,
            name,
            f'The file that {name!r} reads comes from an input. Write its name.',
            words,
            situation,
            span,
        )
        return
    _script(search, name, words[0], situation, span, situation.shell)
    if not words[0].one_field and words[1:]:
        # The first may be no word at all.
        _script(search, name, words[1], situation._replace(weak=True), span, situation.shell)


def _stdin_code(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    """At and batch run what they read, unless a file is named."""
    if not any(
        (word.value or '').startswith('-') and word.literal[1:2] in set('flcrd') for word in words
    ):
        search.shell_input(situation, by=name, span=span, shell='sh')


# Programs that collect arguments: xargs, find, parallel

_APPENDED = '…'
_XARGS = _grammar(
    'a: d: E: I: L: n: P: s: 0 r t p x o h e:: i:: l:: J: R: S:',
    'arg-file= delimiter= eof? replace? max-lines? max-args= max-procs= max-chars= null no-run-if-empty verbose interactive exit show-limits open-tty process-slot-var=',
)
_EXECUTES = frozenset(('-exec', '-execdir', '-ok', '-okdir'))
# How many of them one command may hold.
_MAX_INNER = 8
# The tests, actions and options of GNU's, BSD's and busybox's find that take a value; -fprintf takes two.
_FIND_VALUED = re.compile(
    r'-(?:[acBm]?(?:min|since)|[acBm]time|[am]?newer\w*|Bnewer|cnewer|context|D|f|files0-from|flags|fls|fprint0?|fprintf|fstype|gid'
    r'|group|i?lname|i?name|inum|i?path|i?regex|i?wholename|links|maxdepth|mindepth|perm|printf|regextype|samefile|size|type'
    r'|uid|used|user|xattrname|xtype|n?cpio)'
)
_PARALLEL = _grammar(
    '0 a: B: C: d: D: e::: E: g h H: i::: I: j: J: k l:: L: m M n: N: o p P: q r s: S: t T u U: v V W: x X Y',
    'arg-file-sep= argfilesep= arg-file= argfile= arg-sep= argsep= bar basefile= bf= basenameextensionreplace= bner= basenamereplace= bnr= bg bibtex bin= block-size= blocksize= block= block-timeout= blocktimeout= bt= bug cat citation cleanup col-sep= colsep= color-failed colour-failed colorfailed colourfailed color-fail colour-fail colorfail colourfail cf color colour compress controlmaster csv ctag-string= ctagstring= ctag ctrl-c ctrlc debug= delay= delimiter= dirnamereplace= dnr= dry-run dryrun dr embed env= eof=? eta exit extensionreplace= er= fg fifo filter-hosts filterhosts filter-host filter= gnu group-by= groupby= group halt-on-error= haltonerror= halt= header= hgrp hostgrp hostgroup hostgroups interactive joblog= jl= jobs= keep-order keeporder latest-line latestline ll limit= line-buffer line-buffered linebuffer linebuffered lb linkinputsource= xapplyinputsource= link xapply load= max-args= maxargs= max-chars= maxchars= max-line-length-allowed maxlinelengthallowed max-lines? maxlines? max-procs= maxprocs= max-replace-args= maxreplaceargs= memfree= memsuspend= min-version= minversion= nice= no-ctrl-c no-ctrlc noctrlc no-keep-order nokeeporder nok no-k no-run-if-empty norunifempty nonall noswap null number-of-cores numberofcores number-of-cpus numberofcpus number-of-sockets numberofsockets number-of-threads numberofthreads onall open-tty output-as-files outputasfiles files parens= pipe-part pipepart pipe spreadstdin plain plus process-slot-var= processslotvar= profile= progress quote recend= record-env recordenv recstart= regexp regex remove-rec-sep removerecsep rrs replace=? results= result= res= resume-failed resumefailed resume retries= retry-failed retryfailed return= round-robin roundrobin round rpl= rsync-opts= rsyncopts= semaphore-name= semaphorename= id= semaphore-timeout= semaphoretimeout= st= semaphore seqreplace= session shard= shebang hashbang shell-completion= shellcompletion= shell-quote shellquote shell_quote show-limits showlimits shuf silent skip-first-line skipfirstline slotreplace= sql-and-worker= sqlandworker= sql-master= sqlmaster= sql-worker= sqlworker= sql= ssh-delay= sshdelay= ssh= sshloginfile= slf= sshlogin= tag-string= tagstring= tag tee template= tmpl= term-seq= termseq= timeout= tmpdir= tempdir= tmux-pane tmuxpane tmux tollef total-jobs= totaljobs= total= transfer-file= transferfile= transfer-files= transferfiles= tf= transfer trc= trim= tty ungroup use-compress-program= compress-program= usecompressprogram= compressprogram= use-cores-instead-of-threads usecoresinsteadofthreads use-cpus-instead-of-cores usecpusinsteadofcores use-decompress-program= decompress-program= usedecompressprogram= decompressprogram= use-sockets-instead-of-threads usesocketsinsteadofthreads verbose wait will-cite willcite nn nonotice no-notice work-dir= workdir= wd= xargs',
    number=re.compile(r'\d+'),  # `-l 5`: of the next word, `-l` takes only a number
)
# Commands of parallel's own: what reaches a host, packs its files, and says whether a job may start.
_PARALLEL_CODE = (
    'S', 'sshlogin', 'ssh', 'limit', 'use-compress-program', 'compress-program', 'usecompressprogram', 'compressprogram',
    'use-decompress-program', 'decompress-program', 'usedecompressprogram', 'decompressprogram',
)  # fmt: skip
# What it replaces in the command by an argument, by a part of one, or by a number.
_PARALLEL_MARKS = (
    'I', 'i', 'U', 'replace', 'extensionreplace', 'er', 'basenamereplace', 'bnr', 'dirnamereplace', 'dnr',
    'basenameextensionreplace', 'bner', 'seqreplace', 'slotreplace',
)  # fmt: skip
_PARALLEL_NOTHING = (
    'help', 'version', 'h', 'V', 'bibtex', 'citation', 'wait', 'record-env', 'recordenv', 'shell-completion', 'shellcompletion', 'shell-quote', 'shellquote', 'shell_quote',
    'min-version', 'minversion', 'max-line-length-allowed', 'maxlinelengthallowed', 'number-of-cores', 'numberofcores', 'number-of-cpus', 'numberofcpus',
    'number-of-sockets', 'numberofsockets', 'number-of-threads', 'numberofthreads',
)  # fmt: skip


def _xargs(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    options = _XARGS.parse(name, words)
    situation = situation._replace(functions=False)
    if not options.has('a', 'arg-file'):
        situation = situation._replace(stdin='file')
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)
        return
    if not options.rest:
        if not options.has('help', 'version', 'h'):
            search.run([static('echo', span)], situation, span)
        return
    mark, cancelled = '', False
    for option, value in options.found:
        if option in {'I', 'J', 'i', 'replace'}:
            mark, cancelled = (value.literal if value else '') or '{}', False
            if value and value.value is None:
                reason = f'What {name!r} replaces is not written out. Write it in plain words.'
                _blind(search, name, reason, words, situation, span)
                return
        elif option in {'L', 'l', 'max-lines'} or (
            option in {'n', 'max-args'} and (value is None or value.value != '1')
        ):
            cancelled = True  # in GNU's, not in BSD's
    appended = [*options.rest, unknown(span, _APPENDED)]
    if not mark:
        search.run(appended, situation, span)
        return
    search.run([word.replaced(mark) for word in options.rest], situation, span)
    if cancelled:
        _second_reading(search, name, appended, situation, span)


def _find(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    index = values = 0
    unsure = unread = False
    while index < len(words):
        word = words[index]
        index += 1
        if word.value not in _EXECUTES or values:
            if word.value is None:
                prefix = word.prefix()
                unread = True
                unsure = unsure or any(action.startswith(prefix) for action in _EXECUTES)
                if search.may_give_action(word):
                    reason = (
                        f'An argument of {name!r} may become an -exec. Write it in plain words.'
                    )
                    _blind(search, name, reason, words, situation, span)
            elif unsure and (
                word.value == ';'
                or (word.value == '+' and index > 1 and words[index - 2].value == '{}')
            ):
                # It ends the command of an -exec that is not seen.
                reason = f'An argument of {name!r} may become an -exec. Write it in plain words.'
                _blind(search, name, reason, words, situation, span)
                unsure = False
            if values:
                values -= word.one_field  # one that may be several words may be none too
            elif _FIND_VALUED.fullmatch(word.value or ''):
                values = 2 if word.value == '-fprintf' else 1
            continue
        begin = index
        while index < len(words) and words[index].value != ';':
            if words[index].value == '+' and words[index - 1].value == '{}' and index > begin:
                break
            index += 1
        # A path that find puts in is one argument, and does not begin with a dash unless its folder does.
        command = [_found_path(word) for word in words[begin:index]]
        if command:
            search.run(command, situation, span)
        # Should what is not known be a test, then this -exec is its value; or it may end the command. Another one runs.
        unread = unread or any(word.value is None for word in words[begin:index])
        inner = [
            at
            for at, word in enumerate(command[:-1] if unread else (), 1)
            if word.value in _EXECUTES
        ]
        if len(inner) > _MAX_INNER:
            reason = f'An argument of {name!r} may take one of its -exec. Write it in plain words.'
            _blind(search, name, reason, words, situation, span)
            return
        for at in inner:
            _second_reading(search, name, command[at:], situation._replace(weak=True), span)
        index += 1


def _found_path(word: Word) -> Word:
    if word.value == '{}':
        return Word(word.raw, (('X', ''),), word.span)
    return word.replaced('{}')


def _parallel_marks(options: Options) -> str | None:
    """A pattern of what GNU parallel replaces in a command; `None` when that is not known."""
    patterns = [
        r'\{=(?:(?!\{=).)*?=\}',
        r'\{[^{}\s]*\}',
    ]  # each ends before the next begins: no search twice
    if options.has('plus'):
        patterns.append(r'\{[^\w\s{}][^{}]*\}')
    for value in options.values(*_PARALLEL_MARKS):
        if value.value is None:
            return None
        patterns.append(re.escape(value.value))
    for value in options.values('rpl'):
        mark = (value.value or '').partition(' ')[0]
        if not mark or '(' in mark:  # a pattern of Perl
            return None
        patterns.append(re.escape(mark))
    for value in options.values('parens'):
        text = value.value or ''
        if not text:
            return None
        begin, end = re.escape(text[: len(text) // 2]), re.escape(text[len(text) // 2 :])
        patterns.append(f'{begin}(?:(?!{begin}).)*?{end}')
    return '|'.join(pattern for pattern in patterns if pattern)


def _parallel(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    situation = situation._replace(functions=False)
    options = _PARALLEL.parse(name, words)
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)
        return
    for value in options.values(*_PARALLEL_CODE):
        search.code(value, situation._replace(weak=True), by=name)
    if options.has(*_PARALLEL_NOTHING):
        return
    separators = [
        value.value for value in options.values('arg-sep', 'argsep', 'arg-file-sep', 'argfilesep')
    ]
    if None in separators:
        reason = f'What ends the command of {name!r} is not written out. Write it in plain words.'
        _blind(search, name, reason, words, situation, span)
        return
    command: list[Word] = []
    for word in options.rest:
        if (word.value or '').rstrip('+') in {':::', '::::', *separators}:
            break
        command.append(word)
    if not command and name == 'sem':
        return
    if not command:
        _blind(
            search,
            name,
            f'{name!r} takes its commands from an input. Write the command behind it.',
            words,
            situation,
            span,
        )
        return
    replaced = _parallel_marks(options)
    if replaced is None:
        reason = f'What {name!r} replaces is not written out. Write it in plain words.'
        _blind(search, name, reason, words, situation, span)
        return
    code = re.sub(replaced, UNKNOWN, _joined(command, span).code, flags=re.DOTALL)
    if UNKNOWN not in code:
        code += ' ' + UNKNOWN
    text = Word(' '.join(word.raw for word in command), (('q', code),), span)
    before = len(search.findings.calls)
    search.code(text, situation, by=name)
    # A wrapper or a shell at the end takes the added argument as its command.
    for call in search.findings.calls[before:]:
        if (
            call.name in PROGRAMS
            and call.name not in _FIRST_A_SUBCOMMAND
            and call.arguments
            and call.arguments[-1].raw == UNKNOWN
            and len(call.arguments) == 1
        ):
            _blind(
                search,
                name,
                f'What {call.name!r} runs comes from an input. Write its command.',
                words,
                situation,
                span,
            )


# Programs with a form of their own

_FLOCK = _grammar(
    's x e u n F v w: E: o h V',
    'shared exclusive unlock nonblock nb timeout= wait= conflict-exit-code= close no-fork verbose',
    operands=1,
)
_SU_SHORT = 'c: f g: G: l m p s: P T w: C: h V'
_SU_LONG = 'command= session-command= fast group= supp-group= login preserve-environment shell= pty no-pty whitelist-environment='
_SU = _grammar(_SU_SHORT, _SU_LONG, permute=True, operands=1)
_RUNUSER = _grammar(_SU_SHORT + 'u:', _SU_LONG + ' user=', permute=True, operands=1)
# As it is read under POSIXLY_CORRECT.
_RUNUSER_STRAIGHT = _grammar(_SU_SHORT + 'u:', _SU_LONG + ' user=')
_SUDO = _grammar(
    'A b B E e H i K k l n N P S s v V C: D: g: h: p: R: r: t: T: U: u: a: c:',
    'askpass background bell close-from= chdir= preserve-env? edit group= host= login remove-timestamp reset-timestamp list non-interactive preserve-groups prompt= chroot= role= stdin shell type= command-timeout= other-user= user= validate set-home no-update auth-type= login-class=',
)
_SCRIPT_SHORT = 'a c: e E: f I: B: O: T: m: o: q t:: V h'
_SCRIPT_LONG = 'append command= echo= return flush force log-in= log-io= log-out= log-timing= logging-format= output-limit= quiet timing?'
_SCRIPT = _grammar(_SCRIPT_SHORT, _SCRIPT_LONG, permute=True, operands=1)
_SCRIPT_STRAIGHT = _grammar(_SCRIPT_SHORT, _SCRIPT_LONG, operands=1)


def _flock(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    options = _options(search, _FLOCK, name, words)
    left = options.rest
    if options.problem or (left and not left[0].one_field):
        _blind(
            search,
            name,
            options.problem
            or f'The file that {name!r} locks may become several words. Put it in quotes.',
            words,
            situation,
            span,
        )
    elif len(left) > 1 and (left[1].value or '') in {'-c', '--command'}:
        for word in left[2:3]:
            search.code(word, situation, by=name, shell='sh')
    elif (
        len(left) > 1
        and (left[1].value is not None)
        and left[1].value.startswith(('-c', '--command='))
    ):
        search.code(
            left[1].without(2 if left[1].value.startswith('-c') else 10),
            situation,
            by=name,
            shell='sh',
        )
    elif left[1:]:
        search.run(left[1:], situation, span)


def _su(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    options = _options(search, _RUNUSER if name == 'runuser' else _SU, name, words)
    commands = options.values('c', 'command', 'session-command')
    for value in commands:
        search.code(value, situation, by=name)
    if name == 'runuser':
        straight = _RUNUSER_STRAIGHT.parse(name, words)
        readings = [
            reading.rest
            for reading in (options, straight)
            if reading.has('u', 'user') and not reading.problem
        ]
        for left in readings[:1]:
            search.run(left or [static('sh', span)], situation, span)
        for left in readings[1:]:
            if left and left != readings[0]:
                _second_reading(search, name, left, situation, span)
        if readings:
            return
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)
        return
    if options.has('h', 'help', 'V', 'version'):
        return
    left = options.rest
    if left and left[0].value == '-':
        left = left[1:]
    # The shell gets the code, which may be an option of it, and then what stands behind the user.
    arguments = [static('-f', span)] if options.has('f', 'fast') else []
    for value in commands[-1:]:
        arguments += [static('-c', span), value]
    arguments += left[1:]
    for given in options.values('s', 'shell')[-1:]:
        for chosen in [given] if given.value is not None else _texts(search, given):
            if PROGRAMS.get((chosen.value or '').rpartition('/')[2]) not in {shell, _fish}:
                search.run([chosen, *arguments], situation, span)
    if left[1:] or not commands:
        shell(search, 'bash', arguments, situation, span)


def _texts(search: Search, word: Word) -> list[Word]:
    """What the line gives a word with expansions."""
    return [static(text, word.span, word.raw) for text in search.values.known(word)]


# The sub-commands of ast-grep, whose program is `sg` too.
_AST_GREP = frozenset(('run', 'scan', 'test', 'new', 'lsp', 'outline', 'completions', 'help'))


def _sg(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    """Run a command with another group: `sg GROUP [-c] CODE`."""
    situation = situation._replace(functions=False)
    left = words[1:] if words and words[0].value in {'-', '-l'} else words
    group = left[0].prefix() if left else ''
    if group.startswith('-'):
        return
    if group in _AST_GREP or (words and words[0].value == '-l'):
        # A group may have such a name: a denial counts.
        situation = situation._replace(weak=True)
    if any(not word.one_field for word in left[:1]):
        reason = f'The group of {name!r} may become several words. Put it in quotes.'
        _blind(search, name, reason, words, situation, span)
    elif left[1:]:
        apart = left[1].value == '-c' and len(left) > 2
        search.code(left[1 + apart], situation, by=name)
    elif not situation.weak:
        search.run([static('sh', span)], situation, span)


def _sudo(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    words = _whole(search, words)
    options = _SUDO.parse(name, words)
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)
        return
    left = _settings(search, options.rest, situation, span)
    if left and not options.has('e', 'edit'):
        search.run(left, situation, span)
    elif not left and options.has('s', 'i', 'shell', 'login'):
        search.shell_input(situation, by=name, span=span)


def _doas(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    options = _DOAS_OPTIONS.parse(name, words)
    if options.has('s') and not (options.rest or options.problem):
        search.shell_input(situation._replace(functions=False), by=name, span=span)
    else:
        _DOAS(search, name, words, situation, span)


_DOAS_OPTIONS = _grammar('a: C: L n s u:')
_DOAS = rest(_DOAS_OPTIONS.short, settings=True)


def _script_program(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    situation = situation._replace(functions=False)
    options = _options(search, _SCRIPT, name, words)
    for value in options.values('c', 'command'):
        search.code(value, situation, by=name)
    # Behind the file may stand a command: after `--` in newer ones of Linux, as it is on a Mac.
    readings = [
        reading.rest[1:]
        for reading in (options, _SCRIPT_STRAIGHT.parse(name, words))
        if reading.rest[1:] and not reading.problem
    ]
    inner = situation._replace(weak=True)
    for left in readings[:1]:
        search.run(left, inner, span)
    for left in readings[1:]:
        if left != readings[0]:
            _second_reading(search, name, left, inner, span)
    if options.problem and not readings:
        _blind(search, name, options.problem, words, situation, span)
    elif not readings and not options.has('c', 'command', 'help', 'version', 'V', 'h'):
        search.shell_input(situation, by=name, span=span)


def _applet(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    if not words:
        return
    if words[0].value is None or not words[0].value.startswith('-'):
        search.run(words, situation._replace(functions=False), span)
    elif words[0].value in {'--help', '--version', '--list', '--list-full', '--install', '--show'}:
        return
    else:
        _blind(
            search,
            name,
            f'The policy does not know the option {words[0].raw} of {name!r}. Write the command without it.',
            words,
            situation,
            span,
        )


def _setarch(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    if name == 'setarch' and words and not words[0].prefix().startswith('-'):
        if not words[0].one_field:
            _blind(
                search,
                name,
                'The architecture may become several words. Put it in quotes.',
                words,
                situation,
                span,
            )
            return
        words = words[1:]
    _ARCH(search, name, words, situation, span)


_ARCH = rest(
    'v R F L X B Z I 3 S T h V',
    'verbose addr-no-randomize fdpic-funcptrs addr-compat-layout read-implies-exec 32bit mmap-page-zero short-inode 3gb 4gb whole-seconds sticky-timeouts uname-2.6 list show',
    nothing=('list', 'show'),
    shell=True,
)

# Terminal multiplexers. tmux takes the words of a new window as a command, or one word as shell code.

_TMUX = _grammar('2 C D l N u U V v c: f: L: S: T:')
_TMUX_COMMANDS = {
    'new-session': _grammar('A d D E P X c: e: f: F: n: s: t: x: y:'),
    'new-window': _grammar('a b d k P S c: e: F: n: t:'),
    'split-window': _grammar('b d f h I v P Z c: e: F: l: p: t:'),
    'respawn-pane': _grammar('k c: e: t:'),
    'respawn-window': _grammar('k c: e: t:'),
    'display-popup': _grammar('B C E k N b: c: d: e: h: s: S: t: T: w: x: y:'),
    'run-shell': _grammar('b C E c: d: s: t:'),
    'if-shell': _grammar('b F t:'),
    'pipe-pane': _grammar('I O o t:'),
    'set-option': _grammar('a F g o p q s u U w t:', operands=1),
    'set-window-option': _grammar('a F g o q u t:'),
    'set-hook': _grammar('a g p R u w t:'),
    'bind-key': _grammar('n r N: T:'),
    'confirm-before': _grammar('b y c: p: t:'),
    'command-prompt': _grammar('1 b C e F i k l N I: p: t: T:'),
    'source-file': _grammar('F n q v t:'),
}
_TMUX_ALIASES = {
    'new': 'new-session', 'neww': 'new-window', 'splitw': 'split-window', 'respawnp': 'respawn-pane',
    'respawnw': 'respawn-window', 'popup': 'display-popup', 'run': 'run-shell', 'if': 'if-shell', 'pipep': 'pipe-pane',
    'display': 'display-message', 'set': 'set-option', 'setw': 'set-window-option', 'bind': 'bind-key',
    'confirm': 'confirm-before', 'source': 'source-file',
}  # fmt: skip
# Its options whose values are shell code, and those whose values are commands of its own.
_TMUX_CODE = ('default-command', 'lock-command', 'copy-command')
_TMUX_HOOK = re.compile(r'(?:after|alert|client|session)-|command-[ae]|pane-[defmst]|window-[lpru]')
# The shell leaves the name of such an option as it is, unless a file has a name so odd.
_TMUX_INDEXED = re.compile(r'[a-z][a-z-]+\[\d+\]')
# What it puts values in the place of, and how deep that is looked into.
_MAX_FORMATS = 8
_TMUX_FORMAT = re.compile(r'#\{[^{}]*\}|#[A-Za-z]')
# What a text of its commands may hold beside plain words.
_TMUX_EXPANDS = re.compile(r'\$|\\[0-7eEuU]|^\s*%', re.MULTILINE)
_SCREEN = _grammar('a A d D f i l L m n O q Q r R U v w x X c: e: h: p: s: S: t: T: ')


def _tmux(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    options = _TMUX.parse(name, words)
    for value in options.values('c'):
        search.code(value, situation, by=name)
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)
        return
    command: list[Word] = []
    for word in [*options.rest, static(';', span)]:
        text = word.value or ''
        if text.endswith('\\;'):  # no end of the command
            command.append(static(text[:-2] + ';', word.span, word.raw))
        elif text.endswith(';'):
            if text != ';':
                command.append(static(text[:-1], word.span, word.raw))
            _tmux_command(search, name, command, situation, span)
            command = []
        else:
            command.append(word)


def _tmux_command(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    for word in words:
        _tmux_jobs(search, name, word, situation)
    while words and _SETTING.match(words[0].prefix()):
        words = words[1:]
    if not words:
        return
    given = words[0].value
    if given is None:
        reason = f'Which command of {name!r} this is is not written out. Write its name.'
        _blind(search, name, reason, words, situation, span)
        return
    given = _TMUX_ALIASES.get(given, given)
    full = next((key for key in _TMUX_COMMANDS if key == given), None) or next(
        (key for key in _TMUX_COMMANDS if given and key.startswith(given)), None
    )
    if full is None:
        return
    words = [
        static(word.literal, word.span, word.raw) if _TMUX_INDEXED.fullmatch(word.raw) else word
        for word in words
    ]
    options = _TMUX_COMMANDS[full].parse(name, words[1:])
    left = options.rest
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)
    elif full in {'run-shell', 'if-shell'}:
        plain = options.has('C') if full == 'run-shell' else options.has('F')
        for word in left[:1]:
            if not plain:
                search.code(_tmux_filled(word), situation, by=name)
        for word in left[: 1 if plain else 0] if full == 'run-shell' else left[1:3]:
            _tmux_text(search, name, word, situation, span)
    elif full in {'set-option', 'set-window-option'}:
        _tmux_option(search, name, left, situation, span)
    elif full == 'set-hook' or (full == 'bind-key' and len(left) == 2):
        for word in left[1:]:
            _tmux_text(search, name, word, situation, span)
    elif full == 'bind-key':
        if left[1:]:
            search.run([static(name, span), *left[1:]], situation, span)
    elif full in {'confirm-before', 'command-prompt'}:
        for word in left:
            _tmux_text(search, name, word, situation, span)
    elif full == 'source-file':
        for word in left:
            read = search.file(word, situation)
            if isinstance(read, Word):
                _tmux_text(search, name, read, situation, span)
            elif read == 'unknown':
                reason = (
                    f'{name!r} reads its commands from an input. Write the commands themselves.'
                )
                _blind(search, name, reason, words, situation, span)
    elif len(left) == 1 or (left and full == 'pipe-pane'):
        search.code(left[0], situation, by=name)
    elif left:
        search.run(left, situation, span)


def _tmux_option(
    search: Search, name: str, words: Sequence[Word], situation: Situation, span: Span
) -> None:
    if len(words) < 2:
        return
    named, value = words[:2]
    for option in [named.value] if named.value is not None else search.values.known(named):
        if any(known.startswith(option) for known in _TMUX_CODE):
            search.code(value, situation, by=name)
        elif 'default-shell'.startswith(option):
            search.run([value], situation, span)
        elif option.startswith('command-al'):
            alias = value.prefix().partition('=')[0]
            _tmux_text(search, name, value.without(len(alias) + 1), situation, span)
        elif _TMUX_HOOK.match(option):
            _tmux_text(search, name, value, situation, span)


def _tmux_filled(word: Word) -> Word:
    """Shell code with something unknown where tmux puts values."""
    text = word.code
    if _TMUX_FORMAT.search(text) is None:
        return word
    for _ in range(_MAX_FORMATS):
        text = _TMUX_FORMAT.sub(UNKNOWN, text)
    return Word(word.raw, (('q', UNKNOWN if '#{' in text else text),), word.span)


def _tmux_text(search: Search, name: str, word: Word, situation: Situation, span: Span) -> None:
    """Judge a text of tmux commands."""
    text = _tmux_filled(word).code
    lexer = shlex.shlex(text.replace('\n', ' ; '), posix=True, punctuation_chars=';{}')
    lexer.whitespace_split, lexer.commenters = True, ''
    try:
        if _TMUX_EXPANDS.search(text):
            raise ValueError  # noqa: TRY301  # the same ending for both ways to be unreadable
        tokens = list(lexer)
    except ValueError:
        reason = f'A text of commands for {name!r} is not plain. Write those commands on their own.'
        _blind(search, name, reason, [word], situation, span)
        return
    made: list[Word] = []
    for token in tokens:
        if not token.strip(';{}'):
            made.append(static(';', word.span))
        else:
            end = '\\;' if token.endswith(';') else ''
            made.append(static(token.removesuffix(';') + end if end else token, word.span))
    if made:
        search.run([static(name, span), *made], situation, span)


def _tmux_jobs(search: Search, name: str, word: Word, situation: Situation) -> None:
    """Judge the commands in formats, `#(…)`."""
    text = word.code
    begin = text.find('#(')
    while begin >= 0:
        end, depth = begin + 2, 1
        while end < len(text) and depth:
            depth += {'(': 1, ')': -1}.get(text[end], 0)
            end += 1
        inner = text[begin + 2 : end - (not depth)]
        search.code(Word(word.raw, (('q', inner),), word.span), situation, by=name)
        begin = text.find('#(', end)


def _screen(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    if words and (words[0].value or '') in {'-ls', '-list', '-wipe', '-version'}:
        return
    # `-dm`, `-dmS name`: letters in a bundle, the last of which may take a value.
    # `-Logfile` is the one long name, and takes a value.
    files = {index for index, word in enumerate(words) if word.value == '-Logfile'}
    left = [word for index, word in enumerate(words) if not files & {index, index - 1}]
    options = _SCREEN.parse(name, left)
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)
        return
    for value in options.values('s'):
        search.run([value], situation, span)
    command = options.rest
    if not command or options.has('X') or (options.has('r', 'x') and not options.has('R')):
        return
    search.run(command, situation, span)
    if options.has('R') and command[1:]:  # behind the name of a session
        _second_reading(search, name, command[1:], situation._replace(weak=True), span)


_GDB_VALUED = (
    'annotate', 'se', 'symbols', 's', 'exec', 'e', 'core', 'c', 'pid', 'p', 'command', 'eval-command', 'x', 'ex', 'init-command',
    'init-eval-command', 'ix', 'iex', 'early-init-command', 'early-init-eval-command', 'eix', 'eiex', 'directory', 'd', 'data-directory', 'D', 'cd', 'tty',
    'baud', 'b', 'l', 'interpreter', 'i', 'ui',
)  # fmt: skip


def _gdb(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        for text in [word.value] if word.value is not None else search.values.known(word):
            option = text.lstrip('-') if text.startswith('-') else ''
            if option in {'ar', 'arg', 'args'}:  # as short as gdb takes it
                if words[index:]:
                    search.run(words[index:], situation, span)
                return
        option = (word.value or '').lstrip('-') if word.prefix().startswith('-') else ''
        # `--nx`, `--batch` and the like are no beginnings of these.
        if option and any(known.startswith(option) for known in _GDB_VALUED):
            index += 1


# How many words each option of bwrap takes.
_BWRAP = {
    **dict.fromkeys((
        '--args', '--argv0', '--unsetenv', '--lock-file', '--sync-fd', '--userns', '--userns2', '--pidns', '--uid',
        '--gid', '--hostname', '--chdir', '--remount-ro', '--proc', '--dev', '--tmpfs', '--mqueue', '--dir', '--seccomp',
        '--add-seccomp-fd', '--block-fd', '--userns-block-fd', '--info-fd', '--json-status-fd', '--exec-label',
        '--file-label', '--cap-add', '--cap-drop', '--perms', '--size', '--overlay-src', '--tmp-overlay', '--ro-overlay',
    ), 1),
    **dict.fromkeys((
        '--setenv', '--bind', '--bind-try', '--dev-bind', '--dev-bind-try', '--ro-bind', '--ro-bind-try', '--bind-fd',
        '--ro-bind-fd', '--file', '--bind-data', '--ro-bind-data', '--symlink', '--chmod',
    ), 2),
    '--overlay': 3,
}  # fmt: skip


def _bwrap(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    index = 0
    while index < len(words) and (words[index].value or '').startswith('--'):
        option = words[index].value or ''
        index += 1
        if option == '--':
            break
        taken = words[index : index + _BWRAP.get(option, 0)]
        if option == '--args' or any(not word.one_field for word in taken):
            _blind(
                search,
                name,
                f'An argument of {name!r} in front of its command is not written out. Write it in plain words.',
                words,
                situation,
                span,
            )
            return
        index += len(taken)
    left = words[index:]
    if left:
        search.run(left, situation._replace(functions=False), span)


_DAEMON = _grammar(
    'S K T H p: x: a: n: u: c: r: d: g: k: N: P: I: O: s: R: o t v q b m C V h w: i:',
    'start stop status exec= startas= pidfile= name= user= ppid= pid= chuid= chroot= chdir= group= umask= nicelevel= procsched= iosched= output= signal= retry= oknodo test verbose quiet background no-close make-pidfile remove-pidfile notify-await notify-timeout=',
    permute=True,
)


def _daemon(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    options = _DAEMON.parse(name, words)
    for value in options.values('x', 'a', 'exec', 'startas'):
        search.run([value, *options.rest], situation._replace(functions=False), span)
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)


def _capsh(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    for index, word in enumerate(words):
        if word.value in {'--', '-+', '=='}:
            left = words[index + 1 :]
            if word.value == '==':
                _capsh(search, name, left, situation, span)
            else:
                shell(search, 'bash', left, situation, span)
            return
        if not word.one_field:
            reason = f'An argument of {name!r} is not written out. Write it in plain words.'
            _blind(search, name, reason, words, situation, span)
            return


def _faketime(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    # A time such as `-3d` is no option.
    words = [
        static('now', word.span, word.raw) if re.match(r'-\d', word.prefix()) else word
        for word in words
    ]
    _FAKETIME(search, name, words, situation, span)


_FAKETIME = rest('m f p: h v', 'exclude-monotonic date-prog= pid=', operands=1)


def after(wanted: Sequence[str], then: Runs, *, before: Grammar | None = None) -> Runs:
    """A program one of whose sub-commands runs something.

    Args:
        wanted: The names of the sub-commands.
        then: What such a sub-command does with the words behind it.
        before: The options in front of the sub-command.
    """
    grammar = before or _grammar()

    def runs(
        search: Search, name: str, words: list[Word], situation: Situation, span: Span
    ) -> None:
        options = grammar.parse(name, words)
        if options.problem:
            _blind(search, name, options.problem, words, situation, span)
        elif options.rest and options.rest[0].value in wanted:
            then(search, name, options.rest[1:], situation, span)

    return runs


def _perf(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    while words and (words[0].value or '').startswith('-'):
        words = words[1:]
    verb = words[0].value if words else None
    if verb == 'stat':
        _PERF_STAT(search, name, words[1:], situation, span)
    elif verb == 'trace':
        _PERF_TRACE(search, name, words[1:], situation, span)
    elif verb in {'record', 'mem', 'lock', 'sched', 'kmem', 'c2c', 'timechart', 'kvm', 'ftrace'}:
        for index, word in enumerate(words):
            if word.value in {'record', 'trace', 'latency', 'contention'}:
                _PERF_RECORD(search, name, words[index + 1 :], situation, span)
                return


_PERF_STAT = rest(
    'e: M: T i p: t: a g c v r: n d S B C: A x: G: o: I: D: j h q',
    'event= metrics= transaction no-inherit filter= pid= tid= all-cpus scale verbose repeat= table null detailed sync big-num no-big-num cpu= no-aggr no-merge hybrid-merge field-separator= cgroup= for-each-cgroup= output= append log-fd= pre= post= interval-print= interval-count= interval-clear timeout= per-socket per-die per-cluster per-cache? per-core per-thread per-node delay= metric-only metric-no-group metric-no-merge metric-no-threshold topdown td-level= smi-cost all-kernel all-user control= quiet json-output summary no-csv-summary cputype= inherit bpf-counters bpf-prog=',
    code=('pre', 'post'),
)
_PERF_RECORD = rest(
    'e: p: t: r: a c: o: i m: F: g v q s d T P D: n N k: u: C: G: b j: W I:: S:: z:: R B E h',
    'event= filter= exclude-perf pid= tid= realtime= no-buffering raw-samples all-cpus count= output= no-inherit freq= strict-freq mmap-pages= group call-graph= verbose quiet stat data phys-addr data-page-size code-page-size sample-cpu sample-identifier timestamp period no-samples no-buildid-cache no-buildid cgroup= delay= uid= branch-any branch-filter= weight transaction per-thread intr-regs? user-regs? running-time clockid= snapshot? proc-map-timeout= switch-events all-kernel all-user kernel-callchains user-callchains clang-path= clang-opt= vmlinux= buildid-all buildid-mmap aio? affinity= compression-level? mmap-flush= no-bpf-event overwrite timestamp-filename timestamp-boundary switch-output? switch-output-event= switch-max-files= dry-run tail-synthesize max-size= num-thread-synthesize= control= threads? off-cpu setup-filter= cpu= synth= debuginfod? aux-sample? kcore namespaces all-cgroups ldlat= type= ',
)
_PERF_TRACE = rest(
    'e: o: p: t: u: a C: m: d: T i: F: f s S v D: G: h',
    'event= expr= output= pid= tid= uid= all-cpus cpu= mmap-pages= duration= sched time input= filter= force summary with-summary verbose delay= cgroup= call-graph= min-stack= max-stack= no-inherit no-syscalls syscalls comm tool_stats errno-summary libtraceevent_print kernel-syscall-graph print-sample sort-events max-events= switch-on= switch-off= show-on-off-events failure pf= map-dump= filter-pids=',
)


def _coresched(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    options = _CORESCHED.parse(name, words)
    if not options.problem and options.rest and options.rest[0].value in {'new', 'get', 'copy'}:
        words = [word for word in words if word is not options.rest[0]]
    _CORESCHED_REST(search, name, words, situation, span)


_CORESCHED = _grammar('s: d: t: v h V', 'source= dest= dest-type= verbose')
_CORESCHED_REST = rest('s: d: t: v h V', 'source= dest= dest-type= verbose')

# The sub-commands of git that run their words; code in its options is git's own, as an interpreter's is. A list of
# allowed commands names git, which answers for it: only a denial counts.
_GIT = _grammar(
    'C: c: p P h v',
    'exec-path? html-path man-path info-path paginate no-pager no-replace-objects no-lazy-fetch no-optional-locks no-advice bare git-dir= work-tree= namespace= super-prefix= config-env= literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs list-cmds= attr-source=',
    lenient=True,
)


def _git(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False, weak=True)
    left = _GIT.parse(name, words).rest
    verb, left = (left[0].value, left[1:]) if left else (None, [])
    values = [word.value or '' for word in left]
    if verb == 'submodule' and 'foreach' in values:
        left = left[values.index('foreach') + 1 :]
        while left and (left[0].value or '').startswith('-'):
            left = left[1:]
        if left:
            search.code(_joined(left, span), situation, by=name)
    elif verb == 'bisect' and values[:1] == ['run']:
        left = left[2:] if values[1:2] == ['--'] else left[1:]
        if left:
            search.run(left, situation, span)


def _option_code(
    search: Search, name: str, words: Sequence[Word], situation: Situation, options: Sequence[str]
) -> None:
    """Judge the values of options that are shell code, glued on or the next word."""
    for index, word in enumerate(words):
        text = word.value or word.prefix()
        for option in options:
            if text == option:
                for value in words[index + 1 : index + 2]:
                    search.code(value, situation, by=name)
            elif text.startswith(_glued(option)) and text != option:
                search.code(word.without(len(_glued(option))), situation, by=name)


def code_options(*options: str) -> Runs:
    """A program with options whose values are shell code; only a denial of what that runs counts."""

    def runs(
        search: Search, name: str, words: list[Word], situation: Situation, span: Span
    ) -> None:
        inner = situation._replace(functions=False, weak=True)
        _option_code(search, name, words, inner, options)

    return runs


def _ip(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    values = [word.value or '' for word in words]
    index, everywhere = 0, False
    while index < len(words) and values[index].startswith('-'):
        option = values[index].lstrip('-')
        everywhere = everywhere or (bool(option) and 'all'.startswith(option))
        takes = {'n', 'netns', 'f', 'family', 'l', 'loops', 'b', 'batch', 'rc', 'rcvbuf'}
        index += 2 if option in takes or (len(option) > 1 and 'netns'.startswith(option)) else 1
    verb, action = (*values[index : index + 2], '', '')[:2]
    known = len(verb) > 2 and ('netns'.startswith(verb) or verb == 'vrf')  # as short as ip takes it
    if not (known and action and 'exec'.startswith(action)):
        return
    left = words[index + 2 :]
    if not everywhere:
        if left and not left[0].one_field:
            reason = f'The namespace of {name!r} may become several words. Put it in quotes.'
            _blind(search, name, reason, words, situation, span)
            return
        left = left[1:]
    if left:
        search.run(left, situation, span)


_FD_EXECUTES = re.compile(r'-[HIiasgFLp0u1lqh]*[xX]=?|--exec(?:-batch)?(?:=|$)')


def _fd(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word.value == '--':
            return
        found = _FD_EXECUTES.match(word.value or word.prefix())
        if not found:
            continue
        first = word.without(found.end())
        command = [first] if first.code else []
        while index < len(words) and words[index].value != ';':
            command.append(words[index])
            index += 1
        marks = re.compile(r'\{(?://?|\.|/\.|//)?\}')
        path = Word('', (('X', ''),), span)
        filled = [
            Word(part.raw, (('X', ''),), part.span)
            if marks.fullmatch(part.literal)
            else Word(part.raw, (('q', marks.sub(UNKNOWN, part.code)),), part.span)
            if marks.search(part.literal)
            else part
            for part in command
        ]
        if filled:
            added = [] if any(marks.search(part.literal) for part in command) else [path]
            search.run([*filled, *added], situation, span)


def _entr(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    options = _ENTR.parse(name, words)
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)
    elif options.has('s') and options.rest:
        search.code(options.rest[0], situation, by=name)
    elif options.rest:
        search.run(options.rest, situation, span)


_ENTR = _grammar('a c d n p r s z x')


def every_operand(
    short: str = '',
    long: str = '',
    *,
    code: Sequence[str] = (),
    taken: dict[str, int] | None = None,
) -> Runs:
    """A program each of whose operands is shell code.

    Args:
        short: Its letters.
        long: Its long options.
        code: Options whose value is code too.
        taken: Options with several values.
    """
    grammar = _grammar(short, long, permute=True)

    def runs(
        search: Search, name: str, words: list[Word], situation: Situation, span: Span
    ) -> None:
        situation = situation._replace(functions=False)
        left: list[Word] = []
        index = 0
        while index < len(words):
            count = (taken or {}).get(words[index].value or '', 0)
            if not count:
                left.append(words[index])
            index += 1 + count
        options = grammar.parse(name, left)
        if options.problem:
            _blind(search, name, options.problem, words, situation, span)
            return
        for value in (*options.values(*code), *options.rest):
            search.code(value, situation, by=name)

    return runs


def _schedtool(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    for index, word in enumerate(words):
        if word.value == '-e' and words[index + 1 :]:
            search.run(words[index + 1 :], situation._replace(functions=False), span)
            return


def _runcon(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    # A whole context stands before the command, unless options give its parts.
    whole = not _RUNCON.parse(name, words).has('c', 't', 'u', 'r', 'l', *_RUNCON.long)
    rest(_RUNCON.short, _RUNCON.names, operands=int(whole))(search, name, words, situation, span)


_RUNCON = _grammar('c t: u: r: l:', 'compute type= user= role= range=')


def _dtach(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    # A mode and a socket stand first, then the options.
    if not words or words[0].value in {'-a', '-p', '--help', '--version'}:
        return
    if words[0].value not in {'-A', '-c', '-n', '-N'} or not all(
        word.one_field for word in words[:2]
    ):
        _blind(
            search,
            name,
            f'{name!r} is called in a way that is not read. Write `{name} -n SOCKET COMMAND`.',
            words,
            situation,
            span,
        )
        return
    _DTACH(search, name, words[2:], situation, span)


_DTACH = rest('e: E r: R: z')


def _cset(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    before = _CSET.parse(name, words)
    verb = before.rest[0].value if before.rest else ''
    if not before.problem and verb not in {'proc', 'shield'}:
        return
    options = (_CSET_PROC if verb == 'proc' else _CSET_SHIELD).parse(name, before.rest[1:])
    if before.problem or options.problem:
        problem = before.problem or options.problem
        _blind(search, name, problem, words, situation, span)
        return
    left = options.rest
    if not left or not options.has('e', 'exec'):
        return
    if verb == 'proc' and not options.has('s', 'set', 't', 'toset'):
        # The first word may be the name of the set.
        search.run(left, situation._replace(weak=True), span)
        left = left[1:]
    if left:
        search.run(left, situation, span)


_CSET = _grammar('l: m x h', 'log= machine tohex=')
_CSET_PROC = _grammar(
    'h l e u: g: m p: k v s: t: f:',
    'list exec user= group= move pid= kthread threads force verbose set= toset= fromset=',
    permute=True,
)
_CSET_SHIELD = _grammar(
    'h c: r k: e u: g: s p: f v',
    'cpu= reset kthread= exec user= group= shield unshield pid= threads force verbose userset= sysset=',
    permute=True,
)


def _uftrace(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    verb = words[0].value if words else None
    if verb in {'replay', 'report', 'info', 'dump', 'recv', 'graph', 'script', 'tui'}:
        return
    if verb in {'record', 'live'}:
        words = words[1:]
    _UFTRACE(search, name, words, situation, span)


_UFTRACE = rest(
    'A: b: C: d: D: E: e f: F: g h H: k K: L: l N: P: p: r: R: s: S: t: T: U: v V W: Z: a',
    'argument= buffer= caller-filter= data= depth= Event= estimate-return output-fields= filter= agent hide= kernel kernel-depth= loc-filter= nest-libcall notrace= patch= pid= time-range= retval= sort= script= time-filter= trigger= unpatch= verbose watch= size-filter= auto-args libmcount-path= port= host= libname flat free flame-time= force srcline keep-pid logfile= match= max-stack= no-args no-comment no-event no-libcall no-merge no-pager no-pltbind no-randomize-addr no-sched no-sched-preempt nop num-thread= opt-file= record rt-prio= signal= color= column-view column-offset= clock= daemon demangle= disable trace= with-syms= chrome debug debug-domain= event-full list-event list-functions mermaid graphviz usage',
)


def _lxc(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    """`lxc exec INSTANCE COMMAND`: its options may stand on both sides of the instance."""
    situation = situation._replace(functions=False)
    options = _LXC.parse(name, words)
    if not options.problem and options.rest and options.rest[0].value == 'exec':
        options = _LXC.parse(name, options.rest[1:])
        if not options.problem and options.rest and not options.rest[0].one_field:
            options.problem = (
                f'The instance of {name!r} may become several words. Put it in quotes.'
            )
        if not options.problem:
            options = _LXC.parse(name, options.rest[1:])
            if options.rest and not options.problem:
                search.run(options.rest, situation, span)
    if options.problem:
        _blind(search, name, options.problem, words, situation, span)


_LXC = _grammar(
    'h q v n t T',
    'debug force-local project= quiet verbose cwd= env= disable-stdin force-interactive force-noninteractive group= mode= user= sub-commands all',
)


def _behind(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    """Its command stands behind a `--`."""
    for index, word in enumerate(words):
        if word.value == '--':
            if words[index + 1 :]:
                search.run(words[index + 1 :], situation._replace(functions=False), span)
            return
        if not word.one_field:
            reason = f'An argument of {name!r} is not written out. Write it in plain words.'
            _blind(search, name, reason, words, situation, span)
            return


def _stamps(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    # One program of this name queues its words as a command, another takes a format: a denial counts.
    _SPOOLER(search, name, words, situation._replace(weak=True), span)


_SPOOLER = rest(
    'V h K g C l n f m B E r: t: c: o: p: w: k: u: s: U: q i: N: L: d S: D: W: O: a: T e: z'
)


def _strace(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    for value in _STRACE_OPTIONS.parse(name, words).values('o', 'output'):
        for file in [value] if value.prefix() else _texts(search, value):
            if file.prefix().startswith(('|', '!')):  # it writes to a command
                search.code(file.without(1), situation._replace(functions=False), by=name)
    _STRACE(search, name, words, situation, span)


_STRACE_OPTIONS = _grammar(
    'a: A b: c C d D e: E: f F h i I: k n N o: O: p: P: q r s: S: t T u: U: v V w x X: y Y z Z',
    'columns= output-append-mode detach-on= summary-only summary debug daemonize? daemonised? daemonized? env= follow-forks output-separately instruction-pointer interruptible= kill-on-exit stack-trace? stack-traces? stack-trace-frame-limit= syscall-limit= syscall-number arg-names output= summary-syscall-overhead= attach= trace-path= relative-timestamps? string-limit= summary-sort-by= absolute-timestamps? timestamps? syscall-times? user= summary-columns= no-abbrev summary-wall-clock strings-in-hex? const-print-style= pidns-translation successful-only failed-only failing-only seccomp-bpf tips? argv0= always-show-pid color= trace= trace-fds= abbrev= verbose= raw= signals= status= read= write= fault= inject= kvm= namespace? quiet? silent? silence? decode-fds? decode-pids= secontext?',
)
_STRACE = rest(_STRACE_OPTIONS.short, _STRACE_OPTIONS.names)


def _choom(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    situation = situation._replace(functions=False)
    _CHOOM(search, name, words, situation, span)
    # It reads its options among the words of the command too, and takes a `--` out there.
    options = _CHOOM_PERMUTED.parse(name, words)
    straight = _CHOOM_STRAIGHT.parse(name, words)
    if (
        options.rest
        and options.rest != straight.rest
        and not (options.problem or options.has('p', 'pid', 'h', 'V'))
    ):
        _second_reading(search, name, options.rest, situation, span)


_CHOOM_PERMUTED = _grammar('n: p: h V', 'adjust= pid=', permute=True)
_CHOOM_STRAIGHT = _grammar(_CHOOM_PERMUTED.short, _CHOOM_PERMUTED.names)
_CHOOM = rest(_CHOOM_PERMUTED.short, _CHOOM_PERMUTED.names, nothing=('p', 'pid'))


# Second tier: project runners. Only a denial of what they run counts: a list of allowed commands names the runner.


def _glued(option: str) -> str:
    return option + '=' if option.startswith('--') else option


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of the options of a project runner."""

    flags: frozenset[str]
    valued: frozenset[str]
    pairs: frozenset[str]

    def takes(self, option: Word) -> int | None:
        """How many of the next words are the values of an option; `None` when it is not known."""
        text = option.value or option.prefix()
        if not text or '=' in text or text == '-' or text.startswith('+'):
            return 0
        if option.value is None:
            return 0 if text[:2] in self.valued else None
        if text in self.pairs:
            return 2
        if text in self.valued:
            return 1
        if text in self.flags:
            return 0
        letters = '' if text.startswith('--') else text[1:]
        for place, letter in enumerate(letters, 1):
            if f'-{letter}' in self.valued:
                return int(place == len(letters))
            if f'-{letter}' not in self.flags:
                return None
        return 0 if letters else None


_MAX_DOUBTS = 16


def runner(
    *subcommands: str,
    valued: str = '',
    flags: str = '',
    pairs: str = '',
    nothing: str = '',
    through: str = '',
    within: str = '',
    code: Sequence[str] = (),
    operand: str = 'command',
    shells: Sequence[str] = (),
    named: bool = False,
) -> Runs:
    """A project runner such as `uv run`.

    The word behind an option that is not known may be its value or the command: it is judged as both.

    Args:
        subcommands: Those that run something; none when the program itself does.
        valued: Its options with a value.
        flags: Its options without one.
        pairs: Its options with two values.
        nothing: Options with which it runs no program.
        through: Words that may stand in front of the sub-command.
        within: Those that take a name.
        code: Its options whose value is shell code.
        operand: What its first operand is: 'command', 'other' for nothing that runs, 'tool' when the command follows `--`.
        shells: The sub-commands that start a shell when they are given no command; '' for the program itself.
        named: Whether `NAME:` may stand in front of the command, in one word with it.
    """
    known = _Known(frozenset(flags.split()), frozenset(valued.split()), frozenset(pairs.split()))
    ends = frozenset(nothing.split())
    passed, containers = frozenset(through.split()), frozenset(within.split())
    verbs = {*subcommands, *passed, *containers}

    def runs(
        search: Search, name: str, words: list[Word], situation: Situation, span: Span
    ) -> None:  # the interface of the table
        outer = situation._replace(functions=False)
        situation = outer._replace(weak=True)

        def command(left: list[Word]) -> None:
            first = left[0]
            if (first, situation.stdin) in search.run_by_runners:
                return
            search.run_by_runners.add((first, situation.stdin))
            place = _NAMED.match(first.prefix()) if named else None
            if place:
                first = first.without(place.end())
            if re.search(r'\s', first.literal):
                # No program is called so, and some runners hand it to a shell.
                search.code(first, situation, by=name)
            else:
                search.run([first, *left[1:]], situation, span)

        started, coded = not subcommands, False
        verb = ''
        index = doubts = 0
        while index < len(words):
            word = words[index]
            text = word.value or word.prefix()
            index += 1
            if word.value == '--':
                if words[index:]:
                    command(words[index:])
                return
            glued = next((key for key in code if text.startswith(_glued(key))), '')
            if word.value in code or glued:
                for value in (
                    [word.without(len(_glued(glued)))]
                    if word.value not in code
                    else words[index : index + 1]
                ):
                    search.code(value, situation, by=name)
                if operand == 'command':
                    return
                coded = True
                index += word.value in code
            elif started and text in ends:
                return
            elif text.startswith(('-', '+')) or not (text or word.one_field):  # `$options`
                takes = known.takes(word)
                if takes is None and words[index:] and not words[index].prefix().startswith('-'):
                    if started and operand == 'command':
                        doubts += 1
                        if doubts > _MAX_DOUBTS:
                            reason = f'The policy does not know so many options of {name!r}. Write the command without them.'
                            _blind(search, name, reason, words, outer, span)
                            return
                        command(words[index:])
                    index += started or words[index].value not in verbs
                index += takes or 0
            elif not started:
                index += text in containers
                if text not in verbs:
                    verb = text
                    break
                if text in subcommands:
                    verb, started = text, True
            elif operand == 'command':
                command(words[index - 1 :])
                return
        if verb in shells and not coded:
            # That such a shell reads what nobody knows counts too.
            situation = situation._replace(weak=situation.stdin != 'unknown')
            search.run([static('sh', span)], situation, span)

    return runs


_NAMED = re.compile(r'[\w.+-]+:')


def _uv(*subcommands: str, through: str = '') -> Runs:
    return runner(
        *subcommands,
        through=through,
        nothing='-m --module -s --script --gui-script',
        valued='-w --with --with-editable --with-requirements -p --python --from --project --directory --env-file --extra --no-extra --group --no-group --only-group --package --no-editable-package -c --constraints -b --build-constraints --overrides --python-platform --torch-backend --index --default-index -i --index-url --extra-index-url -f --find-links --index-strategy --keyring-provider -P --upgrade-package --upgrade-group --resolution --prerelease --prerelease-package --fork-strategy --exclude-newer --exclude-newer-package --no-sources-package --reinstall-package --link-mode -C --config-setting --config-settings --config-settings-package --no-build-isolation-package --no-build-package --no-binary-package --cache-dir --refresh-package --python-preference --python-fetch --color --allow-insecure-host --config-file --preview-features',
        flags='--all-extras --dev --no-dev --only-dev --no-default-groups --all-groups --no-editable --exact --inexact --no-env-file --isolated --active --no-active --no-sync --locked --frozen --all-packages --no-project --no-index -U --upgrade --no-upgrade --no-sources --reinstall --no-reinstall --compile-bytecode --no-compile-bytecode --no-build-isolation --build-isolation --no-build --build --no-binary --binary --require-build-hashes --no-require-build-hashes -n --no-cache --refresh --no-refresh --managed-python --no-managed-python --no-python-downloads -q --quiet -v --verbose --system-certs --native-tls --no-native-tls --offline --no-offline --no-progress --no-config --preview --no-preview --lfs --pre --show-resolution',
    )


def _npm(*subcommands: str, valued: str = '') -> Runs:
    return runner(
        *subcommands,
        valued=f'{valued} -w --workspace --package --prefix -C --registry --cache --loglevel --userconfig --globalconfig --script-shell --node-options --tag --omit --include --install-strategy --before --min-release-age --allow-scripts --fetch-timeout --fetch-retries --logs-dir --cafile --ca --https-proxy --noproxy --otp --umask --user-agent --location -L',
        flags='-y --yes --no --no-yes --no-install -q --quiet -s --silent -d -dd -ddd --verbose -f --force -g --global -ws --workspaces --no-workspaces -iwr --include-workspace-root --offline --prefer-offline --prefer-online --json --if-present --ignore-scripts --ignore-existing --foreground-scripts --legacy-peer-deps --strict-peer-deps --no-audit --no-fund --no-color --no-progress --no-save --no-package-lock --no-update-notifier --no-bin-links --no-strict-ssl --audit --fund --progress --timing',
        code=('-c', '--call'),
    )


def _pnpm(*subcommands: str) -> Runs:
    return runner(
        *subcommands,
        valued='-C --dir -F --filter --filter-prod --test-pattern --changed-files-ignore-pattern --package --reporter --loglevel --workspace-concurrency --resume-from --registry --store-dir --cpu --os --libc',
        flags='-r --recursive -w --workspace-root --include-workspace-root -s --silent --parallel --stream --aggregate-output --use-stderr --color --no-color --no-bail --sort --no-sort --reverse --no-reporter-hide-prefix --reporter-hide-prefix --report-summary --fail-if-no-match --if-present --offline --prefer-offline --ignore-scripts --ignore-workspace -y --yes',
        code=('-c', '--shell-mode'),
    )


def _bun(*subcommands: str) -> Runs:
    return runner(
        *subcommands,
        valued='-p --package --cwd --env-file -r --preload -F --filter --shell',
        flags='-b --bun --silent --verbose --no-install --no-env-file -i --smol -y --yes',
    )


def _versioned(
    search: Search, name: str, words: list[Word], situation: Situation, span: Span
) -> None:
    """Run a command with a version of Node.js, which stands before it or in a file."""
    left = words[1:] if words and words[0].value in {'exec', 'use'} else []
    while left and re.match(r'-|v?\d|node$|stable$|lts|latest$', left[0].value or left[0].prefix()):
        left = left[1:]
    if left:
        search.run(left, situation._replace(functions=False, weak=True), span)


def _nix(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    """Run a command, or a shell, where a package or the tools to build it are at hand."""
    values = [word.value or word.prefix() for word in words]
    for index, value in enumerate(values):
        if value in {'develop', 'shell'}:
            break
        # A word behind an option may be its value.
        before = values[max(0, index - 2) : index]
        valued = '--option' in before or any(word.startswith('-') for word in before[-1:])
        if not (valued or value.startswith('-') or value == 'env'):
            return
    else:
        return
    begin = next((at for at in range(index, len(words)) if values[at] in {'-c', '--command'}), None)
    situation = situation._replace(functions=False, weak=True)
    if begin is None:
        # That such a shell reads what nobody knows counts too.
        situation = situation._replace(weak=situation.stdin != 'unknown')
        search.run([static('sh', span)], situation, span)
    elif words[begin + 1 :]:
        search.run(words[begin + 1 :], situation, span)


def _sops(search: Search, name: str, words: list[Word], situation: Situation, span: Span) -> None:
    """`sops exec-env FILE CODE`, with options before and between."""
    left = [word for word in words if not word.prefix().startswith('-')]
    for word in left[1:2]:
        search.code(word, situation._replace(functions=False), by=name)


# What these take first is the name of something of their own.
_FIRST_A_SUBCOMMAND = frozenset(
    (
        'git',
        'ip',
        'perf',
        'fd',
        'fdfind',
        'direnv',
        'rustup',
        'rr',
        'cargo',
        'npm',
        'pnpm',
        'yarn',
        'bun',
        'uv',
        'poetry',
        'pipenv',
        'pdm',
        'hatch',
        'bundle',
        'conda',
        'mamba',
        'nix',
    )
)
_NICE = r'-{1,2}[+-]?\d+'
_RUNS = rest()

PROGRAMS: dict[str, Runs] = {
    # Builtins of the shell.
    'command': _command,
    'builtin': _builtin,
    'exec': _exec,
    'eval': _eval,
    'trap': _trap,
    'alias': _alias,
    'hash': _hash,
    'compgen': _complete,
    'complete': _complete,
    'mapfile': _mapfile,
    'readarray': _mapfile,
    'enable': _enable,
    'source': _source,
    '.': _source,
    'test': _test,
    '[': _test,
    'let': _let,
    'read': _read,
    'unset': _unset,
    'set': _set,
    'shopt': _shopt,
    'fc': _fc,
    'jobs': _jobs,
    'printf': _printf,
    'wait': _wait,
    'getopts': _getopts,
    'declare': _declare,
    'typeset': _declare,
    'local': _declare,
    'export': _declare,
    'readonly': _declare,
    # Shells.
    **dict.fromkeys(
        ('sh', 'bash', 'bash-static', 'osh', 'brush', 'dash', 'ash', 'zsh', 'pdksh', 'oksh', 'loksh', 'ksh', 'ksh93', 'mksh', 'lksh', 'rbash', 'yash', 'posh', 'hush', 'csh', 'tcsh'),
        shell,
    ),
    'fish': _fish,
    # What zsh and csh have in front of a command.
    **dict.fromkeys(('noglob', 'nocorrect', '-'), _RUNS),
    'repeat': _repeat,
    'emulate': code_options('-c'),
    'at': _stdin_code,
    'batch': _stdin_code,
    # Programs that change how a command runs.
    'env': _env,
    'nohup': _RUNS,
    'nice': rest('n:', 'adjustment=', number=_NICE),
    'ionice': rest('c: n: p: P: u: t h V', 'class= classdata= pid= pgid= uid= ignore', nothing=('p', 'P', 'u', 'pid', 'pgid', 'uid')),
    'timeout': rest('s: k: v f p', 'signal= kill-after= foreground preserve-status verbose', operands=1),
    'stdbuf': rest('i: o: e:', 'input= output= error='),
    'setsid': rest('c f w V h', 'ctty fork wait'),
    'time': rest('f: o: a q v p V h', 'format= output= append quiet verbose portability'),
    'chroot': rest('u: g: G: n', 'userspec= groups= skip-chdir', operands=1, shell=True),
    'unshare': rest(
        'm u i p n U C T f r c R: w: S: G: l: h V',
        'mount? uts? ipc? net? pid? user? cgroup? time? fork kill-child? mount-proc? mount-binfmt? map-user= map-group= map-root-user map-current-user map-auto map-users= map-groups= propagation= setgroups= keep-caps root= wd= setuid= setgid= monotonic= boottime= load-interp=',
        shell=True,
    ),
    'nsenter': rest(
        't: a m:: u:: i:: n:: p:: C:: U:: T:: S: G: e r:: w:: W: F Z h V',
        'target= all mount? uts? ipc? net? pid? cgroup? user? time? setuid= setgid= preserve-credentials root? wd? wdns? env no-fork join-cgroup follow-context',
        shell=True,
    ),
    'taskset': rest('a c p h V', 'all-tasks cpu-list pid', operands=1, nothing=('p', 'pid')),
    'chrt': rest(
        'T: P: D: a b d f i m o p r R v h V',
        'sched-runtime= sched-period= sched-deadline= all-tasks batch deadline fifo idle max other pid rr reset-on-fork verbose',
        operands=1,
        nothing=('p', 'pid', 'm', 'max'),
    ),
    'prlimit': rest(
        'p: o: c:: d:: e:: f:: i:: l:: m:: n:: q:: r:: s:: t:: u:: v:: x:: y:: h V',
        'pid= output= core? data? nice? fsize? sigpending? memlock? rss? nofile? msgqueue? rtprio? stack? cpu? nproc? as? locks? rttime? noheadings raw verbose',
        nothing=('p', 'pid'),
    ),
    **dict.fromkeys(('setarch', 'linux32', 'linux64', 'i386', 'x86_64', 'uname26'), _setarch),
    'setpriv': rest(
        'd h V',
        'dump nnp no-new-privs list-caps ambient-caps= inh-caps= bounding-set= ruid= euid= rgid= egid= reuid= regid= clear-groups keep-groups init-groups groups= securebits= pdeathsig= ptracer= selinux-label= apparmor-profile= landlock-access= landlock-rule= seccomp-filter= reset-env',
    ),
    'strace': _strace,
    'ltrace': rest(
        'a: A: D: e: F: l: n: o: p: s: u: w: x: b c C f i L r S t T h V',
        'align= debug= library= output= where= demangle no-signals config=',
    ),
    'ssh-agent': rest('a: t: c D d k q s E: O: P:'),
    'dbus-run-session': rest('', 'config-file= dbus-daemon='),
    'dbus-launch': rest('', 'sh-syntax csh-syntax auto-syntax binary-syntax close-stderr exit-with-session exit-with-x11 autolaunch= config-file='),
    'systemd-run': rest(
        'h H: M: p: P q r S t u: G d E: C:',
        'user system scope unit= property= description= slice= slice-inherit expand-environment= remain-after-exit send-sighup service-type= uid= gid= nice= working-directory= same-dir setenv= pty pipe quiet on-active= on-boot= on-startup= on-unit-active= on-unit-inactive= on-calendar= on-clock-change on-timezone-change path-property= socket-property= timer-property= collect wait shell no-block no-ask-password host= machine= capsule=',
        shell=('S', 'shell'),
    ),
    'systemd-inhibit': rest('', 'what= who= why= mode= list no-pager no-legend no-ask-password'),
    'start-stop-daemon': _daemon,
    'flock': _flock,
    'script': _script_program,
    'watch': code_rest(
        'b c C d:: e g n: p q: r s: t w x h v',
        'beep color no-color differences? errexit chgexit interval= precise equexit= no-rerun no-title no-wrap exec shotsdir= follow',
        argv=('x', 'exec'),
    ),
    'bwrap': _bwrap,
    'gdb': _gdb,
    'busybox': _applet,
    'toybox': _applet,
    'tmux': _tmux,
    'screen': _screen,
    # Programs that become someone else.
    'su': _su,
    'runuser': _su,
    'sudo': _sudo,
    'doas': _doas,
    'pkexec': rest('', 'user= disable-internal-agent keep-cwd', shell=True),
    'sg': _sg,
    'newgrp': rest('c:', 'command=', operands=1, code=('c', 'command'), shell=True),
    # Programs that collect arguments.
    'xargs': _xargs,
    'find': _find,
    **dict.fromkeys(('parallel', 'env_parallel', 'sem'), _parallel),
    **dict.fromkeys(('fd', 'fdfind'), _fd),
    'entr': _entr,
    'watchexec': code_rest(
        'e: w: W: i: f: F s: r c:: d: n p N E: o: v q 1 h V j:',
        'exts= watch= watch-non-recursive= watch-file= ignore= ignore-file= filter= filter-file= signal= stop-signal= stop-timeout= timeout= restart clear? debounce= no-shell postpone notify env= on-busy-update= shell= delay-run= poll? no-vcs-ignore no-project-ignore no-global-ignore no-default-ignore no-discover-ignore ignore-nothing emit-events-to= only-emit-events print-events verbose quiet bell color= timings workdir= project-origin= fs-events= stdin-quit wrap-process= map-signal= socket= no-meta exit-on-error log-file?',
    ),
    'hyperfine': every_operand(
        'w: m: M: r: s: p: c: C: S: N i u: n: h V',
        'warmup= min-runs= max-runs= runs= setup= prepare= conclude= cleanup= reference= reference-name= shell= ignore-failure? style= sort= time-unit= export-asciidoc= export-csv= export-json= export-markdown= export-orgmode= show-output output= input= command-name= min-benchmarking-time=',
        code=('s', 'p', 'c', 'C', 'setup', 'prepare', 'conclude', 'cleanup', 'reference'),
        taken={'-P': 3, '--parameter-scan': 3, '-L': 2, '--parameter-list': 2, '-D': 1, '--parameter-step-size': 1},
    ),
    # Tracers, and programs that change when, where or as whom a command runs.
    'perf': _perf,
    'valgrind': rest(lenient=True),  # every value is glued on
    'heaptrack': rest('o: r d h p: a:', 'output= record-only debug pid= analyze=', nothing=('p', 'pid', 'a', 'analyze')),
    'gtime': rest('f: o: a q v p V h', 'format= output= append quiet verbose portability'),
    'choom': _choom,
    'capsh': _capsh,
    'numactl': rest(
        'a b B: i: w: C: c: N: m: P: p: l s H S: f: L: o: O: M: T: I: d D t u V: h v',
        'all balancing interleave= weighted-interleave= cpunodebind= cpubind= physcpubind= membind= preferred= preferred-many= localalloc show hardware shm= file= length= offset= shmmode= shmid= dump dump-nodes touch huge strict verify verbose',
    ),
    'cgexec': rest('g: r b h', 'sticky'),
    'uclampset': rest('m: M: a p: s R v h V', 'all-tasks pid= system reset-on-fork verbose max', nothing=('p', 'pid')),
    'coresched': _coresched,
    'schedtool': _schedtool,
    'runcon': _runcon,
    'aa-exec': rest('p: n: i d v h', 'profile= namespace= immediate debug verbose'),
    'rr': after(('record',), rest('n c: p: s: o: v: i: t: h u w', 'output-trace-dir= num-cpu-ticks= print-trace-dir= chaos no-syscall-buffer env= wait')),
    'ifne': rest('n'),
    'pee': every_operand('', 'ignore-sigpipe no-ignore-sigpipe ignore-write-errors no-ignore-write-errors'),
    'logsave': rest('a s v', operands=1),
    'nq': rest('a c q t: w'),
    'tsp': _SPOOLER,
    'ts': _stamps,
    'dtach': _dtach,
    'abduco': rest('a A c l n e: f p q r v', operands=1),
    # Without `-p`: it takes a value in one of the programs of this name, and none in another.
    'daemon': rest(
        'h V v d C: N n: X: P: F: u: R: D: m: e: i U S c r a: A: L: M: f B l: b: o: O: E: t: T: s: H',
        'verbose? debug? config= noconfig name= command= pidfiles= pidfile= user= chroot= chdir= umask= env= inherit unsafe safe core nocore respawn acceptable= attempts= delay= limit= idiot foreground pty? noecho bind errlog= dbglog= output= stdout= stderr= ignore-eof read running restart stop signal= list',
        code=('X', 'command'),
    ),
    'cset': _cset,
    'uftrace': _uftrace,
    **dict.fromkeys(('lxc', 'incus'), _lxc),
    **dict.fromkeys(('lxc-attach', 'lxc-execute', 'lxc-start', 'lxc-unshare'), rest(
        'n: e a: s: R L: v: u: g: c: f: o: l: q P: d F H: i: M h',
        'name= elevated-privileges? arch= namespaces= remount-sys-proc clear-env keep-env pty-log= set-var= keep-var= uid= gid= context= rcfile= logfile= logpriority= quiet lxcpath= daemon foreground define= share-net= share-ipc= share-uts= share-pid= console= console-log= pidfile= close-all-fds user= hostname= ifname= remount',
    )),
    'systemd-nspawn': rest(
        'q D: i: b a U u: M: S: n j x p: L: Z: E: h h',
        'quiet directory= template= ephemeral image= image-policy= read-only volatile? boot as-pid2 chdir= pivot-root= user= machine= hostname= uuid= slice= property= register= keep-unit private-users? private-users-ownership= private-network network-interface= network-macvlan= network-ipvlan= network-veth network-veth-extra= network-bridge= network-zone= network-namespace-path= port= capability= drop-capability= ambient-capability= no-new-privileges= system-call-filter= rlimit= oom-score-adjust= cpu-affinity= personality= selinux-context= selinux-apifs-context= bind= bind-ro= inaccessible= tmpfs= overlay= overlay-ro= bind-user= setenv= console= pipe no-pager settings= notify-ready= suppress-sync= kill-signal= link-journal= resolv-conf= timezone= root-hash= verity-data= oci-bundle= load-credential= set-credential=',
    ),
    'arch-chroot': rest('h N r u:', operands=1, shell=True),
    'schroot': rest(
        'h V q v l i a c: n: u: p s: d: o: b r e f',
        'quiet verbose list info all all-chroots all-sessions all-source-chroots chroot= session-name= user= preserve-environment shell= directory= option= begin-session run-session end-session recover-session force config location',
    ),
    'sandbox-exec': rest('f: n: p: D:'),
    'nsjail': _behind,
    'run0': rest(
        'h V u: g: D:',
        'no-ask-password machine= property= description= slice= slice-inherit user= group= nice= chdir= setenv= background= via-shell pty pipe shell-prompt-prefix= unit=',
        shell=True,
    ),
    'dzdo': _sudo,
    'arch': rest('c d: e: h', number=r'-(?:32|64|x86_64h?|i386|arm64e?|ppc\w*)'),
    'gdbserver': rest('', 'debug debug-format= disable-packet= disable-randomization no-disable-randomization startup-with-shell no-startup-with-shell once multi attach wrapper=', operands=1),
    'lldb': _behind,
    'multitime': rest('b: c: f: I: i: l n: o: q r: s: v'),
    'timelimit': rest('f h l p q S: s: T: t:'),
    'retry': rest('t: s: m: x: f: d: u: w: v q h e', 'tries= sleep= min= max= fail= delay= message= times= until= while= verbose quiet execute'),
    **dict.fromkeys(('wait-for-it', 'wait-for-it.sh', 'wait-for'), _behind),
    'lockf': rest('k n p s t: T w', operands=1),
    'xcrun': rest('r f l n k v h', 'sdk= toolchain= run find log no-cache kill-cache verbose show-sdk-path show-sdk-version show-sdk-platform-path'),
    'sops': after(('exec-env',), _sops, before=_grammar(lenient=True)),
    **dict.fromkeys(('nc', 'ncat', 'netcat'), code_options('-e', '--exec', '--sh-exec')),
    'lckdo': rest('w W: e E: s x r q h', operands=1),
    'zrun': _RUNS,
    'mispipe': every_operand(),
    'nocache': rest('n: D:'),
    **dict.fromkeys(('gamemoderun', 'prime-run', 'steam-run', 'winpty'), rest(lenient=True)),
    'daemonize': rest('a c: e: o: p: u: l: E: v'),
    'with-contenv': _RUNS,
    **dict.fromkeys(('ccache', 'sccache', 'distcc'), rest('F: M: o: k: d: X: x: p', 'max-files= max-size= set-config= get-config= config-path= dir= trim-dir=', lenient=True)),
    'cpulimit': rest('l: p: e: P: c: i z v f m q k r b h S:', 'limit= pid= exe= path= cpu= include-children lazy verbose foreground monitor-forks quiet kill restore background', nothing=('p', 'e', 'P', 'pid', 'exe', 'path')),
    'trickle': rest('h v V s d: u: w: t: l: n: L: N: P:'),
    'gosu': rest(operands=1),
    'su-exec': rest(operands=1),
    'chpst': rest('v V P 0 1 2 3 4 5 u: U: b: e: d: o: p: f: c: r: t: m: /: C: n: l: L: s: a:'),
    'softlimit': rest('a: c: d: f: l: m: o: p: r: s: t:'),
    's6-softlimit': rest('h H a: c: d: f: l: m: o: p: r: s: t:'),
    **dict.fromkeys(('setuidgid', 'envuidgid', 'envdir', 's6-setuidgid', 's6-envuidgid', 's6-envdir'), rest('i I f c: D: B u g n L: E: e t: ', operands=1)),
    's6-applyuidgid': rest('z U u: g: G:'),
    **dict.fromkeys(('setlock', 's6-setlock'), rest('n N x X r w d: t: e:', operands=1)),
    's6-setsid': rest('s b f g d: i I q'),
    's6-nice': rest('n: I i'),
    's6-env': _env,
    'pgrphack': _RUNS,
    'fghack': _RUNS,
    'execlineb': rest('q w W p P e s S: c:', code=('c',)),
    **dict.fromkeys(('run-one', 'run-this-one', 'run-one-constantly', 'run-one-until-success', 'run-one-until-failure', 'keep-one-running'), _RUNS),
    **dict.fromkeys(('tini', 'tini-static', 'docker-init'), rest('s p: v w g e: l h')),
    'dumb-init': rest('r: c v h V', 'rewrite= single-child verbose'),
    **dict.fromkeys(('fakeroot', 'fakeroot-ng', 'fakeroot-sysv', 'fakeroot-tcp'), rest('l: f: s: i: u b: h v p:', 'lib= faked= save-file= load-file= unknown-is-real fd-base=', shell=True)),
    'fakechroot': rest('s l: d: e: c: b: h v', 'use-system-libs lib= elfloader= environment= config-dir= bindir=', shell=True),
    'faketime': _faketime,
    'proot': rest('r: b: m: q: w: v: V h k: 0 i: S: R: l L p n', 'rootfs= bind= mount= qemu= pwd= cwd= verbose= kernel-release= root-id change-id= kill-on-exit', shell=True),
    'firejail': rest('c:', code=('c',), lenient=True, shell=True),  # every long option has its value glued on
    **dict.fromkeys(('proxychains', 'proxychains4', 'proxychains-ng'), rest('q f:')),
    **dict.fromkeys(('torsocks', 'torify', 'tsocks', 'usewithtor'), rest('i d q v u: p: P: a: h', 'shell isolate debug quiet verbose port= user= pass= address=')),
    'sshpass': rest('p: f: d: e:: v h V P:'),
    'flatpak-spawn': rest('', 'host clear-env watch-bus expose-pids share-pids env= unset-env= directory= sandbox no-network latest-version forward-fd= sandbox-expose= sandbox-expose-ro= sandbox-flag= sandbox-expose-path= sandbox-expose-path-ro= verbose', lenient=True),
    'chronic': rest('v e'),
    'unbuffer': rest('p'),
    'rlwrap': rest(
        'a:: A:: b: c C: d: D: e: E f: F: g: h H: i I l: m:: M: n N o O: p:: P: q: r R s: S: t: U v w: W:: X z:',
        'always-readline? ansi-colour-aware? break-chars= complete-filenames command-name= debug= history-no-dupes= extra-char-after-completion= history-format= forget-matching= file= histsize= history-filename= case-insensitive pass-sigint-as-sigterm logfile= multi-line? multi-line-ext= no-warnings no-children one-shot only-cook= prompt-colour? pre-given= quote-characters= remember renice substitute-prompt= set-term-name= mirror-arguments wait-before-prompt= polling? filter=',
    ),
    'caffeinate': rest('d i m s u t: w:'),
    'catchsegv': _RUNS,
    'debconf': rest('o: p: f: h v', 'owner= priority= frontend= terse'),
    'memusage': rest('n: p: d: u x: y: t T m', 'progname= png= data= unbuffered buffer= no-timer time-based total title= x-size= y-size= mmap'),
    'sotruss': rest('F: T: o: e f', 'from= to= output= exit follow'),
    'luit': rest('V v c p h', lenient=True, single_dash=True),
    'prove': code_options('-e', '--exec'),
    'dpkg-architecture': code_options('-c', '--command'),
    'eatmydata': _RUNS,
    'ip': _ip,
    'rustup': after(('run',), rest('', 'install', operands=1), before=_grammar('h q v V', 'quiet verbose')),
    'direnv': after(('exec',), rest(operands=1), before=_grammar('h v')),
    # The names of GNU's programs where another system has its own.
    'genv': _env,
    'gnohup': _RUNS,
    'gnice': rest('n:', 'adjustment=', number=_NICE),
    'gtimeout': rest('s: k: v f p', 'signal= kill-after= foreground preserve-status verbose', operands=1),
    'gstdbuf': rest('i: o: e:', 'input= output= error='),
    'gchroot': rest('u: g: G: n', 'userspec= groups= skip-chdir', operands=1, shell=True),
    'gxargs': _xargs,
    'gfind': _find,
    'niceload': rest(
        'B f: H I: L: l: M: N n: p: q S s: t: v V h',
        'battery factor= hard io= load= mem= noswap net nethops= nice= pid= prg= program= quote run-io= ri= run-load= rl= run-mem= rm= sensor= start-io= si= start-load= sl= start-mem= sm= soft suspend= recheck= verbose',
        nothing=('p', 'pid', 'prg', 'program'),
    ),
    'cttyhack': _RUNS,
    'openvt': rest('c: e f l s u v w V h', 'console= exec force login switch user verbose wait', shell=True),
    # Sub-commands and options that hold code.
    'git': _git,
    'split': code_options('--filter', '--filte', '--filt', '--fil', '--fi'),
    'asciinema': code_options('-c', '--command'),
    'ttyrec': code_options('-e'),
    'bpftrace': code_options('-c'),
    'repo': code_options('-c'),
    'chokidar': code_options('-c', '--command'),
    'nu': code_options('-c', '--commands', '-e', '--execute'),
    **dict.fromkeys(('elvish', 'xonsh'), code_options('-c')),
    'pwsh': code_options('-c', '-C', '-command', '-Command'),
    'nodemon': code_options('-x', '--exec'),
    'concurrently': every_operand('n: k g r p: s: i l: c: h', 'names= kill-others kill-others-on-fail group raw prefix= success= handle-input prefix-length= prefix-colors= no-color max-processes= timings restart-tries= restart-after='),
    'xvfb-run': rest('a e: f: h l n: p: s: w:', 'auto-servernum auto-display error-file= auth-file= listen-tcp server-num= xauth-protocol= server-args= wait='),
    # Project runners. Their flags count most: the word behind an option that is neither here nor there is judged twice.
    'uv': _uv('run', through='tool'),
    'uvx': _uv(),
    'poetry': runner('run', valued='-C --directory -P --project', flags='-q --quiet -v --verbose -n --no-interaction --ansi --no-ansi --no-plugins --no-cache', shells=('shell',)),
    'pipenv': runner('run', valued='--python --pypi-mirror', flags='--bare --system --site-packages --no-site-packages --clear -q --quiet -v --verbose', shells=('shell',)),
    'pipx': runner('run', valued='--spec --python --pip-args --index-url -i --with --fetch-missing-python', flags='--no-cache --path --pypackages --system-site-packages -q --quiet -v --verbose'),
    'pdm': runner(
        'run',
        valued='-p --project -k --skip --venv --env --env-file --working-dir -c --config',
        flags='-g --global -s --site-packages -j --json --recreate -q --quiet -v --verbose --no-cache -I --ignore-python -n --non-interactive',
    ),
    'hatch': runner(
        'run',
        valued='-e --env -p --project --data-dir --cache-dir --config -i --include -x --exclude -f --filter',
        flags='-q --quiet -v --verbose --color --no-color --interactive --no-interactive --force-continue --ignore-compat',
        through='env',
        shells=('shell',),
        named=True,
    ),
    'rye': runner('run', valued='--pyproject', flags='-q --quiet -v --verbose'),
    'npx': _npm(valued='-p'),
    'npm': _npm('exec', 'x'),
    'pnpm': _pnpm('exec', 'dlx'),
    'pnpx': _pnpm(),
    'bunx': _bun(),
    'bun': _bun('x', 'exec'),
    'yarn': runner(
        'exec',
        'dlx',
        valued='--cwd --package --include --exclude --from -j --jobs',
        flags='-s --silent -q --quiet --json --offline -A --all -R --recursive -W --worktree -v --verbose --parallel -i --interlaced -t --topological --topological-dev --public --no-private',
        through='workspaces foreach',
        within='workspace',
    ),
    'corepack': rest(),
    'systemd-cat': rest('t: p: h', 'identifier= priority= stderr-priority= level-prefix= namespace='),
    **dict.fromkeys(('nvm', 'nave', 'n'), _versioned),
    **dict.fromkeys(('pyenv', 'rbenv', 'nodenv', 'jenv', 'goenv', 'plenv', 'phpenv', 'asdf'), runner('exec')),
    **dict.fromkeys(
        ('opam', 'stack', 'cabal', 'fnm', 'lerna', 'nx'),
        runner(
            'exec',
            valued='--using --switch --root --color --cli --package --stack-yaml --resolver --snapshot --scope --ignore --concurrency --loglevel --log-level --fnm-dir --project-file',
            flags='--using-file --set-root --set-switch --inplace-path -y --yes -q --quiet -v --verbose --silent --plain --no-ghc-package-path --parallel --stream --no-bail --no-prefix --no-sort --include-dependencies --include-dependents',
        ),
    ),
    **dict.fromkeys(
        ('honcho', 'foreman', 'volta', 'toolbox'),
        runner(
            'run',
            valued='-e --env -f --procfile -d --app-root --root --node --npm --pnpm --yarn -c --container --distro -r --release --preserve-fds --log-level',
            flags='--no-colour --no-prefix --no-pnpm --no-yarn --bundled-npm -q --quiet -v --verbose -y --assumeyes --log-podman',
        ),
    ),
    'cargo': runner('watch', operand='tool', code=('-s', '--shell')),
    'cargo-watch': runner(operand='tool', code=('-s', '--shell')),
    'tox': runner('exec', valued='-e -c', operand='tool'),
    'dotenvx': runner('run', valued='-f --env-file -e --env', operand='tool'),
    'env-cmd': runner(valued='-f --file -e --environments -r --rc-file', flags='--silent --verbose --no-override --fallback -x --expand-envs --recursive --use-shell'),
    'pm2': runner(
        'start',
        valued='-n --name -i --instances --interpreter -l --log -o --output -e --error --cwd --namespace --node-args --max-memory-restart --cron-restart --restart-delay --env',
        flags='-f --force -s --silent -m --mini-list --watch --no-daemon --no-autorestart --attach --time --merge-logs --wait-ready',
    ),
    'guix': runner('shell', 'environment', operand='tool', shells=('shell', 'environment')),
    **dict.fromkeys(('aws-vault', 'op', 'doppler', 'teller', 'infisical', 'chamber'), runner('exec', 'run', operand='tool', code=('--command',))),
    **dict.fromkeys(
        ('pixi', 'devbox'),
        runner(
            'run',
            valued='-e --env --environment --manifest-path -m -c --config --env-file --color --concurrent-downloads --concurrent-solves --pinning-strategy --auth-file --pypi-keyring-provider -w --workspace',
            flags='--frozen --locked --as-is --no-install --clean-env --executable -x --skip-deps --templated --force-activate --no-completions --no-lockfile-update --tls-no-verify --no-progress --pure --all-projects --omit-nix-env -q --quiet -v --verbose',
            nothing='-l --list',
            shells=('shell',),
        ),
    ),
    'nix': _nix,
    'nix-shell': runner(valued='-p -A -I', pairs='--arg --argstr --option', code=('--run', '--command'), operand='other', shells=('',)),
    **dict.fromkeys(
        ('mpirun', 'mpiexec', 'orterun'),
        runner(
            valued='-n -np -c -H -host --host -hosts -hostfile --hostfile -machinefile --machinefile -f -x --map-by -map-by --rank-by --bind-to -bind-to -N -npernode --npernode -ppn -wdir --wdir -path --path --prefix --output-filename --timeout -genvlist -envlist',
            flags='--oversubscribe --nooversubscribe --nolocal --allow-run-as-root --report-bindings --display-map --display-allocation --tag-output --timestamp-output --use-hwthread-cpus --bynode --byslot -l -prepend-rank -q --quiet -v --verbose -verbose',
            pairs='--mca -mca --gmca -gmca --prtemca --pmixmca -env -genv',
        ),
    ),
    'srun': runner(
        valued='-n --ntasks -N --nodes -c --cpus-per-task -p --partition -t --time -A --account -J --job-name -w --nodelist -o --output -e --error -i --input -D --chdir --mem -G --gpus --gres -q --qos -x --exclude -C --constraint -m --distribution -d --dependency --export -W --wait -M --clusters -r --relative -T --threads -B --extra-node-info --mpi --ntasks-per-node --gpus-per-node --gpus-per-task --mem-per-cpu --mem-per-gpu --cpu-freq --comment --reservation --jobid',
        flags='-l --label -v --verbose -Q --quiet -u --unbuffered -s --oversubscribe -O --overcommit -X --disable-status -Z --no-allocate --overlap --exact --pty -H --hold -E --preserve-env --exclusive --contiguous --multi-prog --spread-job --use-min-nodes --reboot',
    ),
    'cross-env': rest(settings=True),
    'bundle': runner('exec', valued='--gemfile', flags='--keep-file-descriptors --no-keep-file-descriptors --no-color --verbose -V'),
    **dict.fromkeys(
        ('conda', 'mamba', 'micromamba'),
        runner(
            'run',
            valued='-n --name -p --prefix --cwd -a --attach -r --root-prefix -e --env --label --rc-file --log-level --relocate-prefix',
            flags='-v --verbose -q --quiet -y --yes --dev --debug --debug-wrapper-scripts --no-capture-output --live-stream -d --detach --clean-env --no-rc --no-env --offline --json',
        ),
    ),
    **dict.fromkeys(('mise', 'rtx'), runner('exec', 'x', valued='-C --cd -E --env -j --jobs', code=('-c', '--command'), operand='tool')),
    'dotenv': runner('run', valued='-f --file -q --quote -e --export', flags='--override --no-override'),
}  # fmt: skip

_LOADER = re.compile(r'ld-(?:linux|musl|[\d.]+).*|ld(?:64)?\.so(?:\.\d+)?')
_LOAD = rest(
    '',
    'list verify library-path= inhibit-cache inhibit-rpath= preload= audit= argv0= glibc-hwcaps-prepend= glibc-hwcaps-mask=',
    nothing=('list', 'verify'),
)


def program(name: str) -> Runs | None:
    """What a program of this name runs, or `None` when it is not in the table."""
    known = PROGRAMS.get(name)
    if known is None and name.startswith('ld') and _LOADER.fullmatch(name):
        return _LOAD
    return known
