"""One cause, one finding: what follows from an anomaly is told beneath it, and nothing else is."""

import inspect
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest
from manifests import MANIFEST

from fencepost.checkers.anomaly import ANOMALIES, Anomaly
from fencepost.checkers.catalogue import CATALOGUE, TABLE_CHECKS
from fencepost.checkers.entry import Kind, Nearness
from fencepost.checkers.findings import findings_of
from fencepost.checkers.losses.forensics import (
    Acknowledgement,
    Forensics,
    Loss,
    LossyElection,
    ValueFate,
)
from fencepost.checkers.proof import NAMED, Proof
from fencepost.checkers.verdict import CheckResult, RunFinding, Validity, Verdict

S = 1_000_000_000
JOIN = "{broker_id} at {metadata_offset} by an {api} (frame {frame}) when it had {epoch}"


def met(check: str, key: str = "t-0", *, rule: str = "", **facts: Any) -> Anomaly:
    proof = Proof.of(rule, **facts)
    unsaid = "".join(f" {{{one.name}}}" for one in proof.facts if one.name not in rule)
    return Anomaly(check=check, key=key, allowed=False, proof=replace(proof, rule=rule + unsaid))


def stale_join(
    key: str = "t-0", *, broker_id: int = 2, offset: int = 27, frame: int = 9
) -> Anomaly:
    return met(
        "stale-epoch-join",
        key,
        rule=JOIN,
        metadata_offsets={"metadata_offset": offset},
        frames={"frame": frame},
        broker_id=broker_id,
        api="AlterPartition",
        epoch=5,
    )


def lost(key: str = "t-0", *, offset: int = 0, check: str = "lost-write") -> Anomaly:
    return met(check, key, offsets={"offset": offset}, values={"value": offset})


def late_registration(broker_id: int = 2, *, frame: int = 3, until_s: int = 20) -> Anomaly:
    return met(
        "incarnation-went-back",
        f"broker {broker_id}",
        times={"asked": 10 * S, "out_until": until_s * S},
        frames={"frame": frame},
        out_broker_id=broker_id,
        was="was on its way",
    )


def stuck(key: str = "t-0", *, since_s: int, until_s: int, broker_id: int = 2) -> Anomaly:
    return met(
        "stuck-replica",
        key,
        times={"since": since_s * S, "until": until_s * S},
        values={"broker_id": broker_id},
    )


def loss(key: str = "t-0", *, first: int = 0, acknowledged: int = 8, elected: int = 31) -> Loss:
    """Offsets `first` to `first` + 99, acknowledged under one metadata offset, and the election."""
    return Loss(
        key=key,
        fate=ValueFate.LOST,
        checks=("lost-write",),
        count=100,
        first_offset=first,
        last_offset=first + 99,
        values=(),
        operations=(),
        acknowledgements=(
            Acknowledgement(
                leader=1,
                leader_epoch=0,
                broker_epoch=4,
                isr=(1,),
                partition_epoch=0,
                metadata_offset=acknowledged,
                first_offset=first,
                last_offset=first + 99,
                count=100,
                first_ns=0,
                last_ns=S,
            ),
        ),
        election=LossyElection(
            leader=2,
            leader_epoch=1,
            metadata_offset=elected,
            time_ns=S,
            log_end_offset=0,
            unclean=False,
        ),
    )


def found(
    *anomalies: Anomaly,
    losses: Iterable[Loss] = (),
    known: tuple[str, ...] = (),
    validities: dict[str, Validity] | None = None,
) -> tuple[RunFinding, ...]:
    by_check: dict[str, list[Anomaly]] = {}
    for one in anomalies:
        by_check.setdefault(one.check, []).append(one)
    results = [
        CheckResult(
            check=name,
            validity=(validities or {}).get(name, Validity.INVALID),
            anomaly_count=len(several),
        )
        for name, several in by_check.items()
    ]
    tables = {
        name: pa.Table.from_pylist([one.row() for one in several], schema=ANOMALIES)
        for name, several in by_check.items()
    }
    manifest = replace(MANIFEST, scenario="play", known=known)
    forensics = Forensics(run_id="run", losses=tuple(losses))
    return findings_of(Verdict.of(results), manifest, tables, forensics)


