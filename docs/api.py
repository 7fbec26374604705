#!/usr/bin/env python3
"""Writes the pages of the C++ reference: docs/api.py XML PAGES

XML is the folder that Doxygen wrote with docs/Doxyfile, PAGES the folder of the site's pages. Every function and every class of
the public headers becomes a page PAGES/api/NAME.md with signature, arguments, options, errors and an example of the pages of
docs/. Structs, enums and aliases stand in a page per room. PAGES/api/index.md lists all. `./dev docs` calls it.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

ROOMS = {  # folder of include/bracewell: how the index names it
    "project": "Projection", "reconstruct": "Reconstruction", "geometry": "Geometry", "tomography": "Tomography",
    "gridding": "Non-uniform FFTs and gridding", "ptychography": "Ptychography", "optimize": "Optimisers and solvers",
    "fft": "Fourier transforms", "interpolation": "Interpolation", "distributed": "Several processes", "rfft": "Half spectra",
    "": "Arrays and errors"}


def escaped(text):
    """Text that Markdown leaves as it is."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", text).replace("<", "&lt;").replace(">", "&gt;")


def flat(node):
    """The text of a node, without marks."""
    return re.sub(r"\s+", " ", "".join(node.itertext())).strip() if node is not None else ""


def code(text):
    """C++ as people write it: no blanks inside of <> and before & and *."""
    text = re.sub(r"\s*<\s*", "<", re.sub(r"\s*>", ">", text))
    return re.sub(r"\s+([&*])", r"\1", text).strip()


def prose(node):
    """Markdown of a description, without its lists of parameters, errors and results."""
    if node is None:
        return ""
    out = [escaped(node.text or "")]
    for child in node:
        if child.tag == "para":
            out.append(prose(child).strip() + "\n\n")
        elif child.tag in ("itemizedlist", "orderedlist"):
            items = [" ".join(prose(item).split()) for item in child.findall("listitem")]
            out.append("\n\n" + "".join(f"* {item}\n" for item in items) + "\n")
        elif child.tag == "computeroutput":
            out.append(f"`{flat(child)}`")
        elif child.tag in ("verbatim", "programlisting"):
            lines = [flat(line) for line in child.iter("codeline")] or (child.text or "").splitlines()
            out.append("\n\n```\n" + "\n".join(lines).strip("\n") + "\n```\n\n")
        elif child.tag in ("parameterlist", "simplesect"):
            pass
        else:
            out.append(prose(child))
        out.append(escaped(child.tail or ""))
    return "".join(out)


def described(node):
    """Brief and detailed description of a member or a class, as Markdown."""
    return "\n\n".join(text for text in (prose(node.find(tag)).strip() for tag in ("briefdescription", "detaileddescription")) if text)


def comment(node):
    """The comment of a function or a class as it stands in the header, before its lists of arguments and errors: there lines
    of equations and tables are lines, which Doxygen joins."""
    place = node.find("location")
    lines = (pathlib.Path("include") / place.get("file")).read_text().splitlines()
    last = int(place.get("line")) - 2
    while last >= 0 and not lines[last].lstrip().startswith("///") and re.match(r"\s*(template|\[\[|requires|class|.*>$)", lines[last]):
        last -= 1
    first = last
    while first >= 0 and re.match(r"\s*///(?!<)", lines[first]):
        first -= 1
    text = [re.sub(r"^\s*/// ?", "", line) for line in lines[first + 1:last + 1]]
    ends = [i for i, line in enumerate(text) if re.match(r"\s*[@\\](param|throws|return|tparam)", line)]
    text = text[:ends[0]] if ends else text
    if not text:
        return described(node)
    out, inside, listed_before = [], "", False
    for line in text:
        fence = re.match(r"\s*[@\\](end)?code", line)
        table = line.lstrip().startswith("|")
        kind = inside if inside == "code" and not fence else "table" if table else "lines" if line.startswith("  ") and not listed_before else ""
        listed_before = line.startswith("* ") or (listed_before and line.startswith("  "))
        if fence:
            out.append("```\n" if fence.group(1) else "\n```cpp\n")
            inside = "" if fence.group(1) else "code"
            continue
        if kind != inside:
            out.append("```\n" if inside == "lines" else "\n")
            out.append("\n```\n" if kind == "lines" else "")
            inside = kind
        if kind in ("code", "lines"):
            out.append((line if kind == "code" else line[2:]) + "\n")
        elif kind == "table":
            out.append(line.strip().replace("<", "&lt;").replace(">", "&gt;") + "\n")
        else:
            out.append(("\n" if line.startswith("* ") else "") + marked(line) + "\n")
    if inside in ("code", "lines"):
        out.append("```\n")
    return "".join(out).strip()


