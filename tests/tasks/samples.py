"""Small files of every dataset in its download's layout, and the rows of its hub copy."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.tasks import DataSource, Task, TaskData, task
from benchmarks.tasks.glue import GLUE

# Texts with marks that a reader could mistake for a quote, a blank to strip or the end of a line.
ODD = ('He said " nothing .', '"quoted"', "it ended . ", "one\u2028line", "still\u0085one\x0cline\x1c", "naïve ''")
CORPUS = "\ufeffOne passage. It goes on.\n\n  two  words \r\nthe last: ß\n"
ARTICLES = " = One =\nThe first.\nGoes on.\n = Two =\nEnds.\n"
TWEET = ("NEG", "POS", "NEU", "NEG", "NEU", "POS")
TWEETS = "tweet,sentiment,dialect\n{}\n"
CONLL = "-DOCSTART- X O\n\nIL-2 NN B-{0}\ngene NN I-{0}\n, , O\n\nit PRP O\n"
GLUES = {glue.id: glue for glue in GLUE}
SCORES = ("0.000", "3.800", "5.000")


def glue_id(task: Task) -> str:
    """The id of the GLUE dataset that a task reads."""
    return task.id.partition("-")[0]


def glue_rows(dataset: str, part: int) -> list[tuple[str, str, str]]:
    """Rows (text, other text, code) of a part, with every unusual text and every label; parts differ."""
    codes = SCORES if GLUES[dataset].labels is None else GLUES[dataset].codes
    return [
        (ODD[(place + part) % len(ODD)], ODD[(place + part + 1) % len(ODD)], codes[place % len(codes)])
        for place in range(6 + part)
    ]


def glue_files(dataset: str) -> dict[str, str]:
    """File -> content of a GLUE dataset."""
    glue = GLUES[dataset]
    header = glue.header or ("index", *glue.texts, "genre", glue.label)
    files = {}
    for number, part in enumerate(glue.parts):
        lines = [] if glue.header else [header]
        for *texts, code in glue_rows(dataset, number):
            values = dict(zip(glue.texts, texts, strict=False)) | {glue.label: code}
            lines.append(tuple(values.get(column, "7") for column in header))
        files[f"glue_data/{glue.name}/{part.file}"] = "".join("\t".join(line) + "\n" for line in lines)
    return files


def files_of(task: Task) -> dict[str, str]:
    """File -> content of a task's small dataset; the first file is the training set."""
    if task.family == "glue":
        return glue_files(glue_id(task))
    if task.family == "arsarcasm":
        rows = "\n".join(f'"{ODD[place].replace(chr(34), chr(34) * 2)}",{code},msa' for place, code in enumerate(TWEET))
        return {
            "ArSarcasm-v2/training_data.csv": TWEETS.format(rows),
            "ArSarcasm-v2/testing_data.csv": TWEETS.format("a,NEG,msa\nb,POS,gulf"),
        }
    if task.family == "wikitext":
        return {"corpora/wikipedia.train.txt": ARTICLES, "corpora/wikipedia.valid.txt": ARTICLES.replace("One", "V")}
    if task.id.startswith("corpus-"):
        name = task.id.removeprefix("corpus-").removesuffix("-sentences").replace("-", "_")
        return {f"corpora/{'wikipedia.train' if name == 'wikipedia' else name}.txt": CORPUS}
    if task.tags:
        content = CONLL.format(task.tags[1][2:])
        return {f"{task.name}/{part}.txt": content + f"{part} NN O\n" for part in ("train", "dev", "test")}
    assert task.labels
    content = "".join(f"{label.upper()}\t{ODD[place]}\n" for place, label in enumerate(task.labels))
    folder = {"rct20k": "PubMed_20k_RCT", "nicta-piboso": "nicta_piboso"}[task.id]
    return {f"{folder}/{part}.txt": f"###24\n{content}\n###1\n{content}" for part in ("train", "dev", "test")}


# A line that cannot be an example of the task's family, and what is said of it.
MALFORMED = {
    "glue": ("x", "expected .* columns, found 1"),
    "arsarcasm": ("x,MIXED,msa", "expected one of the labels NEG, NEU, POS, found 'MIXED'"),
    "wikitext": ("br\udcfccken", "expected text in UTF-8, found the byte 0xfc"),
    "corpus": ("br\udcfccken", "expected text in UTF-8, found the byte 0xfc"),
    "conll": ("x NN B-lipid", "expected one of the tags O, B-.*, found 'B-lipid'"),
    "abstracts": ("nobody\ta", "expected one of the labels .*, found 'nobody'"),
}


def kind_of(task: Task) -> str:
    """The entry of MALFORMED for a task."""
    if task.family != "scientific":
        return task.family
    return "corpus" if task.id.startswith("corpus-") else "conll" if task.tags else "abstracts"


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder and return it; a surrogate represents a byte that is not UTF-8."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    return folder


def load(task_id: str, folder: Path | None = None, lenient: bool = False, extracts: Path | None = None) -> TaskData:
    """A task's data from a folder, or from the hub."""
    return task(task_id).load(DataSource(folder, lenient, extracts))
