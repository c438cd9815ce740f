# What it takes to read this workflow: a Snakemake that it is written for, the project itself, and
# configuration files that are well formed. What is missing is told in one line.
import sys
from pathlib import Path

import snakemake as installed

if int(installed.__version__.partition(".")[0]) >= 10:
    sys.exit(
        "dpmc: Snakemake must be at least 9.19 and below 10, "
        f"got {installed.__version__}"
    )

# The checkout: of this workflow, wherever it runs and whoever includes it as a module.
ROOT = Path(str(workflow.current_basedir)).parents[1]

try:
    from dpmc import yaml_files
    from dpmc_papers.config import reader
    from dpmc.types import DpmcError
except ModuleNotFoundError as error:
    sys.exit(
        f"dpmc: {error.name}: must be installed for the Python that runs Snakemake, "
        f"{sys.executable}: `uv run snakemake` in {ROOT}, or `pip install {ROOT}` there"
    )


def read_config(path):
    """Return what a configuration file says, or stop with one line."""
    try:
        return yaml_files.read_yaml(path)
    except DpmcError as error:
        sys.exit(f"dpmc: {error}")


# What config/config.yaml of the checkout says holds where a run says nothing else.
DEFAULTS = read_config(ROOT / "config" / "config.yaml")


def config_file():
    """Return the configuration of the folder that a run works in, or else that of the checkout.

    Snakemake reads it, and takes the last of keys that occur twice without a word. That of a
    workflow that includes this one as a module is not ours to judge.
    """
    own = Path("config", "config.yaml")
    if not own.exists():
        return str(ROOT / own)
    if Path(str(workflow.basedir)).resolve() == ROOT.resolve():
        read_config(own)
    return str(own)