def marked(line):
    """A line of a comment as Markdown: what is in `...` stays, and all else is escaped."""
    bullet, line = ("* ", line[2:]) if line.startswith("* ") else ("", line)
    return bullet + "".join(part if part.startswith("`") else escaped(part) for part in re.split(r"(`[^`]*`)", line))


def cell(node):
    return " ".join(described(node).split())


def first_sentence(text):
    """What the index says: up to the first full stop, colon or semicolon outside of brackets, or the first equation."""
    text, depth = " ".join(re.split(r"\n```|\n\|", text)[0].split()), 0
    for i, letter in enumerate(text):
        depth += (letter in "(") - (letter in ")")
        if depth == 0 and re.match(r"\.( [A-Z`]|$)|[:;]( |$)", text[i:]) and text[i - 3:i] != "&lt" and text[i - 3:i] != "&gt":
            return text[:i] + "."
    return text.rstrip(",:") + "."


def listed(node, kind):
    """(names, Markdown) of what is documented by @param or @throws."""
    for parameters in node.iter("parameterlist"):
        if parameters.get("kind") == kind:
            for item in parameters.findall("parameteritem"):
                names = ", ".join(flat(name) for name in item.iter("parametername"))
                yield names, " ".join(prose(item.find("parameterdescription")).split())


def signature(node, name=None):
    """Declaration of a function, an argument per line where it is long."""
    templates = [code(" ".join(flat(p.find(tag)) for tag in ("type", "declname") if p.find(tag) is not None)
                      + (f" = {flat(p.find('defval'))}" if p.find("defval") is not None else ""))
                 for p in node.findall("templateparamlist/param")]
    arguments = []
    for p in node.findall("param"):
        default = f" = {flat(p.find('defval'))}" if p.find("defval") is not None else ""
        arguments.append(f"{code(flat(p.find('type')))} {flat(p.find('declname'))}".strip() + default)
    head = f"template <{', '.join(templates)}>\n" if templates else ""
    if len(head) > 90:
        head = "template <\n    " + ",\n    ".join(templates) + ">\n"
    start = " ".join(part for part in ("static" if node.get("static") == "yes" else "", code(flat(node.find("type"))),
                                       name or flat(node.find("name"))) if part) + "("
    end = ")" + (" const" if node.get("const") == "yes" else "") + ";"
    one = start + ", ".join(arguments) + end
    return head + (one if len(one) <= 100 else start + "\n    " + ",\n    ".join(arguments) + end)


def members(compound):
    """Public variables of a struct as the rows of a table."""
    rows = []
    for member in compound.iter("memberdef"):
        if member.get("kind") == "variable" and member.get("prot") == "public" and member.get("static") == "no":
            default = flat(member.find("initializer")).lstrip("= ")
            rows.append(f"| `{flat(member.find('name'))}` | `{code(flat(member.find('type')))}` | "
                        f"{f'`{default}`' if default else ''} | {cell(member)} |".replace("||", "| |"))
    return rows


