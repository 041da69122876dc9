from itertools import product

import pytest

from fencepost.report.palette import ROLES, FaultLook, Shade, fault_colours, source_colours

TEXTS = ("text", "quiet", "link", "valid", "invalid", "unknown", "ok", "info", "fail")
GROUNDS = ("page", "card", "sunken")
TINTS = (("valid", "valid-tint"), ("invalid", "invalid-tint"), ("unknown", "unknown-tint"))


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """Contrast ratio as WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("text", "ground"),
    [
        *product(TEXTS[:6], GROUNDS),
        *product(TEXTS[6:], ["card"]),
        *TINTS,
        *(("text", t) for _, t in TINTS),
    ],
)
@pytest.mark.parametrize("shade", ["light", "dark"])
def test_text_can_be_read_on_its_ground(text: str, ground: str, shade: str) -> None:
    ratio = contrast(getattr(ROLES[text], shade), getattr(ROLES[ground], shade))
    wanted = 3.0 if text in TEXTS[6:] else 4.5
    assert ratio >= wanted, f"{text} on {ground}: {ratio:.2f}"


def test_a_kind_of_fault_has_one_colour_in_every_run() -> None:
    looks = {"kill": FaultLook(shade=Shade(light="#cf3f4f", dark="#ef6a78"))}
    assert fault_colours(["kill", "pause"], looks)["kill"] == looks["kill"].shade
    assert fault_colours(["kill"], looks)["kill"] == looks["kill"].shade


def test_unknown_kinds_and_any_number_of_sources_have_a_colour() -> None:
    kinds = [f"kind-{n:02}" for n in range(30)]
    assert set(fault_colours(kinds)) == set(kinds)
    assert len(source_colours(kinds)) == 30
    assert len(set(fault_colours(kinds[:5]).values())) == 5
