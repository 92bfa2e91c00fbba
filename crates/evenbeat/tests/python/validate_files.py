"""Holds TOML files against a JSON Schema. Prints one line per file: `good NAME` or `bad NAME: where: what`."""

import datetime
import json
import sys
import tomllib

import jsonschema_rs


def plain(value):
    """TOML as editors hand it to a schema: datetimes are texts."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    return value


def main():
    schema_path, *files = sys.argv[1:]
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema_rs.meta.validate(schema)
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    for path in files:
        with open(path, "rb") as file:
            text = file.read()
        try:
            document = plain(tomllib.loads(text.decode("utf-8")))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError):
            print(f"bad {path}: not TOML")
            continue
        errors = [("/".join(map(str, it.instance_path)), it.message) for it in validator.iter_errors(document)]
        if errors:
            where, what = min(errors)
            print(f"bad {path}: {where}: {what[:120]}")
        else:
            print(f"good {path}")


main()
