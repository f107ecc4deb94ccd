"""Columns of fiboa's crop extension, https://github.com/fiboa/crop-extension, in the codes of HCAT version 3."""

from __future__ import annotations

import numpy as np
import pandas as pd

from oracle.landscape import HABITAT

FIBOA_COLUMNS = ("crop:code", "crop:name", "crop:code_list")
CODE_LIST = "https://github.com/maja601/EuroCrops/blob/main/hcat_core/HCAT3.csv"
CODES = {
    "wheat": "3301010102",  # spring wheat, which is what the prairies grow
    "oat": "3301010500",
    "corn": "3301010600",
    "soy": "3301160000",
    HABITAT: "3306000000",
}
"""Strings, since the numbers overflow a signed 32-bit integer."""


def crop_columns(land_use: np.ndarray) -> pd.DataFrame:
    """``crop:code``, ``crop:name`` and ``crop:code_list`` of (n,) classes; code and list null where unknown."""
    codes = pd.Series([CODES.get(u) for u in land_use], dtype="string")
    return pd.DataFrame(
        {
            "crop:code": codes,
            "crop:name": pd.Series(land_use, dtype="string"),
            "crop:code_list": pd.Series(CODE_LIST, index=codes.index, dtype="string").where(codes.notna()),
        }
    )
