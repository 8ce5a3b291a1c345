"""csv_strict.py FOLDER [--pandas]: every *.csv below the folder by the grammar of RFC 4180, with its dictionary.

file = record CRLF {record CRLF}; a field is bare text without quote, comma, CR and LF, or quoted with quotes doubled.
"""
import pathlib
import re
import sys

FIELD = re.compile(rb'(?:[^",\r\n]*|"(?:[^"]|"")*")(?=,|\r\n)')


def records(data):
    """Fields of every record; raises where a byte does not belong."""
    out, record, at = [], [], 0
    while at < len(data):
        field = FIELD.match(data, at)
        if not field:
            raise ValueError(f"byte {at}: {data[at:at + 40]!r}")
        text = field.group().decode()
        record.append(text[1:-1].replace('""', '"') if text.startswith('"') else text)
        at = field.end() + 1
        if data[at - 1:at] != b",":
            out.append(record)
            record, at = [], at + 1
    return out


def check_grammar(path):
    rows = records(path.read_bytes())
    assert rows and rows[0], f"{path}: no header"
    assert len({len(r) for r in rows}) == 1, f"{path}: records of several lengths"
    assert len(set(rows[0])) == len(rows[0]), f"{path}: a column twice"
    return rows


def check_dictionary(folder, tables):
    words = tables.get("data_dictionary.csv")
    if words is None:
        return {}
    named = {}
    for file, column, unit, source, meaning in words[1:]:
        assert unit and source and meaning, (folder, file, column)
        named.setdefault(file, []).append((column, unit))
    assert sorted(named) == sorted(n for n in tables if n != "data_dictionary.csv"), (folder, sorted(named))
    for file, columns in named.items():
        assert tables[file][0] == [c for c, _ in columns], (folder, file)
        for index, (column, unit) in enumerate(columns):
            if unit != "text":
                for row in tables[file][1:]:
                    assert row[index] == "" or re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", row[index]), (file, column, row[index])
    return named


def check_pandas(folder, tables, named):
    import pandas
    for file, rows in tables.items():
        frame = pandas.read_csv(folder / file)
        assert list(frame.columns) == rows[0] and len(frame) == len(rows) - 1, (folder, file)
        for column, unit in named.get(file, []):
            assert unit == "text" or len(frame) == 0 or pandas.api.types.is_numeric_dtype(frame[column]), (folder, file, column, frame[column].dtype)


def main():
    root, count = pathlib.Path(sys.argv[1]), 0
    for folder in sorted({p.parent for p in root.rglob("*.csv")}):
        tables = {p.name: check_grammar(p) for p in sorted(folder.glob("*.csv"))}
        named = check_dictionary(folder, tables)
        if "--pandas" in sys.argv:
            check_pandas(folder, tables, named)
        count += len(tables)
    assert count > 20, count
    print(f"{count} files")


if __name__ == "__main__":
    main()
