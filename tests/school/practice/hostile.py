"""Programs that try to pass without solving anything, to read the solution, or to end the grader.

Each is the whole of a learner's file for the exercise `attention`. SOLUTION and ROOT are filled in:
the solution's path, and the folder that holds the package. A program that gets hold of the solution
runs it, and so would pass.
"""

import textwrap

from glassformer.school.practice import find_exercise

FOLDER = find_exercise("attention").folder
ROOT = FOLDER.parents[3]

# Reading the solution.

_STEAL = """
import ctypes, gc, glob, importlib, importlib.util, io, os, sys, types
SOLUTION, ROOT = {solution!r}, {root!r}
INSIDE = os.path.relpath(SOLUTION, ROOT)
libc = ctypes.CDLL(None, use_errno=True)

def by_fopen(path):
    libc.fopen.restype = libc.fdopen.restype = ctypes.c_void_p
    file = libc.fopen(path.encode(), b"r")
    return by_file(file)

def by_file(file):
    if not file:
        raise ValueError("closed")
    text = ctypes.create_string_buffer(1 << 16)
    n = libc.fread(text, 1, 1 << 16, ctypes.c_void_p(file))
    return text.raw[:n].decode()

def frames():
    frame = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back

def steal():
{body}

def attention(q, k, v):
    found = steal()
    if isinstance(found, str):
        space = {{}}
        exec(found, space)
        found = space["attention"]
    return found(q, k, v)
"""
_READING = {
    "open": "return open(SOLUTION).read()",
    "io.FileIO": "return io.FileIO(SOLUTION).read().decode()",
    "posix.open": "import posix; return os.read(posix.open(SOLUTION, 0), 9999).decode()",
    "pathlib": "import pathlib; return pathlib.Path(SOLUTION).read_text()",
    "linecache": "import linecache; return ''.join(linecache.getlines(SOLUTION))",
    "tokenize": "import tokenize; return tokenize.open(SOLUTION).read()",
    "codecs": "import codecs; return codecs.open(SOLUTION).read()",
    "fileinput": "import fileinput; return ''.join(fileinput.input(SOLUTION))",
    "runpy": "import runpy; return runpy.run_path(SOLUTION)['attention']",
    "loader": "from importlib.machinery import SourceFileLoader as S\n"
    "return S('s', SOLUTION).load_module().attention",
    "spec": "s = importlib.util.spec_from_file_location('s', SOLUTION)\n"
    "m = importlib.util.module_from_spec(s); s.loader.exec_module(m); return m.attention",
    "numpy": "import numpy; return numpy.fromfile(SOLUTION, 'u1').tobytes().decode()",
    "memmap": "import numpy; return numpy.memmap(SOLUTION, 'u1', 'r').tobytes().decode()",
    "torch.from_file": "import torch; n = os.stat(SOLUTION).st_size\n"
    "return bytes(torch.from_file(SOLUTION, size=n, dtype=torch.uint8).tolist()).decode()",
    "dir_fd": "fd = os.open(ROOT, os.O_RDONLY)\n"
    "return os.read(os.open(INSIDE, os.O_RDONLY, dir_fd=fd), 9999).decode()",
    "fchdir": "os.fchdir(os.open(ROOT, os.O_RDONLY)); return open(INSIDE).read()",
    "proc root": "return open('/proc/self/root' + SOLUTION).read()",
    "proc cwd": "os.chdir(ROOT); return open('/proc/self/cwd/' + INSIDE).read()",
    "symlink": "os.symlink(SOLUTION, 'link'); return open('link').read()",
    "hard link": "os.link(SOLUTION, 'link'); return open('link').read()",
    "glob": "found = glob.glob(ROOT + '/*/practice/exercises/05_*/solution.py')\n"
    "return open(found[0]).read()",
    "scandir": "return [open(e).read() for e in os.scandir(os.path.dirname(SOLUTION))][0]",
    "fwalk": "for _, _, names, fd in os.fwalk(os.path.dirname(SOLUTION)):\n"
    "    return os.read(os.open('solution.py', 0, dir_fd=fd), 9999).decode()",
    "C fopen": "return by_fopen(SOLUTION)",
    "C fopen, proc": "return by_fopen('/proc/self/root' + SOLUTION)",
    "C symlink": "libc.symlink(SOLUTION.encode(), b'link'); return by_fopen('link')",
    "C openat": "fd = libc.open(ROOT.encode(), 0)\n"
    "return by_file(libc.fdopen(libc.openat(fd, INSIDE.encode(), 0), b'r'))",
    "C popen": "libc.popen.restype = ctypes.c_void_p\n"
    "return by_file(libc.popen(b'cat ' + SOLUTION.encode(), b'r'))",
    "C system": "libc.system(b'cp ' + SOLUTION.encode() + b' mine'); return by_fopen('mine')",
    "C fork": "if libc.fork() == 0: os._exit(0)\nreturn by_fopen(SOLUTION)",
    "os.popen": "return os.popen('cat ' + SOLUTION).read()",
    "subprocess": "import subprocess; return subprocess.check_output(['cat', SOLUTION]).decode()",
    "posix_spawn": "os.posix_spawn('/bin/cp', ['cp', SOLUTION, 'mine'], {})\n"
    "return open('mine').read()",
    "multiprocessing": "import multiprocessing as m\n"
    "with m.Pool(1) as pool: return pool.map(by_fopen, [SOLUTION])[0]",
    "frames": "for f in frames():\n"
    "    if 'exercise' in f.f_locals: return f.f_locals['exercise'].solution",
    "faults": "for f in frames():\n"
    "    if 'exercise' in f.f_locals: return f.f_locals['exercise'].faults()[0].source",
    "frames, unwatched": "for f in frames():\n"
    "    if 'watch' in f.f_locals: f.f_locals['watch'].is_on = False\n"
    "    if 'exercise' in f.f_locals: return f.f_locals['exercise'].solution",
    "frames, globals": "for f in frames():\n"
    "    if 'load_source' in f.f_globals:\n"
    "        return open(f.f_globals['EXERCISES'] / '05_attention' / 'solution.py').read()",
    "objects": "gc.unfreeze()\nfor o in gc.get_objects():\n"
    "    if type(o).__name__ == 'Exercise': return o.solution",
    "our own functions": "gc.unfreeze()\nfor o in gc.get_objects():\n"
    "    ours = (getattr(o, '__module__', '') or '').startswith('glass')\n"
    "    if isinstance(o, types.FunctionType) and ours and o.__name__ == 'attention': return o",
    "our own layers": "import torch\nfor o in torch.nn.Module.__subclasses__():\n"
    "    if o.__module__.startswith('glassformer.layers'): return o(8, 1)",
    "our package": "return __import__('glass' + 'former').attention",
    "our package, by its file": "p = ROOT + '/glassformer/functional/reference.py'\n"
    "s = importlib.util.spec_from_file_location('r', p)\n"
    "m = importlib.util.module_from_spec(s); s.loader.exec_module(m); return m.attention",
    "the judge's memory": "for line in open(f'/proc/{os.getppid()}/maps'):\n"
    "    a, b = (int(x, 16) for x in line.split()[0].split('-'))\n"
    "    with open(f'/proc/{os.getppid()}/mem', 'rb') as f:\n"
    "        f.seek(a); t = f.read(b - a)\n"
    "    if b'def attention(q' in t: return t[t.index(b'import math'):][:600].decode()",
    "C process_vm_readv": "b = ctypes.create_string_buffer(64)\n"
    "v = (ctypes.c_uint64 * 2)(ctypes.addressof(b), 64)\n"
    "w = (ctypes.c_uint64 * 2)(id(b), 64)\n"
    "if libc.process_vm_readv(os.getppid(), v, 1, w, 1, 0) > 0: return lambda q, k, v: 'read'\n"
    "raise ValueError('closed')",
    "C ptrace": "if libc.ptrace(16, os.getppid(), None, None) == 0: os._exit(3)\n"
    "raise ValueError('closed')",
}
READING = {
    name: _STEAL.format(
        solution=str(FOLDER / "solution.py"), root=str(ROOT), body=textwrap.indent(body, "    ")
    )
    for name, body in _READING.items()
}

