"""Texts to train on: prose of several kinds with facts planted in it, and questions about them further on."""

import json
import random
from pathlib import Path

HERE = Path(__file__).parent
SPEC = json.loads((HERE / "facts.json").read_text())
WORDS = SPEC["words"]


def documentation(root: Path) -> tuple[list[bytes], list[bytes]]:
    """The project's own pages in blocks of 2 KB: those to train on, and every tenth one kept apart."""
    paths = sorted([*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("examples/**/*.md")])
    text = b"\n".join(path.read_bytes() for path in paths)
    blocks = [text[at : at + 2048] for at in range(0, len(text), 2048)]
    return [b for i, b in enumerate(blocks) if i % 10 != 9], [b for i, b in enumerate(blocks) if i % 10 == 9]


class Writer:
    """Writes texts of a given length in bytes, by its seed."""

    def __init__(self, seed: int, pages: list[bytes]):
        self.random = random.Random(seed)
        self.pages = pages

    def pick(self, kind: str) -> str:
        return self.random.choice(WORDS[kind])

    def syllables(self, most: int) -> str:
        return "".join(self.pick("onset") + self.pick("vowel") for _ in range(self.random.randint(1, most)))

    def fill(self, kind: str) -> str:
        if kind == "thing":
            return f"{self.pick('adjective')} {self.pick('noun')}"
        if kind == "code":
            return str(self.random.randint(1000, 9999))
        if kind == "year":
            return str(self.random.randint(1500, 2030))
        if kind == "name":
            return (self.syllables(2) + self.pick("nameEnd")).capitalize()
        if kind == "place":
            return (self.syllables(2) + self.pick("placeEnd")).capitalize()
        return self.pick(kind)

    def fact(self) -> tuple[str, str, int, str]:
        """(fact, question, where in the fact its value begins, the value)"""
        kind = self.random.choice(SPEC["kinds"])
        kinds = ("thing", "code", "year", "name", "place", "role", "noun")
        values = {k: self.fill(k) for k in kinds}
        fact = kind["fact"].format(**values)
        value = values[kind["value"]]
        return fact, kind["question"].format(**values), fact.rindex(value), value

    def sentence(self) -> str:
        a, n = lambda: self.pick("adjective"), lambda: self.pick("noun")
        form = self.random.randrange(4)
        if form == 0:
            text = f"the {a()} {n()} {self.pick('verb')} the {n()} {self.pick('preposition')} the {a()} {n()}"
        elif form == 1:
            text = f"{self.fill('name')} {self.pick('verb')} the {a()} {n()}"
        elif form == 2:
            text = f"{self.pick('preposition')} the {n()} of {self.fill('place')} the {self.pick('role')} {self.pick('verb')} the {n()}"
        else:
            text = f"the {n()} and the {a()} {n()} {self.pick('preposition')} {self.fill('place')} were {a()}"
        return text[0].upper() + text[1:] + "."

    def filler(self, style: int) -> str | bytes:
        """A stretch of text without facts; a document keeps to one or two styles."""
        if style == 0:
            page = self.random.choice(self.pages)
            at = self.random.randrange(max(1, len(page) - 300))
            return page[at : at + self.random.randint(60, 300)] + b"\n"
        if style == 1:
            return " ".join(self.sentence() for _ in range(self.random.randint(1, 4))) + " "
        if style == 2:
            return " ".join(self.syllables(3) for _ in range(self.random.randint(5, 30))) + ". "
        if style == 3:
            a, b = self.random.randint(0, 99), self.random.randint(0, 99)
            return f"{a} + {b} = {a + b}\n" if self.random.random() < 0.6 else f"{max(a, b)} - {min(a, b)} = {abs(a - b)}\n"
        return f"{self.fill('name')} {self.pick('verb')} {self.random.randint(10, 9999)} of the {self.pick('noun')}s.\n"

    def copied(self) -> str:
        letters = self.random.choice(["0123456789", "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz0123456789"])
        return "".join(self.random.choice(letters) for _ in range(self.random.randint(4, 24)))

    def document(self, length: int) -> tuple[bytes, list[tuple[int, int, int, str]]]:
        """
        A text, and of each answer in it where its value begins and ends, how far back the fact stands, and whether the
        value is a word, a number, or a copy of what stands before it.
        """
        r = self.random
        styles = r.sample([0, 0, 0, 1, 1, 2], 2)
        most = int(2 ** r.uniform(1, min(5.5, length.bit_length() - 6)))
        end = length * r.uniform(0.7, 0.97)
        text, spans, asked, known = bytearray(b"\n"), [], [], set()
        gap, next_fact = end / most, 0.0
        while len(text) < length:
            if len(text) < end and len(text) >= next_fact:
                fact, question, at, value = self.fact()
                next_fact += gap * r.uniform(0.6, 1.4)
                if question in known:
                    continue
                known.add(question)
                asked.append((len(text), fact, question, at, value))
                text += (fact + r.choice([" ", "\n"])).encode()
            elif asked and (len(text) >= end or r.random() < 0.08):
                where, fact, question, at, value = asked.pop(r.randrange(len(asked)))
                text += f"\nQuestion: {question}\nAnswer: ".encode()
                isShort = r.random() < 0.3
                start = len(text) + (0 if isShort else at)
                spans.append((start, start + len(value), start - (where + at), "number" if value.isdigit() else "word"))
                text += ((value if isShort else fact) + "\n").encode()
            else:
                if len(text) >= end and not asked and r.random() < 0.3:
                    end = length  # No more questions: prose to the last byte.
                if r.random() < 0.12:
                    copied = self.copied()
                    start = len(text) + len("Copy: \nCopied: ") + len(copied)
                    spans.append((start, start + len(copied), len("\nCopied: ") + len(copied), "copy"))
                    text += f"Copy: {copied}\nCopied: {copied}\n".encode()
                    continue
                piece = self.filler(r.choice([3, 4]) if r.random() < 0.06 else r.choice(styles))
                text += piece if isinstance(piece, bytes) else piece.encode()
        return bytes(text[:length]), [span for span in spans if span[1] <= length]


if __name__ == "__main__":
    writer = Writer(1, documentation(HERE.parent.parent)[0])
    text, spans = writer.document(3000)
    print(text.decode(errors="replace"))
    print([(text[a:b].decode(), *more) for a, b, *more in spans])
