"""What holds for all tests: none is timed, because other programs may use the machine too; code is kept for one run."""

import atexit
import os
import shutil
import tempfile

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

if "PYTEST_XDIST_WORKER" not in os.environ:  # workers have the folder of the process that started them
    folder = tempfile.mkdtemp(prefix="wengert-cache-")
    os.environ["WENGERT_CACHE"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
