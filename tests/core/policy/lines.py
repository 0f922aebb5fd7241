"""Makes command lines: from the grammar with odd spellings, from a soup of tokens, and by edits of known lines."""

from __future__ import annotations

import random
from collections.abc import Sequence

NAMES = ('rm', 'ls', 'zap', 'cat', 'git', 'foo', 'a', 'make')
_QUOTES = ("'", '"', '`', '$(', '${', '\\', '$((', '<(', "$'", '))', ')', '}', ']')
_SOUP = (
    *(
        'rm x',
        'ls',
        'rm',
        'zap',
        'a',
        'A=1',
        'A=',
        'v[',
        'v[0]=',
        ']',
        'a=(',
        '[[',
        ']]',
        '((',
        '))',
        '(',
        ')',
        '{',
        '}',
    ),
    *(
        ' ',
        ' ',
        ' ',
        '\t',
        '\n',
        '\n',
        ';',
        ';',
        '&',
        '&&',
        '||',
        '|',
        '|&',
        '!',
        ';;',
        ';&',
        '\\\n',
        '\\\n',
        '\\',
        '\\ ',
    ),
    *(
        '#',
        ' # ',
        '$',
        '$$',
        '$x',
        '${v}',
        '${v:-',
        '${#',
        '$(',
        '`',
        '`',
        '"',
        '"',
        "'",
        "'",
        "$'",
        '$"',
        '$((',
        '$[',
        '<(',
        '>(',
    ),
    *(
        '>f',
        '>&2',
        '2>',
        '>&-',
        '<f',
        '<<E\n',
        "<<'E'\n",
        '<<-E\n',
        '\nE\n',
        '<<<',
        '{fd}>',
        '&>f',
        '>|f',
        '2>&1',
        '<>f',
    ),
    *(
        'if',
        'then',
        'else',
        'elif',
        'fi',
        'while',
        'until',
        'do',
        'done',
        'for i in',
        'for',
        'case x in',
        'esac',
        'x)',
        'in',
    ),
    *(
        'time',
        'coproc',
        'function f',
        'f()',
        'f',
        'select',
        'env',
        'xargs',
        'sh -c',
        'eval',
        'command',
        'exec',
        'nice',
        'trap',
    ),
    *(
        '=',
        '==',
        '=~',
        '+',
        '*',
        '?',
        '[',
        '~',
        ',',
        '{a,b}',
        '..',
        '-',
        '--',
        '@',
        '^',
        '%',
        ':',
        '\r',
        '\f',
        '\v',
        'é',
        '-c',
    ),
)
_WRAPPERS = (
    'env {}', 'env A=1 {}', 'env -i PATH="$PATH" {}', 'env -u HOME {}', 'nice {}', 'nice -n 5 {}', 'nohup {}', 'timeout 5 {}',
    'timeout -s KILL 5 {}', 'setsid -w {}', 'stdbuf -oL {}', 'command {}', 'exec {}', 'builtin command {}', 'time {}', '! {}',
    'echo x | xargs {}', 'echo x | xargs -n1 {}', 'echo x | xargs -I% {} %', 'find . -name f -exec {} ;', 'A=1 {}', '>f {}',
    'find . -name f -exec {} {{}} \\;', 'command -p {}', 'env -- {}', 'nice -5 {}', 'timeout --signal=KILL 5 {}', '2>&1 {}',
)  # fmt: skip
_CODE = (
    'sh -c {}',
    'bash -c {}',
    'eval {}',
    'trap {} EXIT',
    'bash -ec {}',
    'dash -c {}',
    'bash <<< {}',
    'env bash -c {}',
)


