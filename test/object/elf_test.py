#!/usr/bin/env python3
"""The shared object as the loader and a packager see it. usage: elf_test.py PLUGIN EXPORTS_MAP"""
import os
import pathlib
import re
import subprocess
import sys

# What every glibc system has. Anything else would have to be on the user's machine.
ALLOWED_LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}
LARGEST_BYTES = 24 << 20
# Releases run from this glibc on (Ubuntu 22.04). A newer system's own headers ask for more, which only a release must not.
RELEASE_GLIBC = (2, 35)
HOST_GLIBC = tuple(int(part) for part in os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")[:2])
NEWEST_GLIBC = RELEASE_GLIBC if HOST_GLIBC <= (2, 36) else HOST_GLIBC

problems = []


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check_exports(plugin, exports_map):
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(exports_map).read_text(), flags=re.S)
    wanted = set(re.findall(r"(\w+);", text[text.index("global:"):text.index("local:")]))
    found = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", plugin).splitlines()}
    if not wanted:
        problems.append(f"{exports_map} lists nothing")
    for name in sorted(found - wanted):
        problems.append(f"{name} is exported, and not in {exports_map}")
    for name in sorted(found):
        if not name.startswith("onehop"):
            # With a symbol of its plugin interfaces NCCL would use this object as its network.
            problems.append(f"{name} is exported: not onehop's own name")
    for name in sorted(wanted - found):
        problems.append(f"{name} is in {exports_map}, and not exported")


def check_dynamic_section(plugin):
    section = run("readelf", "-dW", plugin)
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", section):
        if library not in ALLOWED_LIBRARIES:
            problems.append(f"it needs {library}, which a user's machine may not have")
    if not re.search(r"\(FLAGS_1\).*\bNODELETE\b", section):
        problems.append("it lacks the flag NODELETE: NCCL closes it, and the job would run into unmapped memory")
    for tag, why in [("RPATH", "paths of the build machine"), ("RUNPATH", "paths of the build machine"),
                     ("TEXTREL", "text relocations, which hardened systems deny")]:
        if f"({tag})" in section or re.search(rf"\(FLAGS\).*\b{tag}\b", section):
            problems.append(f"it has {tag}: {why}")
    if re.search(r"GNU_STACK.*\bRWE\b", run("readelf", "-lW", plugin)):
        problems.append("it asks for an executable stack")


def check_glibc(plugin):
    needed = {}
    for line in run("readelf", "--dyn-syms", "-W", plugin).splitlines():
        match = re.search(r" UND (\w+)@GLIBC_([\d.]+)", line)
        if match:
            needed.setdefault(tuple(map(int, match[2].split("."))), []).append(match[1])
    highest = max(needed)
    newer = [f"{name} ({'.'.join(map(str, v))})" for v in sorted(needed) if v > RELEASE_GLIBC for name in needed[v]]
    print(f"highest glibc version asked for: {'.'.join(map(str, highest))} ({', '.join(needed[highest])})")
    print(f"newer than a release may need ({'.'.join(map(str, RELEASE_GLIBC))}): {', '.join(newer) or 'nothing'}")
    if highest > NEWEST_GLIBC:
        problems.append(f"it asks for {newer}")
    for library in sorted(set(re.findall(r"Name: (GLIBCXX|CXXABI|GCC)_\S+", run("readelf", "-VW", plugin)))):
        problems.append(f"it asks for versions of {library}: the C++ runtime is not linked statically")


def main():
    plugin, exports_map = sys.argv[1:]
    check_exports(plugin, exports_map)
    check_dynamic_section(plugin)
    check_glibc(plugin)
    size = pathlib.Path(plugin).stat().st_size
    print(f"size: {size / (1 << 20):.1f} MiB")
    if size >= LARGEST_BYTES:
        problems.append(f"{size} bytes; {LARGEST_BYTES} are the most")
    for problem in problems:
        print(f"{plugin}: {problem}", file=sys.stderr)
    return 1 if problems else 0


sys.exit(main())
