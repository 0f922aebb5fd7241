"""The rules of a policy, and the policy that asks each of them and takes the strictest answer."""

from __future__ import annotations

import enum
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from anyshell.errors import PolicyError
from anyshell.policy.calls import Call, Findings, Setting, Unresolved, find
from anyshell.policy.syntax import MAX_BYTES, NotUnderstood
from anyshell.policy.words import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from anyshell.policy.syntax import Span
    from anyshell.policy.words import Word

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
# Folders of the system: a path in one of them names the program that is listed by its name.
SYSTEM_FOLDERS = frozenset(
    ('/bin', '/usr/bin', '/sbin', '/usr/sbin', '/usr/local/bin', '/usr/local/sbin')
)

_LOADED = re.compile(
    r'PATH|LD_.*|DYLD_.*|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|BASH_FUNC_.*|BASH_LOADABLES_PATH|BASH_ALIASES|BASH_CMDS|'
    r'GIT_SSH|GIT_SSH_COMMAND|GIT_EXTERNAL_DIFF|GIT_EXEC_PATH|GIT_PROXY_COMMAND|.*_ASKPASS|EXECIGNORE'
)
_RUN_AS_CODE = frozenset((
    'PAGER', 'GIT_PAGER', 'MANPAGER', 'SYSTEMD_PAGER', 'EDITOR', 'VISUAL', 'GIT_EDITOR', 'GIT_SEQUENCE_EDITOR',
    'SUDO_EDITOR', 'SYSTEMD_EDITOR', 'FCEDIT', 'BROWSER', 'SHELL', 'LESSOPEN', 'LESSCLOSE', 'RSYNC_RSH', 'CVS_RSH',
))  # fmt: skip
# Options that stand before the sub-command, by program: `-x` is a flag, `-x=` takes a value, `-x#` takes the next word
# when that is a number. A `!` marks what no list of allowed commands passes over: it changes what runs, or where. An
# option that is not here may be a flag or take a value.
_OPTIONS = {
    'git': '-C= --git-dir= --work-tree= --namespace= --attr-source= -c=! --config-env=! --super-prefix=! -P --no-pager -p! '
    '--paginate! --no-optional-locks --no-replace-objects --no-lazy-fetch --no-advice --bare --literal-pathspecs '
    '--glob-pathspecs --noglob-pathspecs --icase-pathspecs',
    'docker': '-l= --log-level= -c= --context= -H=! --host=! --config=! --tlscacert=! --tlscert=! --tlskey=! -D --debug --tls! '
    '--tlsverify!',
    'kubectl': '-n= --namespace= --context= --cluster= --user= --cache-dir= -v= --v= --request-timeout= -s=! --server=! '
    '--kubeconfig=! --as=! --as-group=! --as-uid=! --token=! --certificate-authority=! --client-certificate=! '
    '--client-key=! --tls-server-name=! --match-server-version --warnings-as-errors --disable-compression '
    '--insecure-skip-tls-verify!',
    'helm': '-n= --namespace= --kube-context= --kubeconfig=! --debug',
    'npm': '--prefix= -C= -w= --workspace= --loglevel= --registry=! --userconfig=! --globalconfig=! --script-shell=! -s --silent '
    '-q --quiet -d -dd -ddd --verbose --json --offline --prefer-offline --no-color --no-audit --no-fund --no-progress '
    '--no-update-notifier --if-present --ignore-scripts -ws --workspaces',
    'pnpm': '-C= --dir= -F= --filter= -s --silent -r --recursive --workspace-root',
    'yarn': '--cwd= -s --silent --json --offline',
    'cargo': '-C= --color= --config=! -Z=! -q --quiet -v --verbose --offline --locked --frozen',
    'go': '-C=',
    'gh': '-R= --repo=',
    'uv': '--directory= --project= --cache-dir= --color= --config-file=! -q --quiet -v --verbose --offline --no-progress -n '
    '--no-cache --no-config --native-tls',
    'pip': '--retries= --timeout= --cache-dir= --python=! --log=! --proxy=! --cert=! --client-cert=! --trusted-host=! -q --quiet '
    '-v --verbose --no-color --no-input --isolated --require-virtualenv --no-cache-dir --disable-pip-version-check '
    '--no-python-version-warning',
    'aws': '--profile= --region= --output= --query= --color= --cli-read-timeout= --cli-connect-timeout= --cli-binary-format= '
    '--endpoint-url=! --ca-bundle=! --no-cli-pager --no-paginate --no-sign-request --no-cli-auto-prompt --debug '
    '--no-verify-ssl!',
    'gcloud': '--project= --account= --configuration= --format= --verbosity= --billing-project= --filter= --limit= --sort-by= '
    '--page-size= --impersonate-service-account=! --flags-file=! --access-token-file=! -q --quiet',
    'systemctl': '-t= --type= -p= --property= -P= -n= --lines= -o= --output= --state= -H=! --host=! -M=! --machine=! --root=! '
    '--no-pager --user --system -q --quiet --no-legend --plain -l --full -a --all -r --recursive --no-ask-password',
    'make': '-C= --directory= -f=! --file=! --makefile=! -I=! --include-dir=! -o=! -W=! -E=! --eval=! -j# -l# -k --keep-going -s '
    '--silent --quiet -n --dry-run --just-print -B --always-make -w --print-directory --no-print-directory -r -R '
    '--no-builtin-rules --no-builtin-variables',
}  # fmt: skip
_ALIASES = {'pip3': 'pip', 'gmake': 'make'}
# Programs that take those options behind the sub-command too, with the same meaning.
_EVERYWHERE = frozenset(('kubectl', 'helm', 'npm', 'gh', 'pip', 'aws', 'gcloud', 'systemctl'))
# Programs whose short options stand alone: `-Cx` is not `-C x`.
_APART = frozenset(('git', 'npm', 'pnpm', 'yarn', 'go'))
# Programs that take assignments between their options.
_ASSIGNED = frozenset(('make', 'gmake'))
_NUMBER = re.compile('[0-9]+')
_ASSIGNMENT = re.compile(r'[\w.-]+(?:[?+!]|::?:?)?=')


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

    `name` is the option that the rule comes from.
    """

    @property
    def name(self) -> str: ...

    def check(self, findings: Findings) -> Iterable[Verdict]:
        """Every objection to the line."""
        ...


def _listed(entries: Iterable[str]) -> str:
    names = [repr(entry) for entry in entries]
    if len(names) > 20:  # a sentence that a model still reads
        names = [*names[:20], f'{len(names) - 20} more']
    return ', '.join(names)


def _tokens(text: str) -> list[str]:
    """Words as `shlex.split` reads them, with operators of the shell apart."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=';&|<>()')
    lexer.whitespace_split = True
    lexer.commenters = ''
    return list(lexer)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a list: a program, or a program with the first of its arguments."""

    text: str
    program: str
    arguments: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, option: str) -> Entry:
        """Read an entry.

        Raises:
            PolicyError: When it can't match any command; the text names the option, the entry and what is allowed.
        """
        allowed = "an entry is a program such as 'git', or a program and its first arguments such as 'git push'"
        try:
            words = shlex.split(text)
        except ValueError:
            words = []
        program = words[0] if words else ''
        if (
            not program
            or program.startswith('-')
            or program.endswith('/')
            or not text.isprintable()
        ):
            raise PolicyError(f'{option} holds {text!r}: {allowed}')
        if program not in {'!', '[', '[['} and re.search(r'[;&|<>()$`\\*?{}\[\]~#]|\w=', program):
            raise PolicyError(
                f'{option} holds {text!r}, which is shell syntax or a pattern: {allowed}'
            )
        odd = any(re.fullmatch(r'[;&|<>()]+|\*', word) for word in words[1:])
        if odd or words != _tokens(text):
            raise PolicyError(
                f'{option} holds {text!r}, which is more than one command or a pattern: {allowed}'
            )
        return cls(text, program, tuple(words[1:]))

    def names(self, call: Call, *, exact: bool) -> bool:
        """Whether this entry names the program of a call.

        Args:
            call: The call.
            exact: Whether only the program itself counts, not another file of that name (for permissions).
        """
        if '/' in self.program:
            path = call.path
            if exact or path is None or '/' in path:
                return path == self.program
            return call.name == self.program.rsplit('/', 1)[-1]
        if call.name != self.program:
            return False
        if not exact or call.path == call.name:
            return True
        return call.path is not None and call.path.rpartition('/')[0] in SYSTEM_FOLDERS

    def matches(self, call: Call, *, exact: bool) -> bool | None:
        """Whether this entry matches a call; `None` when that depends on arguments that are not known."""
        if not self.names(call, exact=exact):
            return False
        if not self.arguments:
            return True
        if exact:
            return _begins(call.name, call.arguments, self.arguments)
        return _may_begin(call.name, call.arguments, self.arguments)


@dataclass(frozen=True, slots=True)
class _Option:
    """What is known of an option: whether it takes the next word, and whether it is passed over to allow."""

    takes: Literal['nothing', 'value', 'number']
    harmless: bool


_ATTACHED = _Option('nothing', harmless=False)


def _table(text: str) -> dict[str, _Option]:
    found: dict[str, _Option] = {}
    for item in text.split():
        name = item.rstrip('=#!')
        takes = 'value' if '=' in item else 'number' if '#' in item else 'nothing'
        found[name] = _Option(takes, harmless='!' not in item)
    return found


_TABLES = {name: _table(text) for name, text in _OPTIONS.items()}


def _option(program: str, text: str, *, first: bool) -> _Option | None:
    """What is known of an option of a program; `None` when it may be a flag or take the next word.

    Args:
        program: The program's name.
        text: The option as it is written, perhaps with its value or with other short options.
        first: Whether it stands before the sub-command.
    """
    if text == '--':
        return _ATTACHED
    program = _ALIASES.get(program, program)
    table = _TABLES.get(program, {}) if first or program in _EVERYWHERE else {}
    known = table.get(text)
    if known is not None:
        return known
    name, equals, _ = text.partition('=')
    if equals:
        known = table.get(name)
        return _Option('nothing', known.harmless) if known and known.takes == 'value' else _ATTACHED
    return None if text.startswith('--') or program in _APART else _bundle(table, text)


def _bundle(table: dict[str, _Option], text: str) -> _Option | None:
    """What is known of short options in one word, the last of which may have its value attached."""
    harmless = True
    for place, letter in enumerate(text[1:], 2):
        known = table.get(f'-{letter}')
        if known is None:
            return None
        harmless = harmless and known.harmless
        rest = text[place:]
        if known.takes == 'value' or (
            known.takes == 'number' and (not rest or _NUMBER.fullmatch(rest))
        ):
            return _Option('nothing' if rest else known.takes, harmless)
    return _Option('nothing', harmless)


def _begins(  # noqa: C901  # each kind of word is a case
    program: str, words: Sequence[Word], wanted: Sequence[str]
) -> bool | None:
    """Whether arguments begin with `wanted` for certain, after options that are known to be harmless."""
    index = 0
    for position, want in enumerate(wanted):
        while True:
            if index >= len(words):
                return False
            word = words[index]
            text = word.value
            if text is None:
                text = word.prefix()
                if not (word.one_field and text.startswith('-') and '=' in text):
                    return None
            elif text == want:
                break
            elif not text.startswith('-') or text == '-':
                if index or program != 'cargo' or not re.fullmatch(r'\+[\w.-]+', text):
                    return False
                index += 1
                continue
            option = _option(program, text, first=not position)
            if option is None or not option.harmless:
                return False
            index += 1
            if option.takes != 'nothing' and index < len(words):
                value = words[index]
                if option.takes == 'value' and (not value.one_field or _is_odd(value)):
                    return None
                index += option.takes == 'value' or _NUMBER.fullmatch(value.value or '') is not None
        index += 1
    return True


def _may_begin(program: str, words: Sequence[Word], wanted: Sequence[str]) -> bool | None:
    """Whether arguments may begin with `wanted`, whatever options stand before and between; `None` when one is unknown.

    An option that is not known may be a flag or take the next word: both are followed. A word that is neither an
    option nor the value of one, and is not the one that is wanted, ends the search.
    """
    unsure = False
    # How many of the wanted words stand before the word at hand, and before the next one, on each way to read the line.
    here, there = {0}, set[int]()
    for index, word in enumerate(words):
        after = set[int]()
        start = _start(word) if word.value is None else word.value
        following = words[index + 1] if index + 1 < len(words) else None
        for found in here:
            if word.value is None and wanted[found].startswith(start):
                unsure = True  # it may be the wanted word, or with nothing known of it anything
                continue
            if word.value == wanted[found]:
                if found + 1 == len(wanted):
                    return True
                there.add(found + 1)
            one, two = _passed(program, word, start, following, first=not index, before=not found)
            if one:
                there.add(found)
            if two:
                after.add(found)
            # More words than one may come out of these, and the wanted one be among them.
            unsure = unsure or ((one or two) and not word.one_field)
            unsure = unsure or (two and following is not None and not following.one_field)
        here, there = there, after
        if not here and not there:
            break
    return None if unsure else False


def _passed(
    program: str, word: Word, start: str, following: Word | None, *, first: bool, before: bool
) -> tuple[bool, bool]:
    """Whether a word may be passed over alone, and whether together with the one that follows."""
    if not start.startswith('-') or word.value == '-':
        toolchain = first and program == 'cargo' and start.startswith('+')
        assigned = program in _ASSIGNED and _ASSIGNMENT.match(start) is not None
        return toolchain or assigned, False
    option = None
    if word.value is not None or '=' in start:
        option = _option(program, start, first=before)
    if option is None or option.takes == 'number':
        return True, True
    if option.takes == 'value':
        return following is not None and _is_odd(following), True
    return True, following is not None and _is_truth(following)


def _start(word: Word) -> str:
    """The literal text that a word that is not known begins with."""
    text = ''
    for kind, part in word.parts:
        if kind not in {'u', 'q'}:
            break
        known = re.split(r'[*?\[{~]|[@+!]\(', part, maxsplit=1)[0] if kind == 'u' else part
        known = known.split(UNKNOWN)[0]
        text += known
        if known != part:
            break
    return text


def _is_odd(word: Word) -> bool:
    """Whether some programs don't take a word as an option's value since it looks like an option."""
    return (word.value or _start(word)).startswith('-')


def _is_truth(word: Word) -> bool:
    """Whether npm takes a word as the value of a flag."""
    return word.value in {'true', 'false', 'null', 'always'}


def _named(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Entries by the name of their program, so that a long line is not compared with each of a long list."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.program.rsplit('/', 1)[-1], []).append(entry)
    return found


def _entries(texts: Sequence[str], option: str) -> tuple[Entry, ...]:
    if isinstance(texts, str):
        raise PolicyError(
            f'{option} is the text {texts!r}: it must be a list of entries such as [{texts!r}]'
        )
    for text in texts:
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a policy file holds what its author wrote
            raise PolicyError(f'{option} holds {text!r}: an entry is a text such as {"git push"!r}')
    return tuple(Entry.parse(text, option) for text in texts)


def _excerpt(text: str) -> str:
    text = text.strip()
    return repr(
        text if len(text) <= 160 else f'{text[:120]} … {text[-30:]}'
    )  # as much as a sentence bears


class AskCommands:
    """Commands that run after a person's approval."""

    name = 'ask_commands'

    def __init__(self, entries: Sequence[str]) -> None:
        self.entries = _entries(entries, self.name)
        self._named = _named(self.entries)

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
    """

    name = 'denied_commands'

    def __init__(self, entries: Sequence[str], *, unless: AskCommands | None = None) -> None:
        self.entries = _entries(entries, self.name)
        self.unless = unless
        self._named = _named(self.entries)

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
        shell: The shell whose code the values of variables such as PAGER are.
    """

    name = 'allowed_commands'

    def __init__(
        self,
        entries: Sequence[str],
        *,
        asked: AskCommands | None = None,
        shell: Literal['bash', 'sh'] = 'bash',
    ) -> None:
        self.entries = _entries(entries, self.name)
        self.asked = asked
        self._named = _named(self.entries)
        self.shell: Literal['bash', 'sh'] = shell

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
        for setting in findings.settings:
            if not self._harmless(setting):
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

    def _harmless(self, setting: Setting) -> bool:
        if not setting.name or _LOADED.fullmatch(setting.name):
            return False
        if setting.name not in _RUN_AS_CODE:
            return True
        if setting.value is None:
            return False
        if setting.value.value == 'cat':
            return True  # the usual way to switch a pager off
        try:
            found = find(setting.value.code, shell=self.shell)
        except NotUnderstood:
            return False
        return not found.unresolved and all(self.allows(call) for call in found.calls)


class DeniedOperators:
    """Tokens of the shell's grammar that are refused; never text in quotes, tests or arithmetic."""

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
            rules.append(AllowedCommands(allowed_commands, asked=ask, shell=shell))
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
            findings = find(command, shell=self.shell, stdin=stdin)
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
