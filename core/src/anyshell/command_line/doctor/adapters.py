"""Which adapters are installed in this Python, and whether their frameworks are releases that they work with.

Core knows no framework: an adapter is any distribution that needs `anyshell`, and its framework is what else it needs.
"""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distributions, version

from anyshell.command_line.doctor.checks import Check, ask

_REQUIREMENT = re.compile(
    r'(?P<name>[A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*\(?(?P<bounds>[^;()]*)\)?\s*(?:;(?P<marker>.*))?'
)
_COMPARE: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    '>=': operator.ge,
    '>': operator.gt,
    '<=': operator.le,
    '<': operator.lt,
    '==': operator.eq,
    '!=': operator.ne,
}


@dataclass(frozen=True, slots=True)
class Need:
    """A package that an adapter needs.

    Attributes:
        name: The package.
        bounds: Which releases, such as `>=0.1,<0.2`.
        found: The release that is installed; `None` when there is none.
        met: Whether that is one of them.
    """

    name: str
    bounds: str
    found: str | None
    met: bool


@dataclass(frozen=True, slots=True)
class Adapter:
    """An installed adapter.

    Attributes:
        name: The distribution.
        version: Its release.
        module: What is imported.
        needs: Core and the framework.
    """

    name: str
    version: str
    module: str
    needs: tuple[Need, ...]


def installed() -> list[Adapter]:
    """The adapters of this Python, by name."""
    found = {found.name: found for one in distributions() if (found := _adapter(one)) is not None}
    return [found[name] for name in sorted(found)]


def _adapter(distribution: Distribution) -> Adapter | None:
    needs = [need for text in distribution.requires or () if (need := _need(text)) is not None]
    if not any(need.name == 'anyshell' for need in needs):
        return None
    name = distribution.metadata['Name']
    return Adapter(name, distribution.version, name.replace('-', '_'), tuple(needs))


def _need(requirement: str) -> Need | None:
    """A requirement; `None` for one that holds only with an extra or on another platform."""
    match = _REQUIREMENT.fullmatch(requirement.strip())
    if match is None or match['marker']:
        return None
    bounds = ','.join(sorted(match['bounds'].replace(' ', '').split(','), reverse=True))
    try:
        found = version(match['name'])
    except PackageNotFoundError:
        return Need(match['name'], bounds, None, met=False)
    return Need(match['name'], bounds, found, met=meets(found, bounds))


def meets(release: str, bounds: str) -> bool:
    """Whether a release lies within bounds such as `>=1.2,<2`; of a pre-release only the numbers count."""
    for bound in filter(None, bounds.split(',')):
        match = re.fullmatch(r'(>=|<=|==|!=|>|<)([0-9.]+)', bound)
        if match is None:  # a form that no adapter of ours uses: pip has judged it
            continue
        have, want = _numbers(release), _numbers(match[2])
        length = max(len(have), len(want))
        have, want = (numbers + (0,) * (length - len(numbers)) for numbers in (have, want))
        if not _COMPARE[match[1]](have, want):
            return False
    return True


def _numbers(release: str) -> tuple[int, ...]:
    match = re.match(r'(?:[0-9]+!)?([0-9]+(?:\.[0-9]+)*)', release)
    return tuple(int(part) for part in match[1].split('.')) if match else (0,)


def checks() -> list[Check]:
    """One for each adapter: whether its framework is a release that it works with, and whether it can be imported."""
    found = [_check(adapter) for adapter in installed()]
    if found:
        return found
    text = 'none is installed in this Python'
    fix = (
        'install the one for your framework, such as pydantic-ai-anyshell; your own code needs none'
    )
    return [Check(name='adapters', area='adapters', works=False, found=text, fix=fix)]


def _check(adapter: Adapter) -> Check:
    have = ', '.join(
        f'{need.name} {need.found or "is missing"} (needs {need.bounds or "any release"})'
        for need in adapter.needs
    )
    unmet = [f'"{need.name}{need.bounds}"' for need in adapter.needs if not need.met]
    fix = f'pip install {" ".join(unmet)}' if unmet else ''
    if not unmet:
        # In a process of its own: a framework takes seconds, may print, and may not survive.
        answer = ask(sys.executable, '-c', f'import {adapter.module}', seconds=30)
        if answer.code != 0:
            said = answer.output.strip().splitlines()[-1:] or ['it took too long']
            have = f'{have}; but "import {adapter.module}" fails: {said[0]}'
            fix = f'pip install --force-reinstall {adapter.name}, or mend what the message names'
    return Check(
        name=adapter.name,
        area='adapters',
        works=not fix,
        found=f'{adapter.version}, with {have}',
        fix=fix,
        required=True,
    )
