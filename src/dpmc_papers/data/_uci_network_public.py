"""Public column ranges of three more UCI tables, stated without looking at a row.

As in :mod:`dpmc_papers.data._uci_public`: a lowest, a typical and a highest value of each
column, from the description of the data and from what its quantities are in general. None was
fitted to the rows. Of columns that mean little to somebody who has not seen them, ranges are
guesses, wide rather than narrow; rows beyond a range are clipped and counted.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpmc_papers.data._uci_public import RANGES, Range

# An angle or a length of a chain of residues, and areas in square angstrom.
_AREA: Range = (0, 10_000, 50_000)

# A naval vessel whose gas turbine has about 25 MW and turns at up to 3600 revolutions a minute.
_NAVAL: Mapping[str, Range] = {
    "lever": (0, 5, 10),
    "speed": (0, 15, 30),  # knots
    "turbine_torque": (0, 30_000, 90_000),  # newton metres
    "turbine_rate": (0, 2000, 4000),  # revolutions a minute
    "generator_rate": (5000, 8000, 11_000),
    "starboard_torque": (0, 250, 750),  # kilonewton metres
    "port_torque": (0, 250, 750),
    "T48": (300, 750, 1200),  # degrees Celsius behind the turbine of high pressure
    "T1": (270, 290, 310),  # kelvin outdoors
    "T2": (400, 650, 900),  # kelvin behind the compressor
    "P48": (1, 2.5, 6),  # bar
    "P1": (0.95, 1, 1.05),
    "P2": (1, 12, 25),
    "exhaust_pressure": (0.95, 1, 1.1),
    "injection": (0, 40, 100),  # per cent
    "fuel": (0, 0.6, 2),  # kilograms a second
    "compressor_decay": (0.95, 0.975, 1),  # as the publisher says
}

# Models of proteins of a few hundred residues.
_PROTEIN: Mapping[str, Range] = {
    "F1": _AREA,  # surface
    "F2": (0, 3000, 15_000),  # of it not polar
    "F3": (0, 0.3, 0.6),  # a fraction
    "F4": (0, 100, 400),  # exposed part of residues that are not polar
    "F5": (0, 1_500_000, 6_000_000),  # area weighted by molecular mass
    "F6": (0, 150, 600),  # deviation from the usual area
    "F7": (0, 4000, 10_000),  # distance
    "F8": (0, 75, 300),  # penalty of secondary structure
    "F9": (0, 35, 70),  # constraints in space
    "RMSD": (0, 8, 24),  # angstrom between a model and the protein
}

# Recorded music. The first average of timbre is loudness in decibel, up to 60; the other
# averages are coordinates of about a hundred, covariances products of two of these.
_YEAR: Mapping[str, Range] = {
    "timbre1": (0, 45, 60),
    **{f"timbre{k}": (-200.0, 0.0, 200.0) for k in range(2, 13)},
    **{f"timbre{k}": (-2000.0, 0.0, 2000.0) for k in range(13, 91)},
    "year": (1920, 1995, 2012),
}

NETWORK_RANGES: Mapping[str, Mapping[str, Range]] = {
    "kin8nm": RANGES["kin8nm"],
    "naval": _NAVAL,
    "power_plant": RANGES["power_plant"],
    "protein": _PROTEIN,
    "wine_red": RANGES["wine_red"],
    "year": _YEAR,
}
