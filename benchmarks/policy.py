"""How long the policy takes: everyday lines, and how the time grows with the length.

python benchmarks/policy.py
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

from anyshell.policy import DEFAULT_DENIED_COMMANDS, Policy
from anyshell.policy.syntax import MAX_BYTES

CORPUS = Path(__file__).parent.parent / 'tests' / 'core' / 'policy' / 'corpus.jsonl'
LONG = (
    'for f in $(git ls-files | grep x); do echo "== $f" && wc -l "$f" > out.txt || exit 1; done\n'
)
# What cost the most for its length, or once did.
WORST = (
    'a;', '`', '`a`', '"`a`"', 'a|', 'a;b&&c||d|e&', 'a=b;', 'f(){ g;};f;', 'f(){ g;};a|f;', 'f()(a);', 'X=1 $X/a;', 'a[', 'echo {1..4000};',
    'echo $(a);', 'a <(b) >(c);', '$(time ! a);', 'a\\\n b;', "alias a='b';a x;", 'env A=b c;', 'case x in a) b;; esac;', '((a) ); ', '((`a`+`b`) ); ',
)  # fmt: skip


def seconds(policy: Policy, command: str, *, repeat: int = 5) -> float:
    """The best of a few runs, in time of the processor, which a busy machine changes less."""
    best = float('inf')
    for _ in range(repeat):
        start = time.process_time()
        policy.check(command)
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    policy = Policy.from_lists(denied_commands=DEFAULT_DENIED_COMMANDS)
    rows = [json.loads(row) for row in CORPUS.read_text(encoding='utf-8').splitlines()]
    for title, lines in (
        ('agent lines', [row['command'] for row in rows if row['kind'] == 'agent']),
        ('all lines of the corpus', [row['command'] for row in rows]),
    ):
        times = sorted(seconds(policy, line) for line in lines)
        print(
            f'{title}: {len(times)}, median {statistics.median(times) * 1e6:.0f} us, '
            f'99 % {times[int(len(times) * 0.99)] * 1e6:.0f} us, longest {times[-1] * 1e6:.0f} us'
        )
    for size in (1_000, 10_000, 100_000):
        print(f'{size} bytes of loops: {seconds(policy, LONG * (size // len(LONG))) * 1e3:.1f} ms')
    document = "cat > f <<'EOF'\n" + 'x = "rm $(rm)"\n' * 6_600 + 'EOF\n'
    print(f'{len(document)} bytes of a here-document: {seconds(policy, document) * 1e3:.1f} ms')
    for unit in WORST:
        times = [
            seconds(policy, unit * (size // len(unit)), repeat=3)
            for size in (50_000, 100_000, MAX_BYTES)
        ]
        print(
            f'100,000 bytes of {unit!r}: {times[1] * 1e3:.0f} ms, {times[1] / times[0]:.1f} times those of half; '
            f'at the limit {times[2] * 1e3:.0f} ms'
        )
    for title, command in (('10,000 nested parentheses', '( ' * 10_000), ('1 MB', 'a' * 1_000_000)):
        print(f'{title}: {seconds(policy, command) * 1e3:.1f} ms')


if __name__ == '__main__':
    main()
