"""Stands for Python in runs that are forks: asks for another fork, and waits for its end.

It is given the path of Python, the socket where forks are asked for, and what Python would be
given. It imports next to nothing, and starts in hundredths of a second.
"""

import contextlib
import json
import os
import socket
import sys

MANY_JOBS, PYTHON_ITSELF_ONCE = "MANY_JOBS", "PYTHON_ITSELF_ONCE"

python, address, *arguments = sys.argv[1:]
is_run, is_preloaded = arguments[:2] == ["-m", "snakemake"], arguments[0] == "-P"
if is_preloaded and MANY_JOBS not in os.environ:
    sys.exit()  # what few jobs import of the project is less than what that process would
if is_run and PYTHON_ITSELF_ONCE in os.environ:
    with contextlib.suppress(FileExistsError):
        os.close(os.open(os.environ[PYTHON_ITSELF_ONCE], os.O_CREAT | os.O_EXCL))
        os.execv(python, [python, *arguments])
if not is_run and not is_preloaded and ".snakemake/scripts/" not in arguments[0]:
    os.execv(python, [python, *arguments])
with socket.socket(socket.AF_UNIX) as line:
    line.connect(address)
    asked = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode() + b"\n"  # noqa: PTH109
    line.sendall(asked[socket.send_fds(line, [asked], [0, 1, 2]) :])
    answer = line.recv(1)
sys.exit(answer[0] if answer else "the process that jobs are forks of has ended")