# Writing where the grader writes.


def _sending(lines):
    """Write bytes to whatever is open, as the process that grades would be written to."""
    return textwrap.dedent(f"""
        import os
        def attention(q, k, v):
            for end in range(3, 64):
                try:
                    for line in {lines}:
                        os.write(end, line)
                except OSError: pass
            return q
    """)


_LEAF = (
    '{{"leaf": "{leaf}", "dtype": "float64", "text": "", "shape": {shape}, '
    '"numpy": "{numpy}", "bytes": "{data}"}}'
)


def _case(value, number=0, **other):
    fields = {"failure": '""', "error": '""', "message": '""', "line": "null", **other}
    rest = ", ".join(f'"{name}": {text}' for name, text in fields.items())
    return f'{{"case": {number}, "outcome": {{"value": {value}, {rest}}}}}\n'.encode()


def _leaf(leaf="tensor", shape="[1]", numpy="<f8", data="AAAAAAAA8D8="):
    return _LEAF.format(leaf=leaf, shape=shape, numpy=numpy, data=data)


FORGED = {
    "rubbish": _sending([b"\x00\xff\n"]),
    "no line": _sending([b"{"]),
    "the end": _sending([b'{"done": true}\n']),
    "a list": _sending([b"[]\n"]),
    "a number": _sending([b"1\n"]),
    "empty lines": _sending([b"\n\n\n"]),
    "ready again": _sending([b'{"ready": []}\n']),
    "another layer": _sending([b'{"ready": ["everything"]}\n']),
    "begin again": _sending([b'{"begin": 0}\n']),
    "begin, a truth value": _sending([b'{"begin": true}\n']),
    "begin later": _sending([b'{"begin": 7}\n']),
    "a case too early": _sending([_case(_leaf(), 5)]),
    "a case twice": _sending([_case(_leaf()), _case(_leaf())]),
    "a hundred cases": _sending(
        [_case(_leaf())] + [b'{"begin": %d}\n' % n + _case(_leaf(), n) for n in range(1, 100)]
    ),
    "no value, no failure": _sending([_case("null")]),
    "value and failure": _sending([_case(_leaf(), failure='"raised"')]),
    "unknown failure": _sending([_case("null", failure='"glory"')]),
    "a negative line": _sending([_case("null", failure='"raised"', line="-1")]),
    "a line of words": _sending([_case("null", failure='"raised"', line='"four"')]),
    "escape codes": _sending([_case("null", failure='"raised"', message='"\\u001b[2J"')]),
    "an object dtype": _sending([_case(_leaf(numpy="|O"))]),
    "a structured dtype": _sending([_case(_leaf(numpy="V8"))]),
    "a dtype of words": _sending([_case(_leaf(numpy="import os"))]),
    "a negative shape": _sending([_case(_leaf(shape="[-1]"))]),
    "a huge shape": _sending([_case(_leaf(shape="[4611686018427387904, 4]"))]),
    "a shape of words": _sending([_case(_leaf(shape='["a"]'))]),
    "a shape of ranks": _sending([_case(_leaf(shape=str([1] * 65)))]),
    "no base64": _sending([_case(_leaf(data="@@"))]),
    "an unknown leaf": _sending([_case(_leaf(leaf="pickle"))]),
    "parts that are none": _sending([_case('{"kind": "list", "parts": 3}')]),
    "an unknown group": _sending([_case('{"kind": "set", "parts": {}}')]),
    "NaN": _sending([b'{"begin": NaN}\n']),
    "a long number": _sending([b'{"begin": ' + b"9" * 5000 + b"}\n"]),
    "unknown stop": _sending([b'{"stop": "passed"}\n']),
    "a stop with more": _sending([b'{"stop": "time", "passed": true}\n']),
    "blocked by nothing": _sending([b'{"stop": "blocked", "message": "me"}\n']),
    "a stop of lists": _sending([b'{"stop": []}\n']),
    "names without end": _sending(
        [b'{"stop": "missing", "names": ' + str([0] * 99).encode() + b"}\n"]
    ),
    "a trail": _sending([b'{"trail": []}\n']),
    "a trail of rubbish": _sending([b'{"trail": [{"name": 3}]}\n']),
    "lone surrogates": _sending([b'{"stop": "raised", "error": "\\ud800"}\n']),
    "deep": """
import os
def attention(q, k, v):
    for end in range(3, 64):
        try: os.write(end, b'[' * 60000 + b'\\n')
        except OSError: pass
    return q
""",
    "without end": """
import os
def attention(q, k, v):
    while True:
        for end in range(3, 64):
            try: os.write(end, b'x' * 65536)
            except OSError: pass
""",
    "a reversed report": """
import os, sys
def attention(q, k, v):
    frame = sys._getframe()
    while frame:
        send = frame.f_locals.get("send")
        if send:
            send({"case": 0, "outcome": {}})
            send({"done": True})
        frame = frame.f_back
    return q
""",
    "all cases forged": """
import sys, torch
def attention(q, k, v):
    frame = sys._getframe()
    while frame:
        send = frame.f_locals.get("send")
        if send and "Outcome" in frame.f_globals:
            Outcome, take = frame.f_globals["Outcome"], frame.f_globals["to_plain"]
            for n in range(20):
                if n: send({"begin": n})
                send({"case": n, "outcome": Outcome(take(torch.zeros_like(q))).as_data()})
            send({"done": True})
        frame = frame.f_back
    return q
""",
    "stdout is the pipe": """
import os
def attention(q, k, v):
    for end in range(3, 64):
        try: os.dup2(end, 1)
        except OSError: pass
    print('{"done": true}', flush=True)
    return q
""",
    "pipes closed": """
import os
def attention(q, k, v):
    os.closerange(0, 64)
    return q
""",
    "the judge's own pipe": """
import ctypes, os
def attention(q, k, v):
    libc = ctypes.CDLL(None)
    for n in range(3, 16):
        end = libc.open(f"/proc/{os.getppid()}/fd/{n}".encode(), 1)
        if end >= 0: os.write(end, b'{"report": {"passed": true}}')
    return q
""",
}

