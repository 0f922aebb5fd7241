"""Which variables a command sees."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LLM_API_KEY_ENV_PATTERNS: tuple[str, ...] = (
    'ANTHROPIC_*',
    'OPENAI_*',
    'OPENROUTER_*',
    'GOOGLE_*',
    'GEMINI_*',
    'GATEWAY_*',
    'PYDANTIC_AI_GATEWAY_API_KEY',
)
"""Globs for the variables of common model providers, for `denied_env_patterns`. A starting point: it covers model
credentials only (no GitHub, cloud or logging tokens) and is coarse (`GOOGLE_*` also drops
`GOOGLE_APPLICATION_CREDENTIALS`)."""

NONINTERACTIVE_ENV: Mapping[str, str] = {
    'GIT_TERMINAL_PROMPT': '0',
    'GIT_PAGER': 'cat',
    'PAGER': 'cat',
    'MANPAGER': 'cat',
    'SYSTEMD_PAGER': 'cat',
    # An editor that succeeds would let `git rebase -i` or `git commit` go through with a text that nobody saw.
    'EDITOR': 'false',
    'VISUAL': 'false',
    'GIT_EDITOR': 'echo "no editor here: give the text as an option, such as git commit -m" >&2; false',
    'GIT_SEQUENCE_EDITOR': 'false',
    'DEBIAN_FRONTEND': 'noninteractive',
    'PIP_NO_INPUT': '1',
    'NO_COLOR': '1',
    'TERM': 'dumb',
}
"""What `noninteractive_env=True` adds where a variable is not set."""


def visible(
    base: Mapping[str, str],
    *,
    denied_patterns: Iterable[str] = (),
    defaults: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The variables of `base` whose names match none of the globs, and `defaults` for the names that `base` lacks.

    The patterns are `fnmatch` globs and compared with case, as variable names are.
    """
    merged = {**(defaults or {}), **base}
    patterns = tuple(denied_patterns)
    if not patterns:
        return merged
    denied = _compiled(patterns)
    return {name: value for name, value in merged.items() if not denied.match(name)}


@lru_cache(maxsize=64)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile('|'.join(map(translate, patterns)))
