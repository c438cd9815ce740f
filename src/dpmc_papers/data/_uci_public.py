"""Public column ranges of UCI tables, stated without looking at a row.

Each column has a lowest, a typical and a highest value, in the units of the file, from the
description of the data and general knowledge. None was fitted to the rows: some ranges are far
too wide, and rows beyond a range are clipped. Tables whose columns mean nothing to somebody who
has not seen them (``naval``, ``protein``, ``year``) have no entry.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpmc_papers.data import wine_red
from dpmc_papers.data._uci_tables import TABLES

Range = tuple[float, float, float]

# Responses of metal-oxide gas sensors, in units of their own.
_RESPONSE: Range = (0, 1000, 3000)
_FLAG: Range = (0, 0.5, 1)
_QUARTER_TURN: Range = (-1.5707963267948966, 0, 1.5707963267948966)

RANGES: Mapping[str, Mapping[str, Range]] = {
    # A base-load plant of 480 MW in Turkey.
    "power_plant": {
        "AT": (-10, 20, 50),  # degrees Celsius outdoors
        "V": (20, 55, 90),  # exhaust vacuum, cm of mercury; an atmosphere has 76
        "AP": (975, 1015, 1055),  # millibar, near sea level
        "RH": (0, 60, 100),  # per cent
        "PE": (400, 460, 520),  # megawatt at full load
    },
    # Codes as the publisher explains them; hourly rentals of a scheme of about 1500 bicycles.
    "bike_sharing": {
        "season": (1, 2.5, 4),
        "yr": _FLAG,
        "mnth": (1, 6.5, 12),
        "hr": (0, 11.5, 23),
        "holiday": _FLAG,
        "weekday": (0, 3, 6),
        "workingday": _FLAG,
        "weathersit": (1, 2, 4),
        "temp": _FLAG,
        "atemp": _FLAG,
        "hum": _FLAG,
        "windspeed": (0, 0.2, 1),
        "casual": (0, 40, 400),
        "registered": (0, 160, 800),
        "cnt": (0, 200, 1000),
    },
    # A road in an Italian town. The code -200 of a missing value is below every range.
    "air_quality": {
        "CO(GT)": (0, 2, 12),  # mg/m^3
        "PT08.S1(CO)": _RESPONSE,
        "NMHC(GT)": (0, 200, 1500),  # microgram/m^3
        "C6H6(GT)": (0, 10, 60),  # microgram/m^3
        "PT08.S2(NMHC)": _RESPONSE,
        "NOx(GT)": (0, 250, 1500),  # parts per billion
        "PT08.S3(NOx)": _RESPONSE,
        "NO2(GT)": (0, 100, 400),  # microgram/m^3
        "PT08.S4(NO2)": _RESPONSE,
        "PT08.S5(O3)": _RESPONSE,
        "T": (-10, 18, 46),  # degrees Celsius outdoors
        "RH": (0, 50, 100),  # per cent
        "AH": (0, 1, 3),  # humidity, saturated at 23 degrees: about 2
    },
    # North Jutland; numbers of ways in OpenStreetMap of 2013 had eight or nine digits.
    "road_3d": {
        "OSM_ID": (0, 1e8, 2.5e8),
        "longitude": (8, 9.75, 11.5),
        "latitude": (56.5, 57.15, 57.8),
        "altitude": (-10, 20, 180),  # metres; the highest point of Denmark has 171
    },
    # Joints that turn by a quarter either way.
    "kin8nm": {
        **{f"theta{k}": _QUARTER_TURN for k in range(1, 9)},
        "distance": (0, 1, 2),
    },
    "wine_red": {
        **{
            TABLES["wine_red"].columns[column]: (low, (low + high) / 2, high)
            for column, low, high in wine_red.RANGES.values()
        },
        "quality": (0, 5, 10),
    },
}
