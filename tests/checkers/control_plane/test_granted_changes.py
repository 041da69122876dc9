"""C1, where an ISR is changed by an IsrChange, which names no version."""

from metadata_logs import FACTS, asked, case_count, proofs, tables
from proving import assert_proof

from checkers.control_plane.nonlinearizable_isr import nonlinearizable_isrs

# The ISR is 1,2 from 600 ms, 1 from 1000 and 1,2 again from 2000.
LOG = """
    5 topic t
    6 partition t-0 replicas 1,2 isr 1,2 leader 1
    10 change t-0 isr 1
    20 change t-0 isr 1,2
    90 noop
"""


def test_a_granted_change_was_never_made() -> None:
    lost = "at 3000 broker-1 changes t-0 isr 1 -> ok at 3010"
    (proof,) = proofs(asked(nonlinearizable_isrs, tables(LOG, lost), FACTS))["t-0"]
    assert_proof(proof, "granted the IsrChange of {key} to {isr}", key="t-0", isr="[1]")
    for good in (
        # Made, asked for what was there, refused, and not answered at all.
        "at 990 broker-1 changes t-0 isr 1 -> ok at 1010",
        "at 3000 broker-1 changes t-0 isr 1,2 -> ok at 3010",
        "at 3000 broker-1 changes t-0 isr 1 -> INVALID_INCARNATION_ID at 3010",
        "at 3000 broker-1 changes t-0 isr 1 -> nothing",
    ):
        assert not proofs(asked(nonlinearizable_isrs, tables(LOG, good), FACTS)), good


def test_granted_changes_are_cases() -> None:
    granted = "at 990 broker-1 changes t-0 isr 1 -> ok at 1010"
    unanswered = "at 990 broker-1 changes t-0 isr 1 -> nothing"
    counted = [
        case_count(asked(nonlinearizable_isrs, tables(LOG, line), FACTS))
        for line in (granted, unanswered)
    ]
    assert counted == [1, 0]