def table_of(compound):
    rows = [re.sub(r"`([^`]*)`", lambda m: "`" + m.group(1).replace("|", "\\|") + "`", row) for row in members(compound)]
    return "| member | type | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows) + "\n" if rows else ""


def room_of(node):
    parts = node.find("location").get("file").split("/")
    return parts[1] if len(parts) > 2 else ""


def header_of(node):
    return node.find("location").get("file")


class Examples:
    """Blocks of C++ of the pages, and of tests/reference/examples.cpp for operators that no page shows."""

    def __init__(self, pages):
        self.blocks = []
        for page in sorted([*pages.glob("docs/*.md"), pages / "index.md"]):
            text = page.read_text()
            title = re.search(r"^# (.+)$", text, re.MULTILINE).group(1)
            for block in re.findall(r"<!-- example: [^\n]+-->\n```cpp\n(.*?)```", text, re.DOTALL):
                self.blocks.append((block, f"From [{title}](../{page.relative_to(pages)}):\n\n"))
        tests = pathlib.Path("tests/reference/examples.cpp").read_text()
        self.own = [(re.sub(r"^  ", "", block, flags=re.MULTILINE), "") for block in re.findall(r"  // \[[\w-]+\n(.*?)  // [\w-]+\]\n", tests, re.DOTALL)]

    def of(self, name, is_class):
        """The shortest block that calls a function or makes an object of a class."""
        pattern = rf"(?<![\w.]){name}\b" + (r"\s*[<({]" if not is_class else r"\s*(<[^;=]*?>)?\s*\w*\s*[({=]")
        found = ([block for block in self.blocks if re.search(pattern, block[0])]
                 or [block for block in self.own if re.search(pattern, block[0])])
        if not found:
            return ""
        block, source = min(found, key=lambda one: len(one[0]))
        return f"## Example\n\n{source}```cpp\n{block}```\n\n"


def function_parts(nodes, structs, seen):
    """Signatures, descriptions, arguments, errors and options of functions."""
    out = []
    for node in nodes:
        out.append(f"```cpp\n{signature(node)}\n```\n\n{comment(node)}\n\n")
        rows = list(listed(node, "param"))
        if rows:
            out.append("| argument | meaning |\n|---|---|\n" + "".join(f"| `{n}` | {t} |\n" for n, t in rows) + "\n")
        returns = [" ".join(prose(s).split()) for s in node.iter("simplesect") if s.get("kind") == "return"]
        if returns:
            out.append(f"**Returns** {returns[0]}\n\n")
        for names, text in listed(node, "exception"):
            out.append(f"**Throws** `{names}` {text}\n\n")
        for reference in node.findall("param/type/ref"):
            struct = structs.get(reference.get("refid"))
            if (struct is not None and reference.get("refid") not in seen and members(struct)
                    and flat(struct.find("compoundname")) != "Bracewell::Array"):  # what all take
                seen.append(reference.get("refid"))
    return out


