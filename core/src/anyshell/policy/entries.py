"""An entry of a list of commands, such as `git push`: how it is read, and which commands it matches.

An option may stand before the words that are looked for, and take the next one: what is known of the options of some
programs stands here, too.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from anyshell.errors import PolicyError
from anyshell.policy.words import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from anyshell.policy.calls import Call
    from anyshell.policy.words import Word

# Folders of the system: a path in one of them names the program that is listed by its name.
_SYSTEM_FOLDERS = frozenset(
    ('/bin', '/usr/bin', '/sbin', '/usr/sbin', '/usr/local/bin', '/usr/local/sbin')
)

# Options that stand before the sub-command, by program or by program and sub-command: `-x` is a flag, `-x=` takes a value, `-x#` takes the next word
# when that is a number. A `!` marks what no list of allowed commands passes over: it changes what runs, or where. An
# option that is not here may be a flag or take a value.
_OPTIONS = {
    'git': '-C= --git-dir= --work-tree= --namespace= --attr-source= -c=! --config-env=! --super-prefix=! -P --no-pager -p! '
    '--paginate! --no-optional-locks --no-replace-objects --no-lazy-fetch --no-advice --bare --literal-pathspecs '
    '--glob-pathspecs --noglob-pathspecs --icase-pathspecs',
    'docker': '-l= --log-level= -c= --context= -H=! --host=! --config=! --tlscacert=! --tlscert=! --tlskey=! -D --debug --tls! '
    '--tlsverify!',
    'docker compose': '-p= --project-name= --project-directory= --profile= --ansi= --progress= --parallel= -f=! --file=! --env-file=! '
    '--compatibility --dry-run --all-resources',
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
    'python': '-W= -X= --check-hash-based-pycs= -c=! -m=! -i! -u -b -B -d -E -I -O -P -q -s -S -v',
    'terraform': '-chdir=',
    'mvn': '-T= --threads= -pl= --projects= -l=! --log-file=! -P=! --activate-profiles=! -f=! --file=! -s=! --settings=! -gs=! '
    '--global-settings=! -t=! --toolchains=! -D=! --define=! -q --quiet -B --batch-mode -e --errors -X --debug -o --offline -U '
    '--update-snapshots -nsu --no-snapshot-updates -ntp --no-transfer-progress -V --show-version -N --non-recursive -am '
    '--also-make -amd --also-make-dependents -ff --fail-fast -fae --fail-at-end -fn --fail-never -C --strict-checksums -c '
    '--lax-checksums',
    'gradle': '-p= --project-dir= --console= --max-workers= --priority= --warning-mode= --project-cache-dir= -x= --exclude-task= '
    '-D=! -P=! -I=! --init-script=! -b=! --build-file=! -c=! --settings-file=! --include-build=! -g=! --gradle-user-home=! -q '
    '--quiet -i --info -w --warn -d --debug -s --stacktrace -S --full-stacktrace -m --dry-run -t --continuous -a '
    '--no-rebuild --daemon --no-daemon --offline --parallel --no-parallel --build-cache --no-build-cache --configuration-cache '
    '--no-configuration-cache --configure-on-demand --no-configure-on-demand --continue --no-continue --rerun-tasks '
    '--refresh-dependencies --profile --scan --no-scan --watch-fs --no-watch-fs',
    'poetry': '-C= --directory= -P= --project= -q --quiet -v -vv -vvv --verbose -n --no-interaction --ansi --no-ansi --no-plugins '
    '--no-cache',
    'ruff': '--color= --config=! -q --quiet -s --silent -v --verbose --isolated',
    'apt-get': '-t= --target-release= --default-release= -a= --host-architecture= -o=! --option=! -c=! --config-file=! -y --yes '
    '--assume-yes --assume-no -q -qq --quiet -d --download-only -f --fix-broken -m --ignore-missing --fix-missing -s --simulate '
    '--dry-run --just-print --no-act --reinstall --no-install-recommends --install-recommends --no-install-suggests '
    '--install-suggests --no-remove --no-upgrade --only-upgrade -V --verbose-versions -u --show-upgraded --purge '
    '--auto-remove --autoremove --no-download --allow-downgrades! --allow-unauthenticated! --allow-remove-essential! --force-yes!',
}  # fmt: skip
_ALIASES = {
    'pip3': 'pip', 'gmake': 'make', 'docker-compose': 'docker compose', 'tofu': 'terraform', 'mvnw': 'mvn', 'gradlew': 'gradle', 'apt': 'apt-get',
    **dict.fromkeys(('python3', *(f'python3.{minor}' for minor in range(8, 16))), 'python'),
}  # fmt: skip
# Programs that take those options behind the sub-command too, with the same meaning.
_EVERYWHERE = frozenset(
    ('kubectl', 'helm', 'npm', 'gh', 'pip', 'aws', 'gcloud', 'systemctl', 'apt-get')
)
# Programs whose short options stand alone: `-Cx` is not `-C x`.
_APART = frozenset(('git', 'npm', 'pnpm', 'yarn', 'go', 'terraform'))
# Programs that take assignments between their options.
_ASSIGNED = frozenset(('make', 'gmake'))
# Programs whose first operand ends their options, and those whose long options have one dash.
_OPERAND_ENDS = frozenset((
    'sh', 'bash', 'dash', 'ash', 'ksh', 'zsh', 'fish', 'python', *(name for name in _ALIASES if name.startswith('python')), 'node', 'nodejs',
    'deno', 'bun', 'perl', 'ruby', 'php', 'lua', 'java', 'env', 'sudo', 'doas', 'xargs', 'nohup', 'nice', 'timeout', 'strace', 'ssh',
))  # fmt: skip
_WHOLE = frozenset(('find', 'java', 'go', 'terraform', 'tofu', 'ffmpeg', 'openssl', 'gcc', 'g++', 'clang', 'cc', 'convert', 'magick'))  # fmt: skip
# Short options in one word.
_BUNDLE = re.compile('-[A-Za-z0-9]+')
_NUMBER = re.compile('[0-9]+')
_ASSIGNMENT = re.compile(r'[\w.-]+(?:[?+!]|::?:?)?=')
_BRACKET = re.compile(r'\[|[@+!]\(')
_MAY_ASSIGN = re.compile(rf'{_ASSIGNMENT.pattern}|[\w.-]*(?:[?+!]|::?:?)?\Z')


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
            if exact:
                return path == self.program
            if path is not None and '/' in path:
                return _plain_path(path) == _plain_path(self.program)
            return call.name == self.program.rsplit('/', 1)[-1]
        if call.name != self.program:
            return False
        if not exact or call.path == call.name:
            return True
        return call.path is not None and call.path.rpartition('/')[0] in _SYSTEM_FOLDERS

    def matches(self, call: Call, *, exact: bool) -> bool | None:
        """Whether this entry matches a call; `None` when that depends on arguments that are not known."""
        if not self.names(call, exact=exact):
            return False
        if not self.arguments:
            return True
        if exact:
            return _begins(call.name, call.arguments, self.arguments)
        found = _may_begin(call.name, call.arguments, self.arguments)
        return _has_options(call.name, call.arguments, self.arguments) or found


def _plain_path(path: str) -> str:
    """A path without what doesn't change where it leads, as far as it tells: a link in front of a `..` would."""
    return re.sub('^//+', '/', posixpath.normpath(path))


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


