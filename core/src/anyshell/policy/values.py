"""What a line gives its variables: values that may become several words, or begin with a dash."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from anyshell.policy.syntax import MAX_BYTES, AndOr, Plain, Simple
from anyshell.policy.words import Word, given

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from anyshell.policy.words import Part

_COMMANDS = re.compile(r'[;&|\n`(]')
# How many characters all texts in the place of variables may have.
_MAX_MADE = 4 * MAX_BYTES
# How many of them one assignment may hand on.
_MAX_COMPOSED = 32
_ACTION = re.compile(r'-(?:exec|ok)(?:dir)?(?!\S)')
_TELLS_ACTION = re.compile(
    r'["\']-(?:exec|ok)(?:dir)?\s|\b(?:echo|printf)\b[^|;&\n]{0,200}\s-(?:exec|ok)(?:dir)?\s'
)
_STDIN = re.compile(r'stdin|/fd/|\A-\Z')
_BLANK = re.compile(r'\s')
# The same, and what may stand for one in an expansion: an escape, or the value of another variable.
_MAY_BE_BLANK = re.compile(r"\s|\$'|\$\{!")
_DASH_BY_DEFAULT = re.compile(r'\$\{\w+(?::?[-=+]|/[^}]*/)["\']?-')
# What these print is a path, which begins with a slash or is what the line says.
_PRINT_PATHS = re.compile(
    r'(?:pwd|realpath|readlink|dirname|mktemp|which|command -v|git rev-parse|brew --prefix|poetry env|npm (?:root|bin|prefix)|go env)(?: |$)'
)


class Marked:
    """Variables whose values have something in common, and those that take their value from them."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.missed: set[str] = set()
        self._followers: dict[str, set[str]] = {}

    def add(self, name: str) -> None:
        """Mark a variable, and all that follow it."""
        fresh = [name]
        while fresh:
            name = fresh.pop()
            if name not in self.names:
                self.names.add(name)
                fresh += self._followers.get(name, ())

    def follow(self, name: str, source: str) -> None:
        """Mark `name` as soon as `source` is marked."""
        if source in self.names:
            self.add(name)
        else:
            self._followers.setdefault(source, set()).add(name)

    def holds(self, names: set[str]) -> bool:
        """Whether one of the names is marked; what is not may be later."""
        self.missed |= names - self.names
        return not names.isdisjoint(self.names)


