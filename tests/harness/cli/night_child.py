"""What a night starts in place of `fencepost run`: an answer at once, by the seed and the scenario.

`answers.json` in the working directory says what each call does: a verdict, or `hang`, `die`, …
After `invalid` follow the check that the scenario expects, and others that are found. `runs.json`
has the directories of their runs, where any has one.
"""

import json
import sys
import time
from pathlib import Path


def main() -> None:
    words = sys.argv[1:]
    scenario, seed = words[1], words[words.index("--seed") + 1]
    with Path("calls.txt").open("a") as file:
        file.write(f"{scenario} {' '.join(words[2:])}\n")
    number = len(Path("calls.txt").read_text().splitlines())
    answers = json.loads(Path("answers.json").read_text())
    runs = Path("runs.json")
    answer = answers.get(str(number), answers.get("else", "valid"))
    if answer == "hang":
        time.sleep(600)
    if answer == "die":
        sys.stderr.write("fencepost: the cluster did not start\n")
        sys.exit(255)
    if answer == "until told":
        deadline = time.monotonic() + 120
        while not Path("told").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        answer = "valid"
    if answer.startswith("slow"):
        time.sleep(float(answer[4:]))
        answer = "valid"
    answer, *found = answer.split()
    check = {"validity": answer, "cases": 3, "anomalies": 0, "reason": f"it is {answer}"}
    told = {
        "validity": answer,
        "seed": int(seed),
        "run": json.loads(runs.read_text()).get(str(number)) if runs.exists() else None,
        "reason": "" if answer == "valid" else f"lost-write: it is {answer}",
        "findings": [f"{scenario}:{one}" for one in ("lost-write", *found[1:])]
        if answer == "invalid"
        else [],
        "expected": [f"{scenario}:{one}" for one in found[:1]],
        "faults": {"kill": {"begun": 1, "took_effect": number % 2}},
        "checks": {"lost-write": check, "idle": {**check, "validity": "not judged"}},
    }
    sys.stdout.write(json.dumps([told]))


if __name__ == "__main__":
    main()
