"""Privacy: what a release costs, what a budget buys, and the noise itself.

A noise multiplier is the noise standard deviation over the sensitivity under the relation that
a guarantee names: SUBSTITUTION everywhere but in private regression, which knows both.
"""

from dpmc.privacy.calibration import Plan, plan
from dpmc.privacy.events import Releases, barker, gaussian, sampled_gaussian
from dpmc.privacy.mechanisms import Ledger

__all__ = ["Ledger", "Plan", "Releases", "barker", "gaussian", "plan", "sampled_gaussian"]