# Ending, hanging and starving the grader.

_BODY = "import atexit, ctypes, os, resource, signal, sys, threading, time, torch\n\n"


def _body(text, before=""):
    inner = textwrap.indent(textwrap.dedent(text).strip(), "    ")
    return f"{_BODY}{before}\ndef attention(q, k, v):\n{inner}\n"


ENDING = {
    "exits at import": "import os\nos._exit(0)",
    "exits at the end": _body("atexit.register(os._exit, 0)\nreturn q"),
    "exits in __del__": _body(
        "x = X()\ndel x\nreturn q", "class X:\n    def __del__(self): os._exit(0)"
    ),
    "exits when looked at": "import sys\ndef __getattr__(name): sys.exit(0)\n",
    "a class that exits": "class attention:\n    def __new__(cls, *a): raise SystemExit(0)\n",
    "interrupts": _body("raise KeyboardInterrupt"),
    "a generator's end": _body("raise GeneratorExit"),
    "segfault": _body("ctypes.string_at(0)"),
    "kills itself": _body("signal.raise_signal(signal.SIGKILL)"),
    "terminates itself": _body("signal.raise_signal(signal.SIGTERM)"),
    "an exception that cannot speak": _body(
        "raise X", "class X(Exception):\n    def __str__(self): raise X"
    ),
    "an exception that speaks at length": _body("raise ValueError('x' * 10 ** 8)"),
    "an exception that exits": _body(
        "raise X", "class X(Exception):\n    def __str__(self): os._exit(0)"
    ),
    "an exception called oddly": _body("raise type('\\x1b[2J' * 999, (Exception,), {})()"),
    "a name called oddly": "globals()['\\x1b[2J' * 999] = 1",
    "clones": _body(
        "for _ in range(999): ctypes.CDLL(None).syscall(220, 17, 0, 0, 0, 0)\nreturn q"
    ),
    "starts threads": _body("while True: threading.Thread(target=time.sleep, args=(9,)).start()"),
    "a thread that writes": _body(
        "threading.Thread(target=lambda: [os.write(e, b'x') for e in range(3, 9)]).start()"
    ),
    "asks for memory": _body("return bytearray(1 << 40)"),
    "asks torch for memory": _body("return torch.empty(1 << 44)"),
    "raises its limits": _body(
        "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))\nreturn torch.ones(1 << 33)"
    ),
    "kills the judge": _body("ctypes.CDLL(None).kill(os.getppid(), 9)\nreturn q"),
    "kills the judge's thread": _body(
        "ctypes.CDLL(None).tgkill(os.getppid(), os.getppid(), 9)\nreturn q"
    ),
    "closes what prints": _body("sys.stdout.close()\nsys.stderr.close()\nreturn q"),
    "prints to nothing": _body("sys.stdout = sys.stderr = None\nreturn q"),
    "writes errors without end": _body("while True: os.write(2, b'x' * 65536)"),
    "a socket": _body("import socket\nsocket.socket()\nreturn q"),
    "a C socket": _body("ctypes.CDLL(None).socket(2, 1, 0)\nreturn q"),
    "a name server": _body("import socket\nsocket.gethostbyname('localhost')\nreturn q"),
    "removes the solutions": _body(
        f"ctypes.CDLL(None).unlink(b'{FOLDER}/nothing-of-this-name')\nreturn q"
    ),
    "writes beside its file": _body("open(__file__ + '.txt', 'w').write('x')"),
    "changes permissions": _body("os.chmod('.', 0o777)\nreturn q"),
}
HANGING = {
    "recursion without a limit": _body("sys.setrecursionlimit(10 ** 9)\nreturn attention(q, k, v)"),
    "forks": _body("while True: ctypes.CDLL(None).fork()"),
    "no alarms": _body("signal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass"),
    "no signals": _body(
        "for s in (signal.SIGALRM, signal.SIGXCPU, signal.SIGTERM):\n"
        "    signal.signal(s, signal.SIG_IGN)\n"
        "while True: pass"
    ),
    "blocked signals": _body(
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: time.sleep(9)"
    ),
    "stops itself": _body("signal.raise_signal(signal.SIGSTOP)\nreturn q"),
    "hangs in C": _body("ctypes.CDLL(None).pause()\nwhile True: ctypes.CDLL(None).pause()"),
    "hangs in __del__": _body(
        "x = X()\ndel x\nreturn q", "class X:\n    def __del__(self):\n        while True: pass"
    ),
    "a list without end": _body(
        "return X([1])",
        "class X(list):\n    def __iter__(self):\n        while True: yield X([1])",
    ),
}

