"""Methods of the league, one file each: `TITLE`, `Params`, `refusal(task)`, `run(task, terms)`.

A method whose `Params` has fields takes them as a third argument.
"""
