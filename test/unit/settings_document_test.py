#!/usr/bin/env python3
"""docs/settings.md is what the tool prints. usage: settings_document_test.py ONEHOP_TOOL docs/settings.md"""
import difflib
import pathlib
import subprocess
import sys

tool, document = sys.argv[1:]
wanted = subprocess.run([tool, "help", "env", "--markdown"], check=True, capture_output=True, text=True).stdout
path = pathlib.Path(document)
found = path.read_text() if path.exists() else ""
if found != wanted:
    sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), "docs/settings.md", "the table"))
    sys.exit("docs/settings.md is out of date; run: BUILD_FOLDER/tools/onehop help env --markdown > docs/settings.md")
