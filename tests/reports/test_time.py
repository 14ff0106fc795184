"""The time of a run by hand for three methods, against the time from a record's ledger."""

import pytest

from benchmarks.costs import Work
from benchmarks.costs.networks import DEVICES, NETWORKS, Deployment, Device, Network, Turn, Wire
from benchmarks.errors import UserError
from reports.evidence.traffic import turns_of
from tests.contract.project import committed_records

LINK = Network("test", 1000.0, 250.0, 0.1, "made up")
DEVICE, SERVER = Device("test", 50.0, "made up"), Device("server", 200.0, "made up")
AT = Deployment(LINK, DEVICE, SERVER, utilisation=0.5)


def record_of(task: str, algorithm: str):
    return next(
        record
        for record in committed_records().values()
        if (record.cell.task, record.cell.algorithm) == (task, algorithm) and not record.cell.initial
    )


@pytest.mark.parametrize(
    ("task", "algorithm", "work"),
    [("mrpc", "fedavg", Work(7)), ("sst2-central", "fedfreezebert", Work(2, features=40))],
)
def test_rounds_by_hand(task, algorithm, work):
    """Every round: the model down and up, two messages, and one local epoch; the slowest client decides.

    Features of a frozen encoder are computed once.
    """
    record = record_of(task, algorithm)
    size = next(row.bytes for row in record.ledger if row.round == 1)
    texts, epochs = max(client["train"] for client in record.clients), record.cell.training.local_epochs
    one = size / 1000 + size / 250 + 2 * 0.05 + texts * epochs * work.client / 25
    whole = len(record.rounds) * one + texts * work.features / 25
    assert AT.run_seconds(turns_of(record, work)) == pytest.approx(whole)


def test_split_training_sends_four_messages_a_batch():
    """Embeddings down and up once a round; in each batch activations and gradients both ways, and a mask up."""
    record = record_of("wikitext", "fedbert_parallel")
    training = record.cell.training
    parameters = next(row.bytes for row in record.ledger if row.round == 1 and row.kind == "parameters")
    work, times, served = Work(3, 5), [], 0.0
    for client in range(record.cell.clients):
        texts = record.clients[client]["train"]
        batches = -(-texts // training.batch_size) * training.local_epochs
        crossing, mask = (
            sum(row.bytes for row in record.ledger if (row.round, row.client, row.kind) == (1, client, kind)) / share
            for kind, share in (("activations", 2), ("masks", 1))
        )
        down, up = parameters + 2 * crossing, parameters + 2 * crossing + mask
        at_server = texts * training.local_epochs * 5 / 100
        at_client = down / 1000 + up / 250 + (2 + 4 * batches) * 0.05 + texts * training.local_epochs * 3 / 25
        times.append(at_client + at_server)
        served += at_server
    expected = len(record.rounds) * max(*times, served)
    assert AT.run_seconds(turns_of(record, work)) == pytest.approx(expected)
    one_by_one = Deployment(LINK, DEVICE, SERVER, utilisation=0.5, parallel=False)
    assert one_by_one.run_seconds(turns_of(record, work)) == pytest.approx(len(record.rounds) * sum(times))


def test_the_server_holds_up_many_clients():
    turns = [Turn(1000, 0, 0, 0, 400)] * 10
    assert AT.round_seconds(turns) == pytest.approx(10 * 4)


def test_stragglers_and_framing_by_hand():
    """Two clients need 1 s and 2 s; each takes three times as long in a quarter of the rounds."""
    turns = [Turn(1000), Turn(2000)]
    late = Deployment(LINK, DEVICE, SERVER, stragglers=0.25, slowdown=3)
    assert late.round_seconds(turns) == pytest.approx(0.25 * 6 + 0.75 * (0.25 * 3 + 0.75 * 2))
    framed = Deployment(LINK, DEVICE, SERVER, wire=Wire("x", 1.5, 100))
    assert framed.round_seconds([Turn(1000, 0, 2)]) == pytest.approx(1.5 + 0.1 + 0.1 + 0.4)


def test_bad_deployments_are_refused():
    for wrong in ({"stragglers": 2}, {"slowdown": 0.5}, {"utilisation": 0}):
        with pytest.raises(UserError, match="expected"):
            Deployment(NETWORKS["3g"], DEVICES["phone"], **wrong)
