"""``twofold data``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from twofold.cli.parser import Parser, print_json
from twofold.cli.show import table
from twofold.errors import BadInput, Failed, unknown
from twofold.records import Progress

if TYPE_CHECKING:
    from twofold.data import Source

HELP = "List the data sets that are known and where they are looked for, fetch one, or check what is on this disk."
EXAMPLES = """twofold data list
twofold data fetch cifar10
twofold data check cifar10 --data-root /data
twofold data check ./photos --json"""
ACTIONS = ("list", "fetch", "check")

Document = dict[str, Any]


def run(words: list[str]) -> int:
    """List, fetch or check data sets."""
    parser = Parser("data", HELP, EXAMPLES)
    parser.add_argument(
        "action", nargs="?", default="list", metavar="list|fetch|check", help="what to do (default: list)"
    )
    parser.add_argument("what", nargs="?", help="name of a data set; or, for check, a folder or a file")
    parser.add_argument(
        "--data-root", metavar="DIR", type=Path, help="instead of $TWOFOLD_DATA or ~/.cache/twofold/data"
    )
    chosen = parser.parse_args(words)
    if chosen.action not in ACTIONS:
        raise unknown("action of twofold data", chosen.action, ACTIONS)
    if chosen.action == "list":
        return _list(chosen.what, chosen.data_root, chosen.json)
    if chosen.what is None:
        raise BadInput(
            f"say what to {chosen.action}: twofold data {chosen.action} NAME; twofold data list has the names"
        )
    from twofold.training.display import usual_observer

    observer = usual_observer()
    try:
        act = _fetch if chosen.action == "fetch" else _check
        documents = act(chosen.what, chosen.data_root, observer.progress)
    finally:
        observer.close()
    if chosen.json:
        print_json(documents[0] if len(documents) == 1 else documents)
    else:
        for document in documents:
            _show(document)
    return Failed.exit_status if any(document.get("problems") for document in documents) else 0


def _list(what: str | None, root: Path | None, as_json: bool) -> int:
    from twofold.data import data_root, known_data

    if what is not None:
        raise BadInput(f"twofold data list takes no name, found '{what}'; twofold data check {what} looks closer")
    known = known_data(root)
    if as_json:
        print_json({"root": str(data_root(root)), "data": [it._asdict() for it in known]})
        return 0
    rows = [(it.name, it.description, it.found or f"not here; twofold data fetch {it.name}") for it in known]
    table("", ("data", "", "where"), rows)
    _line(f"Looked for in {data_root(root)}; --data-root or $TWOFOLD_DATA name another folder.")
    _line("Any folder of images and any .npy, .npz or .parquet of vectors is data as well.")
    return 0


def _fetch(name: str, root: Path | None, progress: Progress) -> list[Document]:
    from twofold.data.fetch import fetch

    return [{"data": name, "place": str(fetch(name, root, progress))}]


def _check(what: str, root: Path | None, progress: Progress) -> list[Document]:
    """Check a data set by name, all published ones in a folder, or whatever else can be opened."""
    from twofold.data import open_data
    from twofold.data.published import PUBLISHED, find

    if what in PUBLISHED:
        return [_published(what, root, progress)]
    path = Path(what).expanduser()
    if what != "digits" and path.is_dir():
        inside = [name for name in PUBLISHED if find(name, path)]
        return [_published(name, path, progress) for name in inside] or [_folder(path, progress)]
    source = open_data(what, root, progress=progress)
    return [{"data": source.name, "place": "built in" if what == "digits" else what, **_contents(source)}]


def _published(name: str, root: Path | None, progress: Progress) -> Document:
    from twofold.data import open_data
    from twofold.data.fetch import differing
    from twofold.data.published import PUBLISHED, locate

    place = locate(name, root)
    contents = _contents(open_data(name, root))
    wrong = sorted(differing(PUBLISHED[name], place, progress))
    problems = [f"{file} can be read, but is not the published file" for file in wrong]
    unsure = [] if wrong else [file for file, published in PUBLISHED[name].files.items() if published.md5 is None]
    notes = [f"of {file} only the size was checked" for file in unsure]
    return {"data": name, "place": str(place), **contents, "problems": problems, "notes": notes}


def _folder(path: Path, progress: Progress) -> Document:
    """Check a folder of images; what keeps training from using it is a problem, files left out are a note."""
    from twofold.data import open_data
    from twofold.data.cache import decoded
    from twofold.data.folder import DEFAULT_SIZE, image_files

    files = image_files(path)
    skipped = decoded(path, files, DEFAULT_SIZE, progress).skipped
    document = {"data": path.resolve().name, "place": str(path), "files": len(files), "skipped": dict(skipped)}
    try:
        return {**document, **_contents(open_data(path, progress=progress))}
    except BadInput as error:
        return {**document, "problems": [str(error)]}


def _contents(source: "Source") -> Document:
    """Count what a source has."""
    parts = {"pool": source.pool, "train": source.train, "validation": source.validation, "test": source.test}
    return {
        "samples": {name: len(part) for name, part in parts.items() if part is not None},
        "shape": list(source.shape),
        "labelled": source.train.labels is not None,
        "classes": list(source.classes),
        "problems": [],
    }


def _show(document: Document) -> None:
    """Print a document for people."""
    _line(f"{document['data']}: {document['place']}")
    if "samples" in document:
        counts = ", ".join(f"{count} {name}" for name, count in document["samples"].items())
        shape = " × ".join(map(str, document["shape"]))
        kinds = f"{len(document['classes'])} classes" if document["labelled"] else "no labels"
        _line(f"{counts}; a sample is {shape}; {kinds}")
    if document.get("skipped"):
        table("left out", ("file", "why"), document["skipped"].items())
    for note in document.get("notes", []):
        _line(note)
    for problem in document.get("problems", []):
        _line(f"problem: {problem}")
    if document.get("problems") == []:
        _line("all is well")


def _line(text: str) -> None:
    print(text)  # noqa: T201
