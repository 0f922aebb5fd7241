"""Compares the reader with the shells: a program that ran must have been reported, a line they parse must be read.

python tests/core/policy/fuzz.py [LINES] [SEED]
"""

# ruff: noqa: S108  # a name that lines hold, not a file of ours

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import lines as generator
import oracle

from anyshell.policy.calls import Findings, find
from anyshell.policy.syntax import NotUnderstood, Shell

CORPUS = Path(__file__).with_name('corpus.jsonl')
# Lines with these are not run: they end the sandbox, wait for nothing, or make more of themselves.
_LEFT_OUT = ('kill', 'ulimit', ':()', '/tmp')
# Start-up files of the system, and files that a shell is told to read: they are not read here, as documented.
_KNOWN = ('"rm" --', '-lc', '-l -c', '--login', 'ENV=', 'unshare', 'bash -cl')
# `bash rm` looks for a script on PATH and finds the stub; the real rm is no script.
_SCRIPT_CALLED_RM = re.compile(r'sh(?:\s+--(?:rc|init-)file\s+\S+|\s+(?:-{1,2}|\+)\w*)*\s+rm\b')
# The kinds of lines that are refused although a shell may parse them. SECURITY.md lists them.
_KINDS = (
    'a here-document has no end',
    # With quotes around an expansion in it, no line is equal to it.
    'the end of a here-document is named by an expansion',
    r'`\$\{ …; \}` is not read',
    r"a ' inside a quoted `\$\{…\}` is not read",
    'it is nested too deeply',
    # bash drops such lines without a word.
    r'`for \(\(` has no `\)\)`',
    r'an operand of `\[\[` is missing',
    r'a line is continued behind a `\)` of `\(\(`',
    # bash 5.2 itself reads these in two ways: once as it looks for the end of `$(…)`, once as it runs it.
    r'`time` right behind `\$\(` times only simple commands',
    r'`.*` behind a redirection is read in two ways',
    r'a `\[` behind a redirection is read in different ways',
    r'an array in `\$\(…\)` holds an escaped character',
)
REFUSED = re.compile('|'.join(_KINDS))


_SCRIPT_RUNNERS = frozenset(('bash', 'dash', 'sh', '.', 'source'))
_ERROR = re.compile(r'-c: line \d+: (?:syntax error|unexpected)|[Ss]yntax error:')


@dataclass(slots=True)
class Report:
    """What a run found."""

    seed: int
    lines: int = 0
    understood: int = 0
    missed: list[tuple[str, str, list[str]]] = field(default_factory=list)
    refused: list[tuple[str, str, str]] = field(default_factory=list)
    unfinished: int = 0
    lenient: list[tuple[str, str]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f'seed {self.seed}: {self.lines} lines, {self.understood} read, {len(self.missed)} with a program that was not reported, '
            f'{len(self.refused)} refused though the shell parses them, {self.unfinished} not ended; {self.seconds:.0f} s'
        )


def made(kind: str, count: int, seed: int, *, bash: bool) -> list[str]:
    """Lines of a kind: 'grammar', 'soup', 'options' or 'edited'."""
    found: list[str] = []
    corpus = (
        [
            row['command']
            for row in map(json.loads, CORPUS.read_text(encoding='utf-8').splitlines())
            # The known limit: a hostile value in a variable that arithmetic evaluates.
            if row['id'] != 'subscript-014'
        ]
        if kind == 'edited'
        else []
    )
    chosen = random.Random(seed)  # noqa: S311
    grammar = generator.Grammar(seed, bash=bash)
    while len(found) < count:
        if kind == 'grammar':
            line = grammar.line()
        elif kind == 'soup':
            line = generator.soup(chosen.randrange(1 << 40))
        elif kind == 'options':
            line = generator.options(chosen.randrange(1 << 40))
        else:
            line = generator.edited(
                chosen.choice(corpus), chosen.choice(corpus), chosen.randrange(1 << 40)
            )
        if (
            '\0' not in line
            and len(line) < 2000
            and not any(word in line for word in (*_LEFT_OUT, *_KNOWN))
            and not _SCRIPT_CALLED_RM.search(line.replace('\\\n', ''))
        ):
            found.append(line)
    return found


