"""The entry of ``rag-kit``: an interrupt during start-up also ends in one line, not in a traceback."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys


def entry() -> int:
    """Import and run the command line."""
    try:
        from rag_kit.cli.exits import INTERRUPTED, terminate

        signal.signal(signal.SIGTERM, terminate)
        # imports leave no garbage; the collector's search for it took a tenth of the start
        gc.set_threshold(100_000, 20, 100)
        # where rich, click and pygments are installed, httpx imports its own command line: a twelfth of the start of
        # ``ask``. With this entry the import fails, and httpx goes on without.
        sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
        from rag_kit.cli.main import main
        from rag_kit.cli.output import prepare_streams

        prepare_streams()
        code = main()
    except KeyboardInterrupt:
        os.write(sys.stderr.fileno(), b"\nrag-kit: interrupted\n")
        return 130
    if code == INTERRUPTED:
        # threads that still wait may write while the interpreter is taken down, which aborts it
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    gc.freeze()  # else the collections at exit go through all that was imported: a second after ``ask``
    return code


if __name__ == "__main__":
    raise SystemExit(entry())
