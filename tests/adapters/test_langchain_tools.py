"""LangChain: its own suite for tools, which is there in `nox -s peers`."""

from typing import Any

import pytest

pytest.importorskip('langchain_tests', reason='tested beside langchain-tests in `nox -s peers`')

from langchain_core.tools import BaseTool
from langchain_tests.unit_tests import ToolsUnitTests

from langchain_anyshell import ShellToolkit


class TestRunCommand(ToolsUnitTests):
    @property
    def tool_constructor(self) -> BaseTool:
        return ShellToolkit().get_tools()[0]

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {'command': 'echo hi', 'timeout_seconds': 5}


class TestCheckCommand(ToolsUnitTests):
    @property
    def tool_constructor(self) -> BaseTool:
        return ShellToolkit().get_tools()[2]

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {'command_id': 'j1'}