class Grammar:
    """Lines of the shell's grammar, spelled in unusual ways.

    Args:
        seed: Where the random numbers start.
        bash: Whether bash's own syntax may be used.
    """

    def __init__(self, seed: int, *, bash: bool) -> None:
        self.random = random.Random(seed)  # noqa: S311  # not for secrets
        self.bash = bash
        self.documents: list[str] = []

    def line(self) -> str:
        """A line."""
        self.documents = []
        text = self.sequence(self.random.randint(1, 3))
        return text + self.bodies()

    def pick(self, choices: Sequence[str]) -> str:
        return self.random.choice(choices)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def bodies(self) -> str:
        documents, self.documents = self.documents, []
        return '\n' + ''.join(documents) if documents else ''

    def blank(self) -> str:
        return self.pick((' ', ' ', ' ', '  ', '\t', ' \\\n', '\\\n ', ' \\\n\\\n '))

    def gap(self) -> str:
        return self.pick(('', '', ' ', '\\\n', ' \\\n'))

    def newline(self) -> str:
        comment = self.pick(('', '', ' # rm c', ' #c \\', " # don't", ' # `', '#x'))
        return (comment if comment.startswith(' ') or not comment else ' ' + comment) + (
            self.bodies() or '\n'
        )

    def separator(self) -> str:
        return self.gap() + self.pick((';', ';', ' && ', '||', ' & ', '|', '\n')).replace(
            '\n', self.newline()
        )

    def sequence(self, depth: int) -> str:
        parts = [self.pipeline(depth)]
        for _ in range(self.random.randint(0, 2)):
            parts += [self.separator(), self.gap().replace('\\\n', ''), self.pipeline(depth)]
        return ''.join(parts)

    def block(self, depth: int) -> str:
        end = self.pick((';', '\n'))
        return ' ' + self.sequence(depth) + (self.newline() if end == '\n' else ' ; ')

    def pipeline(self, depth: int) -> str:
        prefix = self.pick(('', '', '', '', '', '! ', 'time ' if self.bash else '', '!\\\n '))
        return prefix + self.command(depth)

    def command(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.5):
            return self.simple(depth)
        depth -= 1
        forms = [
            lambda: f'({self.block(depth)})',
            lambda: f'{{{self.block(depth)}}}',
            lambda: f'if{self.block(depth)}then{self.block(depth)}fi',
            lambda: f'if{self.block(depth)}then{self.block(depth)}else{self.block(depth)}fi',
            lambda: f'for i in {self.word(depth)} b; do{self.block(depth)}done',
            lambda: f'while{self.block(depth)}do{self.block(depth)}break{self.newline()}done',
            lambda: f'case {self.word(depth)} in a){self.block(depth)};; *){self.block(depth)}esac',
            lambda: f'f(){self.gap()}{{{self.block(depth)}}}; f',
            lambda: f'f() {{{self.block(depth)}}} >f; f',
            lambda: f'{{{self.block(depth)}}} {self.redirect(depth)}',
            lambda: f'({self.block(depth)}) | {self.simple(depth)}',
        ]
        if self.bash:
            forms += [
                lambda: f'(({self.arithmetic(depth)}))',
                lambda: f'((rm 1);{self.block(depth)})',
                lambda: f'[[ {self.word(depth)} == {self.word(depth)} && -n {self.word(depth)} ]]',
                lambda: f'[[ a =~ ^(a|b)$ || {self.word(depth)} < b ]]',
                lambda: f'for ((i=0;i<1;i++)); do{self.block(depth)}done',
                lambda: f'for i in {self.word(depth)}; {{{self.block(depth)}}}',
                lambda: f'function g {{{self.block(depth)}}}; g',
                lambda: f'coproc {self.simple(depth)}; wait',
                lambda: f'coproc N {{{self.block(depth)}}}; wait',
                lambda: f'a=({self.word(depth)} [2]={self.word(depth)})',
                lambda: f'a[{self.arithmetic(depth)}]={self.word(depth)}',
                lambda: f'declare a=({self.word(depth)})',
            ]
        return self.random.choice(forms)()

    def simple(self, depth: int) -> str:
        name = self.name()
        if self.chance(0.15):
            name = self.pick(_WRAPPERS).replace('{{}}', '{}').replace('{}', name, 1)
            if self.chance(0.3):
                name = self.pick(_WRAPPERS[:10]).replace('{}', name, 1)
        elif depth > 0 and self.chance(0.08):
            inner = Grammar(self.random.randrange(1 << 30), bash=False).line()
            return self.pick(_CODE[: 4 if not self.bash else None]).replace(
                '{}', "'" + inner.replace("'", "'\\''") + "'"
            )
        parts = [name]
        for _ in range(self.random.randint(0, 3)):
            parts += [self.blank(), self.redirect(depth) if self.chance(0.2) else self.word(depth)]
        if self.chance(0.1):
            parts.insert(
                0,
                self.pick(
                    (
                        'A=1 ',
                        'A=',
                        'A\\\n=b ',
                        'A=$(zap) ',
                        'A="x y" ',
                        '>f ',
                        '2>\\\n/dev/null ',
                        'B=`ls` ',
                    )
                ),
            )
        return ''.join(parts)

    def name(self) -> str:
        name = self.pick(NAMES)
        if self.chance(0.75):
            return name
        at = self.random.randrange(len(name) + 1)
        return self.pick((
            name[:at] + '\\\n' + name[at:], f'"{name}"', f"'{name}'", '\\' + name, name[:at] + '""' + name[at:],
            name[:at] + "''" + name[at:], *((f"$'{name}'", f'$"{name}"', f"$'\\x{ord(name[0]):x}'{name[1:]}") if self.bash else ()),
        ))  # fmt: skip

    def redirect(self, depth: int) -> str:
        kind = self.pick(
            (
                '>f',
                '> f',
                '2>&1',
                '</dev/null',
                '>>f',
                '<<',
                '<<',
                '<<-',
                '<<<' if self.bash else '>|f',
                '>&2',
                '3<&-',
                '<>f',
            )
        )
        if kind == '<<<':
            return kind + self.gap() + self.word(depth)
        if not kind.startswith('<<'):
            return kind
        quoted = self.chance(0.5)
        end = self.pick(('E', 'EOF', 'X1'))
        body = self.pick(
            (
                'rm x\n',
                "it's\n",
                '$(rm b)\n',
                '`rm c`\n',
                '\\$(rm d)\n',
                ')\n',
                'a \\\nb\n',
                '\n',
                '${v:-$(zap)}\n',
                '"\n',
                '$((1+1))\n',
            )
        )
        tab = '\t' if kind == '<<-' and self.chance(0.5) else ''
        self.documents.append(f'{body}{tab}{end}\n')
        return (
            kind
            + self.pick(('', ' '))
            + (
                self.pick((f"'{end}'", f'"{end}"', '\\' + end, f'{end[0]}"{end[1:]}"'))
                if quoted
                else end
            )
        )

    def arithmetic(self, depth: int) -> str:
        return self.pick(
            (
                '1+1',
                'x',
                '(1)',
                '2#11',
                '1<2',
                f'$({self.inner(depth)})',
                '1 # 2',
                'a[0]',
                '1 << 2',
                f'`{self.name()} x`',
            )
        )

    def inner(self, depth: int) -> str:
        """Commands for a substitution, with their here-documents inside."""
        documents, self.documents = self.documents, []
        text = self.sequence(depth - 1) if depth > 0 else self.simple(0)
        text += self.bodies()
        self.documents = documents
        return text if not text.startswith('(') else ' ' + text

    def word(self, depth: int) -> str:
        plain = self.pick((
            'x', 'a b', "'q;q'", '"d d"', '\\;', '#', 'a#b', '"#"', "'#'", '$x', '"$x"', '${x}', '-', '=', '==', '{', '}', '[', ']',
            'if', 'fi', 'done', '!', '{}', 'a=b', '~', '*', '\\\\', '"\\""', "'\\'", '$', '"$"', 'x$', '1', '2', 'é', '${x#a}', '${#x}',
            '${x:-y}', '"${x:-"q"}"', '${x:-\'}\'}', '$#', '$$', '$((1+1))', '`:`', 'in', 'time',
            *(("$'a\\'b'", '$"l"', '${x//a/b}', '${x^^}', '${x:0:1}', '{a,b}', '{1..2}', '=~', '[[', ']]', 'a[1]') if self.bash else ()),
        ))  # fmt: skip
        if depth <= 0 or self.chance(0.7):
            return plain
        forms = [
            lambda: f'$({self.inner(depth)})',
            lambda: f'"$({self.inner(depth)})"',
            lambda: f'`{self.name()} x`',
            lambda: f'"`{self.name()} x`"',
            lambda: f'${{x:-$({self.inner(depth)})}}',
            lambda: f'"${{x:+$({self.inner(depth)})}}"',
            lambda: f'$(({self.arithmetic(depth)}))',
            lambda: f'"$(({self.arithmetic(depth)}))"',
            lambda: f'a"$({self.inner(depth)})"b',
            lambda: f'`echo \\`{self.name()} x\\``',
            lambda: f'$( ({self.inner(depth)}) )',
        ]
        if self.bash:
            forms += [
                lambda: f'<({self.inner(depth)})',
                lambda: f'>({self.inner(depth)})',
                lambda: f'x<({self.inner(depth)})',
                lambda: f'$[{self.arithmetic(depth)}]',
                lambda: f'${{x//a/$({self.inner(depth)})}}',
                lambda: f'${{a[{self.arithmetic(depth)}]}}',
                lambda: f'$(({self.inner(depth)}); zap)',
            ]
        return self.random.choice(forms)()


