"""Sweeps of the lab on a cluster."""

import pytest

distributed = pytest.importorskip("distributed")
pytest.importorskip("farhaul.lab", reason="the package has no lab")

import farhaul
import farhaul.dask

SCENARIO = """
title = "Two flows"
duration = "1s"
link = { rate = "20mbit", rtt = "20ms" }
[[flow]]
[[flow]]
protocol = "tcp"
"""


@pytest.fixture(scope="module")
def client():
    """Workers as threads of this process: a run holds no lock of the interpreter.

    Without an address for its dashboard, each cluster would serve at port 8787, and the second one of a machine would warn.
    """
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_sweep_measures_what_the_lab_measures_in_one_process(client):
    axes = {"link.rtt": ["20ms", "40ms"], "link.loss": [0, 0.001]}
    told = []
    sweep = farhaul.dask.lab_sweep(SCENARIO, client, axes=axes, seeds=[1, 2], progress=lambda *now: told.append(now))
    alone = farhaul.lab.run(SCENARIO, axes=axes, seeds=[1, 2])

    def by_place(rows):
        return sorted(rows, key=lambda row: (row["link.rtt"], row["link.loss"], row["seed"]))

    assert by_place(sweep.rows()) == by_place(alone.points().to_dict("records"))
    assert told == [(number, 8) for number in range(1, 9)]
    assert len(sweep.to_dataframe()) == 8


def test_runs_that_fail_are_told_after_all_others(client):
    axes = {"link.rtt": ["20ms", "nonsense"]}
    with pytest.raises(farhaul.Error, match="nonsense"):
        farhaul.dask.lab_sweep(SCENARIO, client, axes=axes, retries=0)
    sweep = farhaul.dask.lab_sweep(SCENARIO, client, axes=axes, retries=0, errors="collect")
    assert len(sweep.records) == 1
    assert sweep.failed[0]["point"] == {"link.rtt": "nonsense"}


def test_a_sweep_that_is_repeated_makes_only_the_runs_that_its_store_lacks(client, tmp_path):
    told = []

    def sweep(**axes):
        told.clear()
        axes = {"link.rtt": ["20ms", "40ms"], **axes}
        return farhaul.dask.lab_sweep(SCENARIO, client, axes=axes, store=tmp_path, progress=lambda *now: told.append(now))

    first = sweep()
    assert [path.parent.name for path in tmp_path.glob("*/run.json")] == ["two-flows"], "for `farhaul lab report`"
    again = sweep()
    assert told == [(2, 2)]
    assert again.rows() == first.rows()
    # A run of this process at the same place is the same run.
    farhaul.lab.run(SCENARIO, axes={"link.rtt": ["20ms", "40ms", "60ms"]}, store=tmp_path)
    assert len((tmp_path / "records.ndjson").read_text().splitlines()) == 3
    with pytest.raises(farhaul.Error, match="nonsense"):
        sweep(**{"link.rtt": ["60ms", "80ms", "nonsense"]})
    assert told[0] == (1, 3) and len((tmp_path / "records.ndjson").read_text().splitlines()) == 4
