"""Methods of the league, one file each: `TITLE`, `Params`, `refusal(task)`, `run(task, terms)`."""
