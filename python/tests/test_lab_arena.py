"""The arena: control laws on random paths."""

import pytest

import farhaul
from farhaul import cc, lab


class Patient(cc.Controller):
    """Two packets in flight, whatever happens."""

    def on_connect(self, path, control):
        control.cwnd = 2


def test_a_law_in_python_stands_in_the_field(tmp_path):
    cc.register("patient", Patient)
    laws = lab.arena(["reno", "patient"], cells=2, families=["clean"], out=tmp_path)
    assert [law["controller"] for law in laws] == ["reno", "patient"]
    assert laws[0]["score"] > laws[1]["score"] >= 0 and laws[0]["cells"] == 2
    assert set(laws[0]["families"]) == {"clean"}
    page = (tmp_path / "field.html").read_text()
    assert "patient" in page and "own" in page and (tmp_path / "arena.html").exists()


@pytest.mark.parametrize("wrong", [{"controllers": ["nosuch"]}, {"families": ["nosuch"]}])
def test_mistakes_are_named_before_anything_runs(wrong):
    with pytest.raises(farhaul.UsageError, match="nosuch"):
        lab.arena(**{"controllers": ["reno"], **wrong})
