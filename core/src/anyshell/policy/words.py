"""Words of a command line: what is known of their value before the line runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anyshell.policy.syntax import Sequence as Commands

# What a part of a word is. The lower-case kinds stand outside quotes, where their value is split and globbed.
#   u q  literal text       v V  one plain parameter, `$name`     x X  any other expansion, with the text in its `${…}`
#   n    one number for certain: `$((…))`, `$#`, `$$`, `$?`       m    like X, but may become several words: "$@"
#   p    process substitution
Kind = Literal['u', 'q', 'v', 'V', 'x', 'X', 'n', 'm', 'p']
Part = tuple[Kind, str]

# Text pasted into code whose value is not known: the reader treats it as a character of a word.
UNKNOWN = '\uf8ff'
# What runs commands where a text is expanded once more.
QUOTED_CODE = re.compile(r'\$\(|`|@P\}|\$\{[\s|]')

_GLOB = re.compile(r'[*?]|[@+!]\(')
_PATTERN = re.compile(r'[*?{\[]')
# What a `${…}` may put in the place of its variable, behind a subscript: a default, or what replaces a pattern.
_GIVEN = re.compile(r'(?:\[.*?\])?(?::?[-=+]|//?+[^/]*+/)(.*)', re.DOTALL)
_PARAMETER = re.compile(r'\$\{?[!#]?(\d+|\w+|[@*])')
# A default is part of it, unless that could be an option.
_QUOTED_VARIABLE = re.compile(
    r'"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*(?::?[-=][\w./][\w./:%-]*)?\})[\w./:%@+,-]*"'
)
_PLAIN = re.compile(r'[\w./:@%+=,^#!-]*')
_SEQUENCE = re.compile(r'(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.(-?\d{1,9}))?')
_ARITHMETIC = re.compile(rf'[\w{UNKNOWN}]+|\+\+|--|<<=|>>=|[-+*/%&|^=!<>]=|\S')
_COMPARISONS = frozenset(('==', '!=', '<=', '>='))
# The same in quotes, as one word.
_QUOTED: dict[Kind, Kind] = {'v': 'V', 'x': 'X', 'm': 'X'}
# Stands for a part of a word while its braces are expanded.
_PLACE = re.compile('([\U000f0000-\U000fffff])')
_MAX_FIELDS = 4096
_MAX_BRACES = 40


@dataclass(slots=True, eq=False)
class Substitution:
    """A command that the shell runs while it expands a word: `$(…)`, back-ticks, `<(…)` or `>(…)`."""

    operator: str
    commands: Commands
    span: tuple[int, int]


@dataclass(slots=True, eq=False)
class Word:
    """One word of a command line with its place in the text."""

    raw: str
    parts: Sequence[Part]
    span: tuple[int, int]
    substitutions: Sequence[Substitution] = ()
    _value: str | None = field(default=None, repr=False)
    _known: bool | None = field(default=None, repr=False)
    # The words of the array that the word assigns.
    elements: Sequence[Word] = ()

    @property
    def value(self) -> str | None:
        """The word after quote removal, or `None` when it is not known before the line runs."""
        if self._known is None:
            self._known = self._find_value()
        return self._value if self._known else None

    def _find_value(self) -> bool:
        parts = self.parts
        if len(parts) == 1 and parts[0][0] == 'u' and _PLAIN.fullmatch(parts[0][1]):
            self._value = parts[0][1]
            return True
        text = ''
        for kind, part in parts:
            if kind not in {'u', 'q'}:
                return False
            text += part
        self._value = text
        return not (UNKNOWN in text or self.globs or self.tilde or self.braces)

    @property
    def literal(self) -> str:
        """The text whose value is known, with expansions left out."""
        return ''.join(text for kind, text in self.parts if kind in 'uq')

    @property
    def evaluated(self) -> str:
        """The text that the word may hold: its literal text, and that in its expansions."""
        return evaluated(self.parts)

    @property
    def globs(self) -> bool:
        """Whether the shell may replace the word by names of files."""
        marked = ''.join(text if kind == 'u' else '\0' for kind, text in self.parts)
        return _GLOB.search(marked) is not None or 0 <= marked.find('[') < marked.rfind(']')

    @property
    def tilde(self) -> bool:
        """Whether the word begins with a home directory."""
        return bool(self.parts) and self.parts[0][0] == 'u' and self.parts[0][1].startswith('~')

    @property
    def braces(self) -> bool:
        """Whether the shell may expand braces in the word."""
        if not any(kind == 'u' and '{' in text for kind, text in self.parts):
            return False
        marked = ''.join(text if kind == 'u' else '\0' for kind, text in self.parts)
        first, last = marked.index('{'), marked.rfind('}')
        return marked.find(',', first, last) > 0 or marked.find('..', first, last) > 0

    @property
    def one_field(self) -> bool:
        """Whether the word becomes exactly one argument, whatever the values of its expansions."""
        if self.value is not None:
            return True
        for kind, text in self.parts:
            if kind in 'vxm' or (kind == 'u' and UNKNOWN in text):
                return False
        return not (self.globs or self.braces)

    @property
    def code(self) -> str:
        """The word as text of a program, with `UNKNOWN` for what is not known."""
        return ''.join(
            text if kind in 'uq' else f'/dev/fd/{UNKNOWN}' if kind == 'p' else UNKNOWN
            for kind, text in self.parts
        )

    @property
    def reads_process(self) -> bool:
        """Whether the word names the output of a process substitution."""
        return any(kind == 'p' for kind, _ in self.parts)

    def prefix(self) -> str:
        """The literal text before the first expansion."""
        text = ''
        for kind, part in self.parts:
            if kind not in 'uq' or UNKNOWN in part:
                return text + (part.split(UNKNOWN)[0] if kind in 'uq' else '')
            text += part
        return text

    @property
    def last_part(self) -> str | None:
        """The last part of a path whose folder is an expansion, as in `"$VENV/bin/python"`; `None` if not known."""
        text = ''
        for kind, part in self.parts:
            if kind == 'q':
                text += part
            elif kind == 'u' and not text and part.startswith('~'):
                text = '\1' + _PATTERN.sub('\0', part[1:])
            elif kind == 'u':
                text += _PATTERN.sub('\0', part)
            elif kind in 'VXn' or (kind == 'v' and not text):
                text += '\1'
            else:
                return None
        _, slash, name = text.rpartition('/')
        if not slash or not name or '\0' in text or '\1' in name or UNKNOWN in text:
            return None
        return name

    @property
    def stands_alone(self) -> bool:
        """Whether the word is one argument that begins with a quoted variable, or with a number that is worked out."""
        first = next((kind for kind, text in self.parts if text or kind not in {'u', 'q'}), '')
        if first == 'n':
            return self.one_field
        return _QUOTED_VARIABLE.fullmatch(self.raw) is not None

    @property
    def parameters(self) -> set[str]:
        """The names of the variables that the word is made of; '@' for the arguments."""
        names = {text for kind, text in self.parts if kind in 'vV'}
        if any(kind in 'xXm' for kind, _ in self.parts) and not self.substitutions:
            names.update(_PARAMETER.findall(self.raw))
        return {'@' if name.isdigit() or name == '*' else name for name in names}

    def without(self, count: int) -> Word:
        """The word without its first `count` literal characters."""
        parts: list[Part] = []
        for kind, text in self.parts:
            if count and kind in 'uq':
                cut = min(count, len(text))
                count -= cut
                text = text[cut:]  # noqa: PLW2901  # the rest of this part
            if text or kind == 'q' or kind not in 'uq':
                parts.append((kind, text))
        return Word(self.raw, parts, self.span, self.substitutions, elements=self.elements)

    def as_one_field(self) -> Word:
        """The word with its plain parameters taken as quoted."""
        parts: list[Part] = [
            ('V', text) if kind == 'v' else (kind, text) for kind, text in self.parts
        ]
        return Word(self.raw, parts, self.span, self.substitutions)

    def replaced(self, mark: str) -> Word:
        """The word with each `mark` in its literal text replaced by something unknown, as xargs and find do."""
        if not mark or mark not in self.literal:
            return self
        parts: list[Part] = [('q', '')]
        for kind, text in self.parts:
            if kind in 'uq':
                parts.append(('q', parts.pop()[1] + text))
            elif len(parts) == 1 and not parts[0][1]:
                parts = [('q', UNKNOWN)]  # it begins with what is not known, whatever that is
            else:
                parts.append((_QUOTED.get(kind, kind), text))
                parts.append(('q', ''))
        marked: list[Part] = [
            (kind, text.replace(mark, UNKNOWN) if kind == 'q' else text) for kind, text in parts
        ]
        return Word(self.raw, marked, self.span, self.substitutions)


def evaluated(parts: Sequence[Part]) -> str:
    """The text that may be expanded once more: what is literal, also as the default of a `${…}`."""
    texts: list[str] = []
    for part in parts:
        text = given(part)
        texts.append(part[1] if text is None and part[0] in 'uqxXm' else text or '')
    return ''.join(texts)


def given(part: Part) -> str | None:
    """The text that an expansion may put in the place of its variable by itself."""
    kind, text = part
    match = _GIVEN.fullmatch(text) if kind in 'xXm' else None
    return match[1] if match else None


def arithmetic_names(parts: Sequence[Part]) -> list[str]:
    """The variables that a text sets when it is evaluated as arithmetic; '' for one whose name is not known."""
    text = ''.join(map(_arithmetic, parts))
    names: list[str] = []
    outer: list[str | None] = []
    last: str | None = None
    before = False
    for piece in _ARITHMETIC.findall(text):
        if piece[0] == UNKNOWN or piece[0].isalnum() or piece[0] == '_':
            last = '' if UNKNOWN in piece else None if piece[0].isdigit() else piece
            if before and last is not None:
                names.append(last)
            before = False
        elif piece == '[':
            outer.append(last)
            last = None
        elif piece == ']':
            last = outer.pop() if outer else None
        elif piece in {'++', '--'}:
            if last is not None:
                names.append(last)
            before, last = True, None
        else:
            if piece[-1] == '=' and piece not in _COMPARISONS and last is not None:
                names.append(last)
            before, last = False, None
    return names


def _arithmetic(part: Part) -> str:
    kind, text = part
    if kind in 'xXm' and text:
        return f'{UNKNOWN};{text};{UNKNOWN}'  # nothing is joined to what stands in an expansion
    return text if kind in 'uq' else '0' if kind == 'n' else UNKNOWN


def plain_word(text: str, span: tuple[int, int]) -> Word:
    """A word of plain text, without anything in it that a shell would change."""
    return Word(text, (('u', text),), span, (), text, _known=True)


def static(text: str, span: tuple[int, int], raw: str | None = None) -> Word:
    """A word whose value is `text`."""
    return Word(text if raw is None else raw, (('q', text),), span)


def unknown(span: tuple[int, int], raw: str = '') -> Word:
    """A word of which nothing is known, not even whether it is one word."""
    return Word(raw, (('x', ''),), span)


def fields(word: Word) -> tuple[list[Word], int]:
    """A word with braces after their expansion, and how many words that made.

    A word that expands too far is one unknown word. One that is empty without quotes vanishes: `{,rm}` is `rm`.
    """
    # Everything that is not unquoted text becomes one character, so that braces are found by plain string work.
    text = ''
    for index, (kind, part) in enumerate(word.parts):
        text += part if kind == 'u' else chr(0xF0000 + index)
    plain = all(kind == 'u' for kind, _ in word.parts)
    # The line itself may hold such a character.
    taken = not plain and any(kind == 'u' and _PLACE.search(part) for kind, part in word.parts)
    if (
        taken
        or text.count('{') > _MAX_BRACES
        or len(text) > _MAX_FIELDS
        or len(word.parts) > _MAX_FIELDS
    ):
        return [unknown(word.span, word.raw)], 1
    try:
        texts = list(_expand(text, [0]))
    except OverflowError:
        return [unknown(word.span, word.raw)], _MAX_FIELDS
    return [
        Word(
            word.raw,
            (('u', text),) if plain else _decode(text, word.parts),
            word.span,
            word.substitutions,
        )
        for text in texts
        if text
    ], len(texts)


def _decode(text: str, parts: Sequence[Part]) -> list[Part]:
    decoded: list[Part] = []
    for piece in _PLACE.split(text):
        if _PLACE.match(piece):
            decoded.append(parts[ord(piece[0]) - 0xF0000])
        elif piece:
            decoded.append(('u', piece))
    return decoded


def _expand(text: str, count: list[int]) -> Iterator[str]:
    start = 0
    while (start := text.find('{', start)) >= 0:
        if found := _alternatives(text, start):
            end, choices = found
            tails = list(_expand(text[end + 1 :], count))
            for choice in choices:
                inner = _expand(choice, count) if '{' in choice else (choice,)
                for middle in inner:
                    for tail in tails:
                        count[0] += 1
                        if count[0] > _MAX_FIELDS:
                            raise OverflowError
                        yield text[:start] + middle + tail
            return
        start += 1
    yield text


def _alternatives(text: str, start: int) -> tuple[int, list[str]] | None:
    depth, pieces, begin = 0, list[str](), start + 1
    for index in range(start + 1, min(len(text), start + 4096)):
        char = text[index]
        if char == '{':
            depth += 1
        elif char == '}' and depth:
            depth -= 1
        elif char == '}':
            pieces.append(text[begin:index])
            if len(pieces) > 1:
                return index, pieces
            sequence = _sequence(pieces[0])
            if sequence is not None:
                return index, sequence
            # `{a}` is text, but a `}` further on may still close a list: `{a},b}` is one in bash.
            pieces.pop()
        elif char == ',' and not depth:
            pieces.append(text[begin:index])
            begin = index + 1
    return None


def _sequence(text: str) -> list[str] | None:
    match = _SEQUENCE.fullmatch(text)
    if match is None:
        return None
    first, last = match[1], match[2]
    if first.isalpha() != last.isalpha():
        return None
    low, high = (ord(first), ord(last)) if first.isalpha() else (int(first), int(last))
    step = abs(int(match[3] or 1)) or 1
    if abs(high - low) // step > _MAX_FIELDS:
        raise OverflowError
    numbers = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    return [chr(n) if first.isalpha() else str(n) for n in numbers]


_ESCAPES = {
    'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11, '\\': 92, "'": 39, '"': 34, '?': 63,
}  # fmt: skip
_ESCAPE = re.compile(
    r'\\(?:x\{([0-9A-Fa-f]*)\}?|x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(\\\\|.)|(.))',
    re.DOTALL,
)


def ansi_c(text: str) -> str:
    r"""What bash makes of the text of `$'…'`; the text ends at a NUL, as it does there."""
    if '\\' not in text:
        return text
    out, at = bytearray(), 0
    for match in _ESCAPE.finditer(text):
        out += text[at : match.start()].encode('utf-8', 'surrogatepass')
        at = match.end()
        braced, hexa, octal, short, long, control, other = match.groups()
        if other is not None:
            out += bytes((_ESCAPES[other],)) if other in _ESCAPES else b'\\' + other.encode()
        elif control == UNKNOWN:
            out += control.encode()
        else:
            if short or long:
                code = int(short or long, 16)
                made = chr(code if code < 0x110000 else 0xFFFD).encode('utf-8', 'replace')
            elif control:
                first, *others = control[-1].encode('utf-8', 'surrogatepass')
                made = bytes((0x7F if control == '?' else first & 0x1F, *others))
            else:
                code = int(octal, 8) if octal else int(braced or hexa or '0', 16)
                made = bytes((code & 0xFF,))
            if not made[0]:
                return out.decode('utf-8', 'replace')
            out += made
    out += text[at:].encode('utf-8', 'surrogatepass')
    return out.decode('utf-8', 'replace')