class Values:
    """What is known of the values that a line gives its variables; '@' stands for the arguments.

    Args:
        text: The line.
        redefined: The names of functions and aliases of the line.
    """

    def __init__(self, text: str, *redefined: Container[str]) -> None:
        self.blank = Marked()
        self.dashed = Marked()
        self.unsure = Marked()
        # What find may take for an -exec.
        self.actions = Marked()
        # Whether the line quotes or prints an -exec, so that what it reads may be one.
        self.tells_actions = _TELLS_ACTION.search(text) is not None
        # The texts that each variable may have, and the variables of which one holds more than one command.
        self.texts: dict[str, dict[str, None]] = {}
        self.pasted = Marked()
        # What may name the standard input.
        self.inputs = Marked()
        self.redefined = redefined
        # Whether a text may be put together with `+=`, and how many characters the texts in their places make so far.
        self._appends = '+=' in text
        self._made = 0
        # Whether code with variables in it was looked at, one took its text from another, and one got another text.
        self._asked = self._composes = self._grown = False
        # What was learned from plain text is not learned twice.
        self._learned: set[tuple[str, str]] = set()

    @property
    def late(self) -> bool:
        """Whether a variable was marked after it was asked about, as where a function is called behind its body."""
        marks = (self.blank, self.dashed, self.unsure, self.inputs, self.actions, self.pasted)
        put_together = self._asked and self._composes and bool(self.pasted.names)
        return (put_together and self._grown) or any(
            not mark.missed.isdisjoint(mark.names) for mark in marks
        )

    def walk_again(self) -> None:
        """Forget what was asked in a walk over the line, and keep what it gives its variables."""
        self._grown = False
        self._learned.clear()
        for mark in (self.blank, self.dashed, self.unsure, self.inputs, self.actions, self.pasted):
            mark.missed.clear()

    @property
    def full(self) -> bool:
        """Whether there were more texts in the place of variables than can be looked at."""
        return self._made > _MAX_MADE

    def overflows(self, word: Word) -> bool:
        """Whether code has more texts in the place of its variables than can be looked at."""
        return self.full and self.pasted.holds(word.parameters)

    def learn(self, name: str, value: Word | None) -> None:
        """Note that the line gives a variable a value; `None` when that is not known."""
        if value is None:
            self._learn_unknown(name)
            return
        if value.value is not None:
            known = len(self._learned)
            self._learned.add((name, value.value))
            if len(self._learned) == known:
                return
        self._learn_text(name, value)
        printed = self._paths(value)
        if printed is None:
            self._learn_unknown(name)
            return
        expands = any(kind in 'xXm' for kind, _ in value.parts) and not value.substitutions
        if _BLANK.search(value.literal) or (expands and _MAY_BE_BLANK.search(value.raw)):
            self.blank.add(name)
        for source in value.parameters | printed:
            self.blank.follow(name, source)
            self.inputs.follow(name, source)
            self.actions.follow(name, source)
        dash, sources, unsure = self.leading(value)
        if dash:
            # Arguments are those of any call, so that an option among them says little.
            apart = name == '@' and not _BLANK.search(value.literal)
            (self.unsure if apart else self.dashed).add(name)
        if unsure:
            self.unsure.add(name)
        for source in sources:
            self.dashed.follow(name, source)
            self.unsure.follow(name, source)

    def learn_all(self, name: str, values: Sequence[Word | None]) -> None:
        """Note that the line gives a variable several values, which may also stand together in one text."""
        for value in values:
            self.learn(name, value)
        words = [value for value in values if value is not None]
        if len(words) > 1 and any(_COMMANDS.search(word.literal) for word in words):
            parts: list[Part] = []
            for word in words:
                parts.extend(word.parts)
                parts.append(('q', ' '))
            self.learn(name, Word(words[0].raw, parts, words[0].span))

    def _learn_unknown(self, name: str) -> None:
        self.blank.add(name)
        self.unsure.add(name)
        if self.tells_actions:
            self.actions.add(name)

    def _learn_text(self, name: str, value: Word) -> None:
        literal = value.literal
        if _ACTION.search(literal):
            self.actions.add(name)
        if _STDIN.search(literal):
            self.inputs.add(name)
        self._composes = self._composes or bool(value.parameters)
        composed = islice(self._filled(value), _MAX_COMPOSED + 1)
        found = [filled.literal for filled in composed] or [literal]
        if len(found) > _MAX_COMPOSED:
            self._made = _MAX_MADE + 1  # what is left out counts as more than can be looked at
        if value.value is not None or found[0]:
            texts = self.texts.setdefault(name, {})
            known = len(texts)
            texts.update(dict.fromkeys(found))
            self._grown = self._grown or len(texts) > known
        if any(_COMMANDS.search(text) or _ACTION.search(text) for text in found):
            self.pasted.add(name)
        for source in value.parameters:
            self.pasted.follow(name, source)

    def known(self, word: Word) -> list[str]:
        """The texts that the line gives the variables of a word, in their place."""
        return [filled.literal for filled in self._filled(word)]

    def filled(self, word: Word) -> Iterator[Word]:
        """The word as code, with their texts in the place of its variables, where one of them holds commands."""
        self._asked = True
        pasted = any(_COMMANDS.search(given(part) or '') for part in word.parts)
        if pasted or self.pasted.holds(word.parameters):
            yield from self._filled(word)

    def _filled(self, word: Word) -> Iterator[Word]:
        if self.full:
            return
        choices = [self._choices(part, word) for part in word.parts]
        self._made += sum(map(len, choices))  # to look at them takes time too
        for index in range(max(map(len, choices), default=0)):
            parts: list[Part] = [
                ('q', texts[min(index, len(texts) - 1)]) if texts else part
                for part, texts in zip(word.parts, choices, strict=True)
            ]
            self._made += sum(len(text) for _, text in parts)
            if self.full:
                return
            yield Word(word.raw, parts, word.span)

    def _choices(self, part: Part, word: Word) -> list[str]:
        kind, name = part
        if kind not in 'vVxXm':
            return []
        names = {name} if kind in 'vV' else word.parameters
        texts = [text for name in sorted(names) for text in self.texts.get(name, ())]
        text = given(part)
        texts += [] if text is None else [text]
        return [*texts, ''.join(texts)] if self._appends and texts else texts

    def leading(self, word: Word) -> tuple[bool, set[str], bool]:
        """Whether a word begins with a dash, from which variables that may come, and whether that is not known."""
        names: set[str] = set()
        for kind, text in word.parts:
            if kind == 'n':
                return False, names, False
            if kind in 'uq':
                if text:
                    braces = kind == 'u' and '{' in text and '-' in text and word.braces
                    return text.startswith('-'), names, braces
            elif kind in 'vV':
                names.add(text)
            else:
                if word.substitutions:
                    printed = self._paths(word)
                    return False, names | (printed or set()), printed is None
                names |= word.parameters
                return _DASH_BY_DEFAULT.search(word.raw) is not None, names, not names
        return False, names, False

    def _paths(self, word: Word) -> set[str] | None:
        """The variables that paths come from which are all that the commands in a word print, or `None`."""
        names: set[str] = set()
        for found in word.substitutions:
            commands = [
                command
                for item in found.commands
                for command in (item.pipelines if isinstance(item, AndOr) else (item,))
            ]
            for index, command in enumerate(commands, 1):
                if not isinstance(command, Plain | Simple):
                    return None
                words = command.words
                text = ' '.join(word.value or '$' for word in words)
                last = index == len(commands)
                if (
                    not (_PRINT_PATHS.match(text) if last else text.startswith('cd '))
                    or any(text.partition(' ')[0] in names for names in self.redefined)
                    or any(part.value == '--' or _BLANK.search(part.literal) for part in words)
                ):
                    return None
                for part in words if last else ():
                    inner = self._paths(part)
                    if inner is None:
                        return None
                    names |= part.parameters | inner
        return names
