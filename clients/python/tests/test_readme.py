"""The README's code is Python, and uses nothing that is not there."""

import ast
from pathlib import Path

import dq
import dq.asyncio
import dq.otel
import dq.testing

TEXT = (Path(__file__).parents[1] / "README.md").read_text()
OWNERS = {"dq": dq, "dq.asyncio": dq.asyncio, "queue": dq.Queue, "worker": dq.Worker}
BLOCKS = [part.split("```", 1)[0] for part in TEXT.split("```python\n")[1:]]


def test_blocks_compile_and_name_what_exists():
    for block in BLOCKS:
        tree = compile(block, "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in OWNERS:
                assert hasattr(OWNERS[ast.unparse(node.value)], node.attr), ast.unparse(node)


def test_what_is_named_in_the_text_exists():
    for name in ("Retry", "Snooze", "GiveUp", "Cancelled", "ConfigurationError", "Hooks"):
        assert f"dq.{name}" in TEXT and hasattr(dq, name)
    for name in ("get", "peek", "scan", "reschedule", "kick", "pause", "stats", "every", "cron"):
        assert hasattr(dq.Queue, name)