def _option(program: str, text: str, *, before: Sequence[str]) -> _Option | None:
    """What is known of an option of a program; `None` when it may be a flag or take the next word.

    Args:
        program: The program's name.
        text: The option as it is written, perhaps with its value or with other short options.
        before: The words of the entry that stand before it, such as a sub-command.
    """
    if text == '--':
        return _ATTACHED
    program = _ALIASES.get(program, program)
    table = _TABLES.get(' '.join((program, *before)), {})
    if program in _EVERYWHERE:
        table = _TABLES[program]
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
            option = _option(program, text, before=wanted[:position])
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


def _may_begin(  # noqa: C901, PLR0912  # each kind of word is a case
    program: str, words: Sequence[Word], wanted: Sequence[str]
) -> bool | None:
    """Whether arguments may begin with `wanted`, whatever options stand before and between; `None` when one is unknown.

    An option that is not known may be a flag or take the next word: both are followed. A word that is neither an
    option nor the value of one, and is not the one that is wanted, ends the search. So does a word that is not known,
    or it is the wanted one, or an option, as far as what is known of it says.
    """
    unsure = False
    # How many of the wanted words stand before the word at hand, and before the next one, on each way to read the line;
    # whether all of them are known; and whether a `--` has ended the options.
    here, there = {(0, True, False)}, set[tuple[int, bool, bool]]()
    for index, word in enumerate(words):
        after = set[tuple[int, bool, bool]]()
        start = _start(word) if word.value is None else word.value
        following = words[index + 1] if index + 1 < len(words) else None
        narrow = _is_narrow(word)
        for found, sure, ended in here:
            want = wanted[found]
            if word.value is not None:
                may_be = word.value == want
            elif ended and want.startswith('-'):
                continue  # an operand
            else:
                may_be = _may_be(word, want) if narrow else want.startswith(start)
            if may_be and not word.one_field:
                unsure = True  # what comes out of it may begin with all that is wanted
                continue
            if may_be:
                known = sure and word.value is not None
                if found + 1 < len(wanted):
                    there.add((found + 1, known, ended))
                elif known:
                    return True
                else:
                    unsure = True
            one, two = _passed(
                program, word, start, following, first=not index, before=wanted[:found]
            )
            known = sure and (word.value is not None or start.startswith(('-', '+')))
            # More words than one may come out of these, and the wanted one be among them.
            several = two and following is not None and not following.one_field
            if one or several:
                there.add((found, known, ended or word.value == '--'))
            if two:
                after.add((found, known, ended))
            unsure = unsure or ((one or two) and not narrow)
            unsure = unsure or (several and following is not None and not _is_narrow(following))
        here, there = there, after
        if not here and not there:
            break
    return None if unsure else False


