"""Validates JSON documents against the committed schemas: validate_documents.py SCHEMAS FOLDER.

FOLDER/*.json are documents that name their schema, the lines of FOLDER/*.jsonl are steps of a run. A key that the schema does
not describe is refused too: readers must accept it, but whoever adds one must describe it. Exit code 77: no validator here.
"""

import copy
import json
import pathlib
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)


def closed(schema):
    """The schema without room for keys it does not describe; the plan file's keys have their own table."""
    schema = copy.deepcopy(schema)

    def close(node):
        if isinstance(node, list):
            for item in node:
                close(item)
        elif isinstance(node, dict):
            if node.get("type") == "object" and "properties" in node:
                node.setdefault("unevaluatedProperties", False)
            for key, value in node.items():
                if key != "plan" or "reckon" not in value.get("properties", {}):
                    close(value)

    close(schema)
    return schema


def load(folder):
    validators = {}
    for file in folder.glob("*.json"):
        schema = json.loads(file.read_text())
        Draft202012Validator.check_schema(schema)
        validators[schema["title"]] = Draft202012Validator(closed(schema))
    return validators


def documents(folder):
    for file in sorted(folder.glob("*.json")):
        document = json.loads(file.read_text())
        yield file.name, document.get("schema", "none"), document
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            yield file.name, "reckon.metrics/1", json.loads(line)


def main(schemas, folder):
    validators = load(pathlib.Path(schemas))
    problems, seen = [], set()
    for name, schema, document in documents(pathlib.Path(folder)):
        seen.add(schema)
        if schema not in validators:
            problems.append(f"{name}: there is no schema for {schema}")
            continue
        for error in validators[schema].iter_errors(document):
            problems.append(f"{name}: {error.json_path}: {error.message[:300]}")
    print("\n".join(problems) or "valid: " + " ".join(sorted(seen)))
    return 1 if problems else 0


sys.exit(main(sys.argv[1], sys.argv[2]))