def _hidden(run: oracle.Run, reported: set[str]) -> set[str]:
    """The programs that ran and that the reader did not report."""
    hidden = run.programs - reported - _SCRIPT_RUNNERS
    # A shell also reads files that are not read here, as documented: what stands on PATH under the name of a script, and
    # the start-up files of the system. None of them runs these two.
    return hidden & {'rm', 'zap'} if reported & _SCRIPT_RUNNERS else set(hidden)


def compare(report: Report, lines: list[str], *, shell: Shell) -> None:
    """Read the lines, run them, and note where the two differ."""
    start = time.monotonic()
    readings: list[Findings | NotUnderstood] = []
    for line in lines:
        try:
            readings.append(find(line, shell=shell))
        except NotUnderstood as error:
            readings.append(error)
    known = [
        index
        for index, reading in enumerate(readings)
        if not isinstance(reading, NotUnderstood) and not reading.unresolved
    ]
    refused = [
        index
        for index, reading in enumerate(readings)
        if isinstance(reading, NotUnderstood)
        and not REFUSED.fullmatch(reading.message)
        and not reading.deferred
    ]
    program = 'bash' if shell == 'bash' else 'dash'
    for index, run in zip(known, oracle.run([lines[i] for i in known], shell=program), strict=True):
        reading = readings[index]
        assert isinstance(reading, Findings)
        report.unfinished += not run.finished
        if _ERROR.search(run.errors):
            report.lenient.append((lines[index], run.errors))
        reported = {call.name for call in reading.calls}
        # A script without a slash is looked for on PATH, where a stub stands: a file that is not read, as documented.
        hidden = _hidden(run, reported)
        # What a line before left behind may still write its name: only what runs again when the line is alone counts.
        if hidden and (
            hidden := hidden & _hidden(oracle.run([lines[index]], shell=program)[0], reported)
        ):
            report.missed.append((shell, lines[index], sorted(hidden)))
    if shell == 'bash':
        # dash has no `-n` that stops before it runs a line, and reads bash's syntax in its own way.
        for index, run in zip(
            refused,
            oracle.run([lines[i] for i in refused], shell=program, accepted=True),
            strict=True,
        ):
            reading = readings[index]
            assert isinstance(reading, NotUnderstood)
            report.reasons[reading.message] += bool(run.accepted)
            if run.accepted:
                report.refused.append((shell, lines[index], reading.message))
    report.lines += len(lines)
    report.understood += len(known)
    report.seconds += time.monotonic() - start


def fuzz(count: int, seed: int) -> Report:
    """Compare `count` lines of all kinds, in both shells."""
    report = Report(seed)
    shares = (
        ('bash', 'grammar', 0.3),
        ('bash', 'edited', 0.3),
        ('bash', 'soup', 0.1),
        ('bash', 'options', 0.05),
        ('sh', 'grammar', 0.15),
        ('sh', 'edited', 0.1),
    )
    for number, (shell, kind, share) in enumerate(shares):
        left = round(count * share)
        part = 0
        while left > 0:
            some = made(
                kind,
                min(left, 2000),
                seed * 1000 + number * 100_000_007 + part,
                bash=shell == 'bash',
            )
            compare(report, some, shell=shell)
            left -= len(some)
            part += 1
    return report


if __name__ == '__main__':
    amount = int(sys.argv[1]) if sys.argv[1:] else 200_000
    result = fuzz(
        amount, int(sys.argv[2]) if sys.argv[2:] else random.SystemRandom().randrange(1 << 20)
    )
    for row in (*result.missed, *result.refused):
        print(*map(repr, row))
    print(result.reasons)
    print(result)
    sys.exit(bool(result.missed or result.refused))
