"""Writes src/dq/asyncio/queue.pyi: the methods of dq.Queue, as coroutines. With --check it only compares."""

import ast
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "dq"
STUB = SOURCE / "asyncio" / "queue.pyi"


def signature(node: ast.AST, prefix: str = "    ") -> str:
    node.body = [ast.Expr(ast.Constant(...))]
    node.decorator_list = []
    return "\n".join(prefix + line for line in ast.unparse(node).splitlines())


def methods(path: Path, name: str) -> list:
    tree = ast.parse(path.read_text())
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name).body


#: What makes up the queue: file and class, in the order of the stub.
PARTS = [
    ("_adds.py", "Adds"),
    ("_outcomes.py", "Outcomes"),
    ("_rules.py", "Rules"),
    ("_queries.py", "Queries"),
    ("_commands.py", "Commands"),
]
GROUP = SOURCE / "_group.py"
FACE = SOURCE / "asyncio" / "queue.py"


def imports() -> list:
    lines = []
    for path in (*(SOURCE / name for name, _ in PARTS), GROUP, FACE):
        for node in ast.parse(path.read_text()).body:
            inner = node.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" else [node]
            for each in inner:
                if isinstance(each, (ast.Import, ast.ImportFrom)) and "__future__" not in ast.unparse(each):
                    text = ast.unparse(each)
                    relative = path.parent == SOURCE and isinstance(each, ast.ImportFrom) and each.level
                    lines.append(text.replace("from .", "from ..", 1) if relative else text)
    own = "from .._group import QueueGroup"
    return [line.replace(own, "from .._group import GroupStats") for line in dict.fromkeys(lines)]


def coroutines(path: Path, name: str) -> list:
    """The public methods of a class, which are awaited."""
    found = [node for node in methods(path, name) if isinstance(node, ast.FunctionDef) and node.name[0] != "_"]
    made = [ast.AsyncFunctionDef(node.name, node.args, node.body, [], node.returns, lineno=0) for node in found]
    return [*map(signature, made)]


def stub() -> str:
    lines = ['"""Written by tools/stubs.py."""', "", *imports()]
    lines += ["", "class QueueGroup:", "    name: str", *coroutines(GROUP, "QueueGroup")]
    lines += ["", "class Queue:", "    client: Client"]
    lines += [
        "    name: str",
        "    shards: int",
        "    codec: Codec",
        "    hooks: Sequence[Hooks]",
        "    keys: list[bytes]",
    ]
    for node in methods(FACE, "Queue"):
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "ids":
            node = ast.FunctionDef(node.name, node.args, node.body, [], node.returns, lineno=0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.name[0] != "_" or node.name[1] == "_"):
            lines.append(signature(node))
    for name, made in PARTS:
        lines += coroutines(SOURCE / name, made)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        same = ast.dump(ast.parse(STUB.read_text())) == ast.dump(ast.parse(stub()))  # whatever its format
        sys.exit(0 if same else "asyncio/queue.pyi is not what tools/stubs.py writes")
    STUB.write_text(stub())
