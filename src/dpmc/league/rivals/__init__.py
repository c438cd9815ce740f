"""Methods of the league, one file each: `TITLE`, `refusal(task)`, `run(task, terms)`."""
