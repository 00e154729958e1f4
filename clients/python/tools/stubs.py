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


def stub() -> str:
    lines = ['"""Written by tools/stubs.py."""', ""]
    for path in (SOURCE / "_adds.py", SOURCE / "_commands.py", SOURCE / "asyncio" / "queue.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)) and "__future__" not in ast.unparse(node):
                text = ast.unparse(node)
                relative = path.parent == SOURCE and isinstance(node, ast.ImportFrom) and node.level
                lines.append(text.replace("from .", "from ..", 1) if relative else text)
    lines += ["", "Client = Union[redis.Redis, redis.RedisCluster]", "", "class Queue:", "    client: Client"]
    lines += [
        "    name: str",
        "    shards: int",
        "    codec: Codec",
        "    hooks: Sequence[Hooks]",
        "    keys: list[bytes]",
    ]
    for node in methods(SOURCE / "asyncio" / "queue.py", "Queue"):
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "ids":
            node = ast.FunctionDef(node.name, node.args, node.body, [], node.returns, lineno=0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name not in ("_add", "_ready", "_run"):
            lines.append(signature(node))
    for node in [*methods(SOURCE / "_adds.py", "Adds"), *methods(SOURCE / "_commands.py", "Commands")]:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            made = ast.AsyncFunctionDef(node.name, node.args, node.body, [], node.returns, lineno=0)
            lines.append(signature(made))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        same = ast.dump(ast.parse(STUB.read_text())) == ast.dump(ast.parse(stub()))  # whatever its format
        sys.exit(0 if same else "asyncio/queue.pyi is not what tools/stubs.py writes")
    STUB.write_text(stub())