def _has_options(program: str, words: Sequence[Word], wanted: Sequence[str]) -> bool:
    """Whether arguments begin with the plain words of `wanted`, and its options stand further on, in whatever order.

    Short options may stand in one word (`-fr` for `-rf`), and a value be attached (`-XDELETE` for `-X DELETE`). Words
    that are not known are not taken for options here.
    """
    split = next((at for at, want in enumerate(wanted) if want.startswith('-')), len(wanted))
    plain, options = wanted[:split], wanted[split:]
    if not options or (plain and not _may_begin(program, words, plain)):
        return False
    given: list[str] = []
    for word in words:
        text = word.value if word.value is not None else _start(word)
        if text == '--':
            break
        given.append(text)
        if program in _OPERAND_ENDS and not text.startswith('-'):
            break
    name, *values = options
    if values:
        pairs = zip(given, [*given[1:], ''], strict=False)
        return any(_gives(text, name, values[0], after) for text, after in pairs)
    if name.startswith('--') or program in _WHOLE:
        return any(text == name or text.startswith(f'{name}=') for text in given)
    letters = {letter for text in given if _BUNDLE.fullmatch(text) for letter in text}
    return _BUNDLE.fullmatch(name) is not None and letters.issuperset(name)


def _gives(text: str, name: str, value: str, after: str) -> bool:
    """Whether a word, perhaps with the one after it, is an option with its value, behind other short ones or not."""
    if name.startswith('--') or not re.match('-[A-Za-z0-9]', text):
        return text == f'{name}={value}' or (text == name and after == value)
    return text.endswith(f'{name[1:]}{value}') or (text.endswith(name[1:]) and after == value)


def _passed(
    program: str,
    word: Word,
    start: str,
    following: Word | None,
    *,
    first: bool,
    before: Sequence[str],
) -> tuple[bool, bool]:
    """Whether a word may be passed over alone, and whether together with the one that follows."""
    if not start and word.value is None:
        # It may begin with a dash, and no option with a slash in it takes the next word.
        return True, '/' not in word.literal
    if not start.startswith('-') or word.value == '-':
        toolchain = first and program == 'cargo' and start.startswith('+')
        pattern = _ASSIGNMENT if word.value is not None else _MAY_ASSIGN
        assigned = program in _ASSIGNED and pattern.match(start) is not None
        return toolchain or assigned, False
    option = None
    if word.value is not None or '=' in start:
        option = _option(program, start, before=before)
    if option is None or option.takes == 'number':
        return True, following is None or following.value != '--'
    if option.takes == 'value':
        return following is not None and _is_odd(following), True
    return True, following is not None and _is_truth(following)


def _is_narrow(word: Word) -> bool:
    """Whether each argument that a word becomes has the text that is known of it: it is one, or names of files."""
    return word.one_field or not (
        word.braces
        or any(kind in 'vxm' or (kind == 'u' and UNKNOWN in text) for kind, text in word.parts)
    )


def _may_be(word: Word, wanted: str) -> bool:
    """Whether an argument that a word becomes may be the one that is wanted, by the text that is known of it."""
    text = ''
    for kind, part in word.parts:
        known = part if kind in {'u', 'q'} else UNKNOWN
        if kind == 'u':
            if not text and part.startswith('~'):
                _, slash, rest = part.partition('/')
                known = f'{UNKNOWN}{slash}{rest}'
            known = re.sub('[*?]', UNKNOWN, known)
        text += known
        if kind == 'u' and (pattern := _BRACKET.search(known)):
            text = text[: len(text) - len(known) + pattern.start()] + UNKNOWN
            break
    first, *middle, last = text.split(UNKNOWN)
    at = len(first)
    for piece in middle:
        at = wanted.find(piece, at) + len(piece)
        if at < len(piece):
            return False
    return wanted.startswith(first) and wanted.endswith(last) and at + len(last) <= len(wanted)


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


def by_program(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Entries by the name of their program, so that a long line is not compared with each of a long list."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.program.rsplit('/', 1)[-1], []).append(entry)
    return found


def parse_all(texts: Sequence[str], option: str) -> tuple[Entry, ...]:
    """Read all entries of a list.

    Raises:
        PolicyError: As `Entry.parse`, and when it is no list of texts.
    """
    if isinstance(texts, str):
        raise PolicyError(
            f'{option} is the text {texts!r}: it must be a list of entries such as [{texts!r}]'
        )
    for text in texts:
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a policy file holds what its author wrote
            raise PolicyError(f'{option} holds {text!r}: an entry is a text such as {"git push"!r}')
    return tuple(Entry.parse(text, option) for text in texts)