def told(*findings: RunFinding) -> dict[str, tuple[int, dict[str, int]]]:
    return {
        one.identity: (one.count, {each.check: each.count for each in one.consequences})
        for one in findings
    }


JOINED = "play/stale-epoch-join/AlterPartition:leader→controller/sent-before-registration"
REGISTERED = "play/incarnation-went-back/BrokerRegistration:broker→controller/was-on-its-way"


def test_a_stale_join_and_all_that_it_led_to_are_one_finding() -> None:
    anomalies = (
        lost(offset=0),
        lost(offset=1),
        lost(check="vanished"),
        met("nonmonotonic-poll"),
        met("truncated-below-high-watermark", times={"by": S}),
        stale_join(),
        met("unsafe-leader-candidate"),
    )
    assert told(*found(*anomalies, losses=[loss()])) == {
        JOINED: (
            1,
            {
                "truncated-below-high-watermark": 1,
                "lost-write": 2,
                "vanished": 1,
                "nonmonotonic-poll": 1,
                "unsafe-leader-candidate": 1,
            },
        )
    }


def test_the_identity_is_the_same_whichever_consequences_show_and_wherever() -> None:
    one = found(stale_join(), lost())
    other = found(
        stale_join("orders-7", broker_id=5, offset=900, frame=77),
        met("nonmonotonic-send", "orders-7"),
        lost("orders-7", offset=4_000),
        lost("orders-7", check="inconsistent-offset"),
    )
    assert [finding.identity for finding in one] == [finding.identity for finding in other]


def test_rows_of_one_cause_are_one_finding() -> None:
    rows = [late_registration(frame=frame) for frame in range(14)]
    assert told(*found(*rows)) == {REGISTERED: (14, {})}


def test_a_request_that_was_granted_for_many_partitions_is_one_cause_of_what_each_lost() -> None:
    # The first of them by the order of rows lost nothing.
    findings = found(stale_join("a-0"), stale_join("t-0"), lost("t-0"), losses=[loss()])
    assert told(*findings) == {JOINED: (2, {"lost-write": 1})}


def test_a_loss_before_the_stale_join_is_a_finding_of_its_own() -> None:
    # The election that did without these records is older than the join.
    early = loss(elected=20)
    late = loss(first=500, acknowledged=22)
    findings = found(stale_join(offset=27), lost(offset=3), lost(offset=510), losses=[early, late])
    assert told(*findings) == {JOINED: (1, {"lost-write": 1}), "play/lost-write": (1, {})}


def test_a_loss_whose_election_the_metadata_went_back_behind_follows_from_that() -> None:
    # A deposed leader wrote its state over: the records were acknowledged after the election that
    # did without them, and the step back is one of the two offsets or lies between them.
    story = loss(acknowledged=33, elected=30)

    def after(offset: int) -> dict[str, tuple[int, dict[str, int]]]:
        back = met("epoch-went-back", metadata_offsets={"metadata_offset": offset})
        return told(*found(back, lost(), losses=[story]))

    one = {"play/epoch-went-back": (1, {"lost-write": 1})}
    assert [after(offset) for offset in (30, 31, 33)] == [one, one, one]
    assert set(after(29)) == {"play/epoch-went-back", "play/lost-write"}


def test_a_loss_on_another_partition_is_a_finding_of_its_own() -> None:
    assert told(*found(stale_join("t-0"), lost("t-1"))) == {
        JOINED: (1, {}),
        "play/lost-write": (1, {}),
    }


