#!/usr/bin/env python3
"""No source file over 400 lines, no C++ function over 60: a reader must be able to hold it in view.

Functions are found by counting braces after comments and literals are blanked out, which is enough for our style.
"""
import re

import sources

MAX_FILE = 400
MAX_FUNCTION = 60
CPP = (".h", ".cpp", ".cu", ".cuh")
SOURCE = CPP + (".py", ".sh", ".cmake")

LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^\s()\\]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)
TYPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^()]*$")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def without_templates(head):
    while True:
        shorter = re.sub(r"\btemplate\s*<[^<>]*>|<[^<>()]*>", " ", head)
        if shorter == head:
            return head
        head = shorter


def kind_of(head):
    """What an opening brace starts, from the text since the last ; { or }."""
    head = without_templates(head).strip()
    if TYPE.search(head) or not head:
        return "type"
    if re.search(r"[=,(\[]$|\breturn$", head):
        return "value"
    if re.search(r"\)\s*(noexcept)?\s*:[^:].*[\w>]$", head, re.DOTALL):
        return "value"  # a member initialised with braces
    return "function" if ")" in head else "value"


def functions(text):
    """(name, first line, last line) of every function body that is not inside another one."""
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", blank, LITERAL.sub(blank, text), flags=re.MULTILINE)
    stack, head, line = [], "", 1
    for char in code:
        if char == "\n":
            line += 1
        if char == "{":
            inside = any(kind == "function" for kind, _, _ in stack)
            stack.append(("inner" if inside else kind_of(head), line, head))
            head = ""
        elif char == "}" and stack:
            kind, first, before = stack.pop()
            if kind == "function":
                name = re.search(r"([\w:~]+)\s*\(", without_templates(before))
                yield (name.group(1) if name else "function", first, line)
            head = before if kind == "value" else ""
        elif char == ";":
            head = ""
        else:
            head += char


def main():
    problems = []
    for name in sources.tracked(*SOURCE):
        text = sources.text(name)
        lines = text.count("\n")
        if lines > MAX_FILE:
            problems.append(f"{name}: {lines} lines, at most {MAX_FILE}")
        if name.endswith(CPP):
            for function, first, last in functions(text):
                if last - first + 1 > MAX_FUNCTION:
                    problems.append(f"{name}:{first}: {function} has {last - first + 1} lines, at most {MAX_FUNCTION}")
    sources.finish(problems, "split by topic, or name the steps as functions")


if __name__ == "__main__":
    main()
