"""A producer with a witness: `python witnessed_producer.py CONFIG.json WITNESS`, killed at will.

Each acknowledgement that it has recorded is then told to the file WITNESS, 8 bytes a value.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import fencepost.workloads.clients.producer as program
from fencepost.history.operation import Outcome
from fencepost.history.send_recorder import SendRecorder


class _Witnessed(SendRecorder):
    def complete(
        self,
        values: NDArray[np.int64],
        *,
        offsets: NDArray[np.int64],
        outcomes: NDArray[np.uint8],
        errors: NDArray[np.int16],
        time_ns: int,
    ) -> None:
        super().complete(values, offsets=offsets, outcomes=outcomes, errors=errors, time_ns=time_ns)
        _witness.write(values[outcomes == Outcome.OK.code].tobytes())


if __name__ == "__main__":
    _witness = Path(sys.argv[2]).open("wb", buffering=0)  # noqa: SIM115  # until it is killed
    vars(program)["SendRecorder"] = _Witnessed  # the one line that differs
    sys.exit(program.main(sys.argv))