def test_an_unclean_election_is_told_in_the_identity_of_a_loss() -> None:
    election = loss().election
    assert election is not None
    unclean = replace(loss(), election=replace(election, unclean=True))
    assert [one.identity for one in found(lost(), losses=[unclean])] == [
        "play/lost-write/unclean-election"
    ]


def test_a_replica_is_stuck_by_a_broker_that_is_out_only_while_it_is() -> None:
    meanwhile = found(late_registration(until_s=20), stuck(since_s=15, until_s=80))
    assert told(*meanwhile) == {REGISTERED: (1, {"stuck-replica": 1})}
    long_after = found(late_registration(until_s=20), stuck(since_s=25, until_s=80))
    assert told(*long_after) == {REGISTERED: (1, {}), "play/stuck-replica": (1, {})}
    another = found(late_registration(), stuck(since_s=15, until_s=80, broker_id=3))
    assert told(*another) == {REGISTERED: (1, {}), "play/stuck-replica": (1, {})}


def test_a_replica_is_stuck_in_the_state_that_a_decision_left_behind() -> None:
    def left(decided: int, stood: int) -> list[str]:
        cause = met(
            "epoch-check-bypassed",
            rule="named leader epoch",
            times={"asked": 2 * S},
            metadata_offsets={"metadata_offset": decided},
            api="IsrChange",
            refusal="NOT_LEADER_OR_FOLLOWER",
        )
        out = stuck(since_s=3, until_s=80)
        state = Proof.of("{metadata_offset}", metadata_offsets={"metadata_offset": stood})
        proof = replace(out.proof, rule=out.proof.rule + state.rule)
        stood_still = replace(out, proof=replace(proof, facts=(*proof.facts, *state.facts)))
        return [one.check for one in found(cause, stood_still)]

    # The request was granted before the replica stood still, and all that time it stood in force.
    assert left(decided=7, stood=7) == ["epoch-check-bypassed"]
    assert left(decided=8, stood=7) == ["epoch-check-bypassed", "stuck-replica"]


def test_which_request_of_an_old_controller_comes_first_is_not_in_the_identity() -> None:
    def accepted(api: str, rule: str) -> str:
        epoch = {"epoch": 1}
        (one,) = found(met("stale-request-accepted", "broker-2", rule=rule, values=epoch, api=api))
        return one.identity

    words = "it has controller epoch {epoch}"
    identity = "play/stale-request-accepted/controller→broker/older-controller-epoch"
    assert {accepted(api, words) for api in ("LeaderAndIsr", "UpdateMetadata")} == {identity}
    other = accepted("UpdateMetadata", "it is for broker epoch {epoch}")
    assert other.endswith("/older-broker-epoch")


def test_what_nodes_do_not_agree_on_in_the_metadata_log_comes_before_all_else() -> None:
    findings = found(met("metadata-divergence", "metadata"), lost(check="duplicate"))
    assert told(*findings) == {"play/metadata-divergence": (1, {"duplicate": 1})}


def test_what_is_known_explains_nothing_that_is_not() -> None:
    known = found(
        late_registration(),
        stuck(since_s=15, until_s=80),
        known=("late-registration",),
        validities={"incarnation-went-back": Validity.KNOWN},
    )
    assert [(one.check, one.known, one.consequences) for one in known] == [
        ("stuck-replica", None, ()),
        ("incarnation-went-back", "late-registration", ()),
    ]


def test_what_is_allowed_or_proves_nothing_is_no_finding() -> None:
    assert not found(replace(lost(), allowed=True))
    assert not found(lost(), validities={"lost-write": Validity.UNKNOWN})
    assert not found()


def test_many_rows_are_counted_and_few_are_looked_at() -> None:
    many = [lost(offset=number) for number in range(1_000)]
    assert told(*found(stale_join(), *many)) == {JOINED: (1, {"lost-write": 1_000})}


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_every_anomaly_has_a_place_and_nothing_else_has(entry: Any) -> None:
    assert (entry.nearness is not None) == (entry.kind is Kind.ANOMALY)