def soup(seed: int) -> str:
    """A few tokens in any order."""
    chosen = random.Random(seed)  # noqa: S311
    return ''.join(
        chosen.choice(_SOUP) + chosen.choice(('', ' ', '')) for _ in range(chosen.randint(2, 12))
    )


def edited(line: str, other: str, seed: int) -> str:
    """The line after a few random edits."""
    chosen = random.Random(seed)  # noqa: S311
    for _ in range(chosen.randint(1, 4)):
        at = chosen.randint(0, len(line))
        end = min(len(line), at + chosen.randint(1, 4))
        action = chosen.randrange(8)
        if action == 0:
            line = line[:at] + line[end:]
        elif action == 1:
            line = line[:at] + chosen.choice(_SOUP) + line[at:]
        elif action == 2:
            line = line[:at] + '\\\n' + line[at:]
        elif action == 3:
            start = chosen.randint(0, len(other))
            line = line[:at] + other[start : start + chosen.randint(1, 12)] + line[at:]
        elif action == 4:
            line = line[:at] + line[at:end] * 2 + line[end:]
        elif action == 5:
            line = (
                line[:at]
                + chosen.choice(_QUOTES)
                + line[at:end]
                + chosen.choice(_QUOTES)
                + line[end:]
            )
        elif action == 6:
            line = line + chosen.choice(('; ', '\n', ' && ', ' | ', ' ')) + other
        else:
            line = line.replace(chosen.choice((' ', ';', '\n', '"', "'")), chosen.choice(_SOUP), 1)
    return line