def main():
    xml, pages = map(pathlib.Path, sys.argv[1:])
    api = pages / "api"
    api.mkdir(parents=True, exist_ok=True)
    compounds = [ElementTree.parse(path).getroot().find("compounddef") for path in sorted(xml.glob("*.xml"))
                 if path.name.startswith(("class", "struct"))]
    compounds = [c for c in compounds if c.get("prot", "public") == "public" and flat(c.find("compoundname")).startswith("Bracewell::")]
    namespace = ElementTree.parse(xml / "namespaceBracewell.xml").getroot().find("compounddef")
    structs = {c.get("id"): c for c in compounds if c.get("kind") == "struct"}
    classes = [c for c in compounds if c.get("kind") == "class" and flat(c.find("compoundname")).count("::") == 1]
    functions, types = {}, {}
    for member in namespace.iter("memberdef"):
        if member.get("kind") == "function":
            functions.setdefault(flat(member.find("name")), []).append(member)
        elif member.get("kind") in ("enum", "typedef"):
            types.setdefault(room_of(member), []).append(member)
    examples, index = Examples(pages), {room: [] for room in ROOMS}

    def write(name, node, body, description, is_class=False):
        room = room_of(node)
        options = ""
        for identifier in body[1]:
            struct = structs[identifier]
            title = flat(struct.find("compoundname")).split("::", 1)[1]
            options += f"## {title}\n\n{comment(struct)}\n\n{table_of(struct)}\n"
        (api / f"{name}.md").write_text(f"# {name}\n\n`#include <{header_of(node)}>`\n\n" + "".join(body[0]) + options
                                        + examples.of(name, is_class))
        index[room].append(f"| [`{name}`]({name}.md) | {first_sentence(description)} |")

    for name, nodes in sorted(functions.items()):
        if name.startswith("operator"):
            continue
        seen = []
        parts = function_parts(nodes, structs, seen)
        write(name, nodes[0], (parts, seen), comment(nodes[0]))
    for compound in classes:
        name = flat(compound.find("compoundname")).split("::")[1]
        seen, parts = [], []
        templates = ", ".join(code(" ".join(flat(p.find(t)) for t in ("type", "declname") if p.find(t) is not None))
                              for p in compound.findall("templateparamlist/param"))
        parts.append(f"```cpp\n{f'template <{templates}> ' if templates else ''}class {name};\n```\n\n{comment(compound)}\n\n")
        for member in compound.iter("memberdef"):
            text = flat(member.find("name"))
            if (member.get("kind") != "function" or member.get("prot") != "public" or text.startswith(("operator", "~"))
                    or "= delete" in flat(member.find("argsstring")) or f"{name} &&" in flat(member.find("argsstring"))):
                continue
            parts.append(f"## {'Constructor' if text == name else escaped(text)}\n\n")
            parts += function_parts([member], structs, seen)
        write(name, compound, (parts, seen), comment(compound), is_class=True)

    for compound in structs.values():
        types.setdefault(room_of(compound), []).append(compound)
    for room, nodes in types.items():
        body = [f"# Types: {ROOMS[room].lower()}\n\n"]
        for node in sorted(nodes, key=lambda n: flat(n.find("compoundname") if n.tag == "compounddef" else n.find("name"))):
            if node.tag == "compounddef":
                body.append(f"## {flat(node.find('compoundname')).split('::', 1)[1]}\n\n`struct`, `#include <{header_of(node)}>`\n\n"
                            f"{comment(node)}\n\n{table_of(node)}\n")
            elif node.get("kind") == "enum":
                rows = "".join(f"| `{flat(v.find('name'))}` | {cell(v)} |\n" for v in node.findall("enumvalue"))
                body.append(f"## {flat(node.find('name'))}\n\n`enum`, `#include <{header_of(node)}>`\n\n{described(node)}\n\n"
                            f"| value | meaning |\n|---|---|\n{rows}\n")
            else:
                body.append(f"## {flat(node.find('name'))}\n\n```cpp\nusing {flat(node.find('name'))} = {code(flat(node.find('type')))};\n```\n\n"
                            f"{described(node)}\n\n")
        file = f"types-{room or 'core'}.md"
        (api / file).write_text("".join(body))
        index[room].append(f"| [structs, enums and aliases]({file}) | options, outputs and choices |")

    body = ["# C++ reference\n\nA page per function and class of the public headers: signature, arguments, options, errors and an example.\n"
            "[Conventions](../docs/conventions.md) say what arrays mean.\n\n"]
    for room, title in ROOMS.items():
        if index[room]:
            body.append(f"## {title}\n\n| name | what it does |\n|---|---|\n" + "\n".join(index[room]) + "\n\n")
    (api / "index.md").write_text("".join(body))
    count = sum(len(rows) for rows in index.values())
    if count < 100:
        sys.exit(f"docs/api.py: expected at least 100 names in {xml}, found {count}")
    print(f"{count} pages of the reference in {api}")


if __name__ == "__main__":
    main()