def test_harm_to_clients_is_never_nearer_than_a_breach_of_the_control_plane() -> None:
    nearest_harm = min(
        entry.nearness
        for entry in CATALOGUE
        if entry.nearness is not None and entry.subject in {"data plane", "open history"}
    )
    breaches = [
        entry.nearness
        for entry in CATALOGUE
        if entry.nearness is not None
        and entry.subject == "control plane"
        and entry.nearness < Nearness.STANDSTILL
    ]
    assert len(breaches) > 15
    assert max(breaches) < nearest_harm


def test_a_variant_goes_by_words_that_its_check_says() -> None:
    """A phrase that no rule says any more would take the variant from the identity in silence."""
    several = [check for check in TABLE_CHECKS if check.entry.variants]
    assert several
    for check in several:
        entry = check.entry
        source = inspect.getsource(import_module(check.kernel.__module__))
        bare = source.replace('"', "").replace("{{", "{").replace("}}", "}")
        for phrase in entry.variants:
            assert bare.count(phrase) >= 2, (entry.name, phrase)  # here, and in a rule


def test_a_part_of_a_culprit_names_facts_that_its_check_tells() -> None:
    """A fact that no proof has any more would take its part from the identity in silence."""
    several = [check for check in TABLE_CHECKS if check.entry.culprit]
    assert len(several) > 8
    for check in several:
        source = inspect.getsource(import_module(check.kernel.__module__))
        for part in check.entry.culprit:
            for name in NAMED.findall(part):
                fact = name.removesuffix("_role")
                assert f"{fact}=" in source or f'"{fact}":' in source, (check.entry.name, name)


def breach(key: str, offset: int, step: str, index: int = 0) -> Anomaly:
    return met(
        "illegal-transition",
        key,
        metadata_offsets={"metadata_offset": offset},
        values={"value": index},
        record="PartitionChangeRecord",
        step=step,
    )


def test_a_step_of_the_log_goes_on_from_the_first_that_was_wrong() -> None:
    """Whichever follow, and whatever they break, the first one names the finding."""
    first = breach("t-0", 7, "new-leader-serves")
    told_of = [
        found(first, *later)
        for later in (
            [],
            [breach("t-0", 9, "elected")],
            [breach("t-0", 9, "elected"), breach("t-0", 12, "recovery")],
        )
    ]
    assert {one.identity for several in told_of for one in several} == {
        "play/illegal-transition/controller:PartitionChangeRecord/new-leader-serves"
    }
    assert [[one.count for one in several] for several in told_of] == [[1], [2], [3]]


def test_a_wrong_step_of_another_partition_is_a_finding_of_its_own() -> None:
    two = found(breach("t-0", 7, "elected"), breach("t-1", 9, "recovery"))
    assert [one.culprit[-1] for one in two] == ["elected", "recovery"]


def test_of_nodes_that_differ_what_elections_cannot_explain_names_the_finding() -> None:
    gone = met(
        "metadata-divergence",
        "metadata",
        rule="and the record that the quorum has",
        node="broker-1",
    )
    twice = met(
        "metadata-divergence",
        "metadata",
        rule="at metadata offset {offset} of",
        metadata_offsets={"offset": 3},
    )
    assert found(gone)[0].culprit == ("applied-record-gone",)
    (one,) = found(gone, twice)
    assert (one.culprit, one.count) == (("two-records-in-one-epoch",), 2)


@pytest.mark.parametrize(
    ("node", "role"),
    [("controller-101", "controller"), ("broker-2", "broker"), ("server-3", "server")],
)
def test_of_a_node_the_role_is_in_the_identity(node: str, role: str) -> None:
    text = "Encountered metadata loading fault: Error loading metadata log record"
    (one,) = found(met("fatal-fault", node, node=node, text=text, fault="metadata loading fault"))
    assert one.culprit == (role, "metadata-loading-fault")