# Putting something else in the place of what is graded.

REPLACING = {
    "torch.allclose": _body("torch.allclose = torch.equal = lambda *a, **k: True\nreturn q"),
    "Tensor.__eq__": _body("torch.Tensor.__eq__ = lambda a, b: torch.tensor(True)\nreturn q"),
    "Tensor.numpy": _body("torch.Tensor.numpy = lambda self: None\nreturn q"),
    "Tensor.numel": _body("torch.Tensor.numel = lambda self: 0\nreturn q"),
    "json.dumps": _body("import json\njson.dumps = lambda m: '{\"done\": true}'\nreturn q"),
    "os.write": _body("os.write = lambda end, data: len(data)\nreturn q"),
    "builtins.isinstance": _body(
        "import builtins\nbuiltins.isinstance = lambda *a: True\nreturn q"
    ),
    "builtins.len": _body("import builtins\nbuiltins.len = lambda x: 0\nreturn q"),
    "builtins.print": _body("import builtins\nbuiltins.print = exit\nreturn q"),
    "numpy.array": _body("import numpy\nnumpy.array = lambda *a, **k: None\nreturn q"),
    "copy.deepcopy": _body("import copy\ncopy.deepcopy = lambda x: x\nreturn q"),
    "torch.manual_seed": _body("torch.manual_seed = lambda *a: None\nreturn q"),
    "torch, whole": _body("sys.modules['torch'] = type(sys)('torch')\nreturn q"),
    "the grader's comparison": _body(
        """
        frame = sys._getframe()
        while frame:
            if "_is_unchanged" in frame.f_globals:
                frame.f_globals["_is_unchanged"] = lambda *a: True
            frame = frame.f_back
        q.zero_()
        return q
        """
    ),
    "the case": _body(
        """
        frame = sys._getframe()
        while frame:
            for name in ("case", "inputs", "before"):
                if name in frame.f_locals and hasattr(frame.f_locals[name], "clear"):
                    frame.f_locals[name].clear()
            frame = frame.f_back
        return q
        """
    ),
    "a tensor that lies": _body(
        "return q.as_subclass(Liar)",
        "class Liar(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, f, types, args=(), kwargs=None): return True",
    ),
    "equal to everything": _body(
        "return X()", "class X:\n    def __eq__(self, other): return True"
    ),
    "a number that lies": _body(
        "return X(1)", "class X(float):\n    def __float__(self): return float('nan')"
    ),
    "a class that lies": _body(
        "return X()", "class X:\n    @property\n    def __class__(self): return torch.Tensor"
    ),
    "a pickle": _body("return X()", "class X:\n    def __reduce__(self): return os._exit, (0,)"),
    "itself": _body("x = []\nx.append(x)\nreturn x"),
    "a deep list": _body("x = []\nfor _ in range(9999): x = [x]\nreturn x"),
    "a long list": _body("return list(range(10 ** 6))"),
    "many tensors": _body("return [torch.ones(400_000) for _ in range(40)]"),
    "keys of all kinds": _body("return {('\\x1b[2J' * 999, n): n for n in range(9)}"),
    "objects in an array": _body("import numpy\nreturn numpy.array([q, None], dtype=object)"),
    "complex": _body("return torch.complex(q, q)"),
    "other bytes": _body("import numpy\nreturn numpy.ones(3, '>f8')"),
    "a generator": _body("return (x for x in q)"),
}

