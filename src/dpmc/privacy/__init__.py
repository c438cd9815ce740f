"""Privacy: what a release costs, what a budget buys, and the noise itself.

Every noise multiplier is noise standard deviation over SUBSTITUTION sensitivity.
"""

from dpmc.privacy.calibration import Plan, plan
from dpmc.privacy.events import Releases, barker, gaussian, sampled_gaussian
from dpmc.privacy.mechanisms import Ledger

__all__ = ["Ledger", "Plan", "Releases", "barker", "gaussian", "plan", "sampled_gaussian"]
