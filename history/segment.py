"""The recorders: what a client process writes down before and after each operation.

An invocation is in the page cache before `invoke` returns, and thus before it is sent; a completion
is there before `complete` returns. Killed at any moment, a client leaves every operation that it
began, and everything it was told of their ends (why: `history.segment_format`). Batches may share a
time when that only widens the operation: take an invocation's time before the batch is built, a
completion's after the poll that brought it.

Times must not go back within one recorder (one thread of one process, one monotonic clock): the
seal merges clients by them. A call that breaks this rule, or completes an operation that is not
open, fails an assertion.
"""

from history.counts import ClientCounts, Counts, live_counts
from history.poll_recorder import PollRecorder
from history.send_recorder import SendRecorder

__all__ = ["ClientCounts", "Counts", "PollRecorder", "SendRecorder", "live_counts"]