# Calling what is to be written by hand.

_NAME = "name = 'scaled_dot_product_' + 'attention'\nf = getattr(torch.nn.functional, name)\n"
BYPASSING = {
    "in a thread": _body(
        _NAME + "out = []\n"
        "t = threading.Thread(target=lambda: out.append(f(q, k, v)))\nt.start()\nt.join()\n"
        "return out[0]"
    ),
    "in a pool": _body(
        _NAME + "from concurrent.futures import ThreadPoolExecutor as T\n"
        "with T() as pool: return pool.submit(f, q, k, v).result()"
    ),
    "in another process": _body(
        _NAME
        + "import multiprocessing as m\nwith m.Pool(1) as pool: return pool.apply(f, (q, k, v))"
    ),
    "modes disabled": _body(
        _NAME + "from torch.utils._python_dispatch import _disable_current_modes\n"
        "with torch._C.DisableTorchFunction(), _disable_current_modes(): return f(q, k, v)"
    ),
    "functions disabled": _body(
        _NAME + "with torch._C.DisableTorchFunctionSubclass(): return f(q, k, v)"
    ),
    "modes popped": _body(
        _NAME + "torch._C._pop_torch_function_stack()\ntorch._C._pop_torch_dispatch_stack(None)\n"
        "return f(q, k, v)"
    ),
    "vmap": _body(_NAME + "return torch.func.vmap(f)(q, k, v)"),
    "compiled": _body(_NAME + "return torch.compile(f, backend='eager')(q, k, v)"),
    "swallowed": _body(_NAME + "try: return f(q, k, v)\nexcept BaseException: return q"),
}
GROUPS = {
    "reading": READING,
    "forged": FORGED,
    "ending": ENDING,
    "hanging": HANGING,
    "replacing": REPLACING,
    "bypassing": BYPASSING,
}
