"""hatchling's hook for the compiled build; off unless HATCH_BUILD_HOOK_ENABLE_CUSTOM says so."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the libraries of the simulator, and the modules they were made of, into a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build them, or take them from the cache; end with a line where neither can be done.

        Not for an editable wheel, whose sources may change while its libraries would stay.
        """
        if version == "editable":
            self.app.abort("a compiled build cannot be editable: its libraries would grow old")
        sys.path.insert(0, self.root)  # a build is not run from the checkout
        from fencepost.history.failure import HarnessError  # noqa: PLC0415
        from fencepost.native.build import compiled_library  # noqa: PLC0415

        try:
            library = compiled_library(Path(self.root), progress=self.app.display_info)
        except HarnessError as error:
            self.app.abort(f"fencepost: {error}")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"].update(
            {
                str(path): path.relative_to(library).as_posix()
                for path in sorted(library.rglob("*"))
                if path.is_file()
            }
        )
