"""Dead links are reported, and live ones are not."""

import tempfile
import unittest
from pathlib import Path

import links

OTHER = """# The `DQ.ADD` *command*

## Options

## Options

```
# no heading
```
"""

GOOD = """[a](other.md) [b](other.md#the-dqadd-command) [c](other.md#options-1 "title") [d](#here) [e](https://example.com/x#y)
![p](other.md) [f][Ref] `[g](nowhere.md)` [h](folder/)

    Ada [plain] brackets

## Here

```
[i](nowhere.md)
```

[ref]: other.md#options
"""

BAD = {
    "[a](nowhere.md)": "nowhere.md: there is no such file",
    "[a](other.md#no-heading)": "other.md#no-heading: there is no such heading",
    "[a](#there)": "#there: there is no such heading",
    "[a](other.md#options-2)": "other.md#options-2: there is no such heading",
    "[a][nobody]": "[nobody] is defined nowhere",
    "[a][b]\n\n[b]: gone.md": "gone.md: there is no such file",
}


class Links(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dq-links-")
        self.addCleanup(folder.cleanup)
        self.page = Path(folder.name) / "page.md"
        (self.page.parent / "other.md").write_text(OTHER)
        (self.page.parent / "folder").mkdir()

    def faults(self, text):
        self.page.write_text(text)
        return list(links.faults(self.page))

    def test_those_that_live(self):
        self.assertEqual(self.faults(GOOD), [])

    def test_those_that_are_dead(self):
        for text, fault in BAD.items():
            with self.subTest(text):
                self.assertEqual(self.faults(text), [fault])


if __name__ == "__main__":
    unittest.main()
