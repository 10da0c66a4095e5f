"""The examples of the documentation run as they stand, with a server of this process in the place of far.example."""

import pathlib
import re

import pytest

import farhaul

HERE = pathlib.Path(__file__).parents[2]
PAGES = ["docs/book/python.md", "docs/book/fsspec.md", "python/README.md"]
LAB_PAGES = ["docs/book/controllers.md", "docs/book/python-lab.md"]


@pytest.mark.parametrize("page", PAGES + LAB_PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    if page.endswith("fsspec.md"):
        pytest.importorskip("fsspec")
    if page in LAB_PAGES:
        pytest.importorskip("pandas")
        pytest.importorskip("matplotlib.pyplot").switch_backend("Agg")
    blocks = re.findall(r"^```python\n(.*?)^```", (HERE / page).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks, "the page has no examples"
    monkeypatch.chdir(tmp_path)
    for folder in ["served/results", "results"]:
        pathlib.Path(folder).mkdir(parents=True)
        for name in ["a.csv", "b.csv"]:
            pathlib.Path(folder, name).write_text("t,v\n1,2\n")
    with farhaul.serve("served") as server:
        names = {}
        for block in blocks:
            exec(compile(block.replace("far.example:9000", server.address), page, "exec"), names)
