"""Packs the module for Redis Software, as a user-defined module: a zip of RAMP's format 1, which says what commands it has.
The same module gives the same bytes. Prints the name.

    software.py libdq.so redis-server version output-folder      MAINTAINER, SUMMARY
"""

import hashlib, json, os, socket, subprocess, sys, tempfile, time

from registries import zipped

# The commands as the server sees them. In a script, as then the answer is one text.
ASKED = """
local commands = redis.call('COMMAND', 'LIST', 'FILTERBY', 'MODULE', 'dq')
table.sort(commands)
for i, name in ipairs(commands) do
    local info = redis.call('COMMAND', 'INFO', name)[1]
    local flags = {}
    for j, flag in ipairs(info[3]) do flags[j] = flag.ok end
    commands[i] = {command_name = name, command_arity = info[2], flags = flags, first_key = info[4], last_key = info[5], step = info[6]}
end
return cjson.encode(commands)
"""


def ask(server, module, folder):
    path = f"{folder}/socket"
    running = subprocess.Popen([server, "--port", "0", "--unixsocket", path, "--dir", folder, "--loadmodule", module],
                               stdout=subprocess.PIPE, text=True)
    try:
        while not os.path.exists(path):
            if running.poll() is not None:
                sys.exit(f"{server} does not load {module}:\n{running.stdout.read()}")
            time.sleep(0.01)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            client.sendall(f"*3\r\n$4\r\nEVAL\r\n${len(ASKED)}\r\n{ASKED}\r\n$1\r\n0\r\n".encode())
            answer = client.makefile("rb")
            head = answer.readline()
            assert head.startswith(b"$"), head
            return json.loads(answer.read(int(head[1:])))
    finally:
        running.kill()
        running.communicate()


def main():
    path, server, version, output = sys.argv[1:]
    with open(path, "rb") as file:
        module = file.read()
    with tempfile.TemporaryDirectory() as folder:
        commands = ask(server, os.path.abspath(path), folder)
    major, minor, patch = map(int, version.split("."))
    # As MODULE LIST has it.
    number = 10000 * major + 100 * minor + patch
    about = {
        "commands": commands, "module_name": "dq", "module_file": "libdq.so", "display_name": "dq", "capability_name": "Delay queue",
        "description": os.environ["SUMMARY"], "author": os.environ["MAINTAINER"], "email": "", "homepage": "", "license": "BSD-3-Clause",
        "version": number, "semantic_version": version, "min_redis_version": "7.0", "min_redis_pack_version": "7.0", "compatible_redis_version": "7.0",
        "os": "Linux", "architecture": "x86_64", "sha256": hashlib.sha256(module).hexdigest(), "ramp_format_version": 1,
        "command_line_args": "", "capabilities": [], "dependencies": {}, "optional-dependencies": {}, "bigstore_version_2_support": False,
        "config_command": "", "exclude_commands": [], "overide_command": [], "add_command": [], "crdb": {},
    }
    named = f"dq-redis-software-{version}-x86_64.zip"
    files = {"libdq.so": module, "module.json": json.dumps(about, indent=1, sort_keys=True)}
    zipped(f"{output}/{named}", files, "libdq.so")
    print(named)


main()
