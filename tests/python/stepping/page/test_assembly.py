# SPDX-License-Identifier: BSD-3-Clause
"""The page is one file: its modules join into one script, its text cannot end that script, and it names no other place."""

import re
from pathlib import Path

import pytest

from moscope.stepping.page import FOLDER, embedded, html
from moscope.stepping.page.bundle import BadModule, bundle

EMPTY = {"trace": {"script": "c0 ld </script><b>", "accesses": [], "messages": [], "transitions": []}}


def test_a_module_stands_after_those_that_it_uses(tmp_path: Path) -> None:
    (tmp_path / "main.js").write_text('import { b } from "./b.js";\nb();\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\nexport function b() { return a; }\n')
    (tmp_path / "a.js").write_text("export const a = 1;\n")
    assert re.sub(r"\s+", " ", bundle(tmp_path, "main.js")) == (
        "// a.js const a = 1; // b.js function b() { return a; } // main.js b(); ")


def test_a_name_that_two_modules_declare_is_refused(tmp_path: Path) -> None:
    (tmp_path / "main.js").write_text('import { a } from "./a.js";\nconst twice = a;\n')
    (tmp_path / "a.js").write_text("export const a = 1;\nconst twice = 2;\n")
    with pytest.raises(BadModule, match="twice: is also declared in a.js"):
        bundle(tmp_path, "main.js")


def test_modules_that_import_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "main.js").write_text('import { a } from "./a.js";\nexport const b = a;\n')
    (tmp_path / "a.js").write_text('import { b } from "./main.js";\nexport const a = b;\n')
    with pytest.raises(BadModule, match=r"main\.js: imports itself"):
        bundle(tmp_path, "main.js")


def test_every_module_of_the_page_is_part_of_it() -> None:
    script = bundle(FOLDER / "script", "main.js")
    names = [p.relative_to(FOLDER / "script").as_posix() for p in (FOLDER / "script").rglob("*.js")]
    assert [name for name in names if f"// {name}\n" not in script] == []
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)


def test_a_text_of_the_document_cannot_end_its_script_element() -> None:
    assert "</script" not in embedded({"text": "</script><script>alert(1)</script>"})
    assert "<b>" not in html(EMPTY)


def test_the_page_refers_to_no_other_file_or_address() -> None:
    assert set(re.findall(r"https?://[^\"' )]+", html(EMPTY))) == {"http://www.w3.org/2000/svg"}  # a name, never fetched
    assert not re.search(r"<(link|script|img)[^>]+(src|href)=\"(?!data:)", html(EMPTY))
