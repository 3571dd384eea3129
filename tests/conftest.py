"""What holds for all tests: no test is timed, because other programs may use the machine too."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