# Programs that really run in the oracle: pieces of their options, right and wrong, and what stands before the command.
_PROGRAMS = {
    'env': ('-i -u A -uA --unset=A --unset|A -0 -v -C|. --chdir=. --chdir|. -- A=1 -S|A=1 --split-string=A=1 --ignore-environment --uns|A -iu|A - --block-signal --default-signal=INT -P', ''),
    'timeout': ('-k|1 -k1 -s|KILL -sKILL --signal=KILL --signal|KILL --kill-after=1 --kill-after|1 -v --foreground --preserve-status --sig|TERM -vk|2 --', '5'),
    'nice': ('-n|5 -n5 -5 --adjustment=5 --adjustment|5 --adj=1 -n|-1 --5 -+5 --', ''),
    'nohup': ('--', ''),
    'stdbuf': ('-o0 -o|L -i|0 -e0 --output=L --output|0 --input|0 --error=0 -oL|-eL --', ''),
    'setsid': ('-w -f -c -fw --wait --fork --', ''),
    'ionice': ('-c3 -c|2 -n|4 -n4 -t --class|3 --class=idle --classdata|3 --ignore -p|1', ''),
    'taskset': ('-a -c --cpu-list --all-tasks -p', '0'),
    'chrt': ('-b -o -i --batch --other --idle -v -R -T|1 --sched-runtime|1 -m', '0'),
    'prlimit': ('-n99 --nofile=99 --nofile -c --core=0 --raw -o|UNITS --noheadings --cpu=5:9', ''),
    'setpriv': ('--no-new-privs --nnp --inh-caps|-all --inh-caps=-all --clear-groups --keep-groups --reset-env --dump -d', ''),
    'setarch': ('-R -v --addr-no-randomize -B -3 --uname-2.6', 'x86_64'),
    'linux64': ('-R -v --verbose', ''),
    'flock': ('-n -x -s -w|1 -w1 --timeout=1 --timeout|1 -E|3 --exclusive --verbose -o -F --nonblock', 'f'),
    'xargs': ('-r -t -0 -n|1 -n1 -L1 -L|2 -P2 -P|2 -I% -I|% -i -i% -d|, -d, -E|x -e -ex -a|f -s|200 -x --null --max-args=1 --max-args|1 --arg-file=f --arg-file|f --no-run-if-empty --replace --replace=% --verbose -l -l1 --max-lines --eof=x', ''),
    'command': ('-p -- -v', ''),
    'exec': ('-a|n -c -l -cl -an --', ''),
    'bash': ('-e -x -u -o|pipefail +x --norc --noprofile --posix -O|extglob --rcfile|f -eo|pipefail -ex --init-file|f', '-c'),
    'sh': ('-e -x -u +x -eu', '-c'),
}  # fmt: skip


def options(seed: int) -> str:
    """A program with some of its options in front of a command."""
    chosen = random.Random(seed)  # noqa: S311
    program = chosen.choice(tuple(_PROGRAMS))
    pieces, operand = _PROGRAMS[program]
    words = [program]
    for piece in (chosen.choice(pieces.split()) for _ in range(chosen.randint(0, 3))):
        words += piece.split('|')
    words += [operand] if operand else []
    if operand == '-c' and chosen.random() < 0.3:
        words.append(chosen.choice(('-e', '--', '-x', '+x')))
    command = chosen.choice(
        ('rm x', 'ls', 'env rm', 'zap -n rm', 'rm -c zap', '-n rm x', '-- rm', 'A=1 rm')
    )
    if operand == '-c' or (program == 'flock' and chosen.random() < 0.3):
        words += [*(['-c'] if program == 'flock' else []), f"'{command}'"]
    else:
        words.append(command)
    line = ' '.join(words)
    return f'echo x | {line}' if program == 'xargs' else line
