"""Messages about optional dependencies."""

import pytest

from vace_ad.errors import MissingExtraError, needs


def test_a_missing_extra_names_the_line_that_installs_it():
    line = r"the baseline PCA needs scipy, which is not installed: pip install 'vace-ad\[paper\]'"
    with pytest.raises(MissingExtraError, match=line), needs("scipy", "paper", "the baseline PCA"):
        raise ImportError("no module named scipy")


def test_other_errors_pass():
    with pytest.raises(KeyError), needs("scipy", "paper", "the baseline PCA"):
        raise KeyError("x")
