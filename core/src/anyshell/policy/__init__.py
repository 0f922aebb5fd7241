"""Decides whether a command line may run: allow, ask or deny. Reads the line as the shell would; does no I/O."""

from __future__ import annotations

from anyshell.policy.rules import (
    DEFAULT_DENIED_COMMANDS,
    INTERACTIVE_COMMANDS,
    AllowedCommands,
    AskCommands,
    Decision,
    DeniedCommands,
    DeniedOperators,
    Explanation,
    NoInteractive,
    Policy,
    Rule,
    Verdict,
)

__all__ = [
    'DEFAULT_DENIED_COMMANDS',
    'INTERACTIVE_COMMANDS',
    'AllowedCommands',
    'AskCommands',
    'Decision',
    'DeniedCommands',
    'DeniedOperators',
    'Explanation',
    'NoInteractive',
    'Policy',
    'Rule',
    'Verdict',
]
