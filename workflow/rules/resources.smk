# What jobs ask of a cluster, from measured costs, and which of them are submitted together.
# On this machine alone nothing of it counts but the order and the memory.

from dpmc_papers.pipeline import cluster, costs, jobs, order, pace, profiles

# A submission should take about two minutes: a scheduler of a cluster takes seconds for each,
# and starting Snakemake on a node takes some more.
SECONDS_PER_SUBMISSION = 120
MOST_JOBS_PER_SUBMISSION = 60
# Outputs are short, and what a reader waits for: those of a document are made side by side.
MOST_OUTPUTS_PER_SUBMISSION = 4
# Rules whose jobs share submissions; those of a line may follow one another in one.
FAMILIES = {
    "problems": ("data", "reference", "baseline"),
    "chains": ("chain",),
    "studies": ("study",),
    "run_times": ("run_time",),
    "metrics": ("metrics",),
    "accounting": ("accounting",),
    "outputs": ("figure", "table", "verdict", "guarantees"),
    "pages": ("page",),
}
OUTPUTS = ("figure", "table", "verdict", "guarantees", "page")
# Of all rules.
WILDCARDS = re.findall(r"{(\w+)}", " ".join([PAPER, POINT, "{name} {replicate}"]))


@functools.cache
def measured():
    """Return the measured costs, or stop with one line."""
    try:
        return costs.load(ROOT / "config" / "costs.yaml")
    except DpmcError as error:
        sys.exit(f"dpmc: {error}")


@functools.cache
def priorities(scale):
    """Return the priority of each file of a scale: the cheapest outputs come first."""
    if IS_JOB:
        return {}
    works = [workload(scale, paper) for paper in settings(scale).papers]
    return order.priorities(works, measured())


def announce_costs():
    """Tell whoever shows progress what the jobs of this run are expected to take."""
    pace.announce(
        [workload(SCALE, paper) for paper in settings(SCALE).papers], measured()
    )


def priority_of(path):
    """Return a function from wildcards to the priority of the job that makes `path`."""
    return lambda wildcards: priorities(wildcards.scale).get(
        path.format(**wildcards), 0
    )


def priority_of_output(name=None):
    """Return the same for an output, by default the one that the wildcards name."""
    request_of = of_output("request", name)
    return lambda wildcards: priorities(wildcards.scale).get(request_of(wildcards), 0)


@functools.cache
def site():
    """Return what is said of the cluster, or stop with one line."""
    return cluster.or_stop(profiles.site_of_run, ROOT)


def rule_entries(work, kind):
    """Return what a rule makes for a paper, in the order of the configuration."""
    if kind in ("data", "reference", "baseline"):
        return [entry for entry in work.problems.values() if getattr(entry, kind)]
    if kind in OUTPUTS:
        return [entry for entry in work.outputs.values() if entry.reads.kind == kind]
    return {
        "chain": work.jobs,
        "study": [entry for entry in work.studies if not entry.timed],
        "run_time": [entry for entry in work.studies if entry.timed],
        "metrics": work.metrics,
        "accounting": work.curves.values(),
    }[kind]


def key_of(kind, entry):
    """Return what tells the jobs of a rule apart; those of one problem stay together."""
    if kind in FAMILIES["problems"]:
        return entry.name
    return entry.name if kind in OUTPUTS else entry.path


def job_cost(kind):
    """Return the name under which costs of a rule are kept."""
    return {"run_time": "study", **dict.fromkeys(OUTPUTS, "output")}.get(kind, kind)


@functools.cache
def submissions(scale, paper, family):
    """Return the submission of each job of a family of rules, by number, and the submissions."""
    work, known, seconds, minutes = workload(scale, paper), measured(), {}, {}
    for kind in FAMILIES[family]:
        for entry in rule_entries(work, kind):
            key = key_of(kind, entry)
            expected = known.expected_seconds(job_cost(kind), entry)
            seconds.setdefault(key, []).append(expected)
            minutes.setdefault(key, []).append(costs.requested_minutes(expected, 1))
    most = (
        MOST_OUTPUTS_PER_SUBMISSION if family == "outputs" else MOST_JOBS_PER_SUBMISSION
    )
    numbers = costs.batches(
        list(map(sum, seconds.values())),
        SECONDS_PER_SUBMISSION,
        most // max(map(len, minutes.values()), default=1),
        list(map(sum, minutes.values())),
        site().longest_minutes,
    )
    together = {}
    for number, each in zip(numbers, minutes.values(), strict=True):
        together.setdefault(number, []).extend(each)
    if site().longest_minutes and not IS_JOB:
        told = costs.too_long(
            {key: max(each) for key, each in seconds.items()}, site().longest_minutes
        )
        if told:
            print(f"dpmc: {family} of {paper}: {told}", file=sys.stderr)
    return dict(zip(seconds, numbers, strict=True)), {
        number: costs.Submission(len(each), sum(each))
        for number, each in together.items()
    }


@functools.cache
def entries_by_key(scale, paper, kind):
    """Return what a rule makes, by what tells its jobs apart."""
    return {
        key_of(kind, entry): entry
        for entry in rule_entries(workload(scale, paper), kind)
    }


def entry_of(kind, wildcards):
    """Return what the configuration says of a job."""
    found = entries_by_key(wildcards.scale, wildcards.paper, kind)
    return found[wanted_key(kind, wildcards)]


def wanted_key(kind, wildcards):
    """Return what tells a job apart, from its wildcards."""
    if kind in FAMILIES["problems"]:
        return wildcards.problem
    if kind in OUTPUTS:
        return wildcards.get("name", kind)
    path = {
        "chain": CHAIN,
        "study": STUDY,
        "run_time": RUN_TIME,
        "metrics": METRICS,
        "accounting": CURVES,
    }[kind]
    return path.format(**wildcards)


def family_of(kind):
    """Return the family of a rule."""
    (family,) = [name for name, rules in FAMILIES.items() if kind in rules]
    return family


def submission_of(kind):
    """Return a function from wildcards to the name of the submission of a job.

    It is None where nothing joins jobs, as on one machine.
    """

    family = family_of(kind)

    def look_up(wildcards):
        def name():
            numbers, _ = submissions(wildcards.scale, wildcards.paper, family)
            number = numbers[wanted_key(kind, wildcards)]
            return f"{family}_{wildcards.scale}_{wildcards.paper}_{number}"

        return cluster.join(workflow, name)

    return look_up


def memory_of(kind):
    """Return a function to the megabytes that a job asks for, more at every attempt."""

    def look_up(wildcards, attempt):
        entry = entry_of(kind, wildcards)
        expected = measured().expected_memory_mb(job_cost(kind), entry)
        return costs.requested_memory_mb(expected, attempt, site().largest_memory_mb)

    return look_up


def minutes_of(kind):
    """Return a function to the time limit of a job, longer at every attempt."""
    family = family_of(kind)

    def look_up(wildcards, attempt):
        longest, together = site().longest_minutes, None
        expected = measured().expected_seconds(
            job_cost(kind), entry_of(kind, wildcards)
        )
        if longest is not None:
            numbers, every = submissions(wildcards.scale, wildcards.paper, family)
            together = every[numbers[wanted_key(kind, wildcards)]]
        return costs.requested_minutes(expected, attempt, together, longest)

    return look_up


def study_of_seed(wildcards):
    """Return the job of one replicate of a study at one point, from its wildcards."""
    data, part = part_of_seed(wildcards)
    return jobs.StudyJob(wildcards.experiment, wildcards.problem, (part,), data, "")


def memory_of_seed(wildcards, attempt):
    """Return the megabytes that one replicate of a study asks for, more at every attempt."""
    expected = measured().expected_memory_mb("study", study_of_seed(wildcards))
    return costs.requested_memory_mb(expected, attempt, site().largest_memory_mb)


def minutes_of_seed(wildcards, attempt):
    """Return the time limit of one replicate of a study, longer at every attempt."""
    expected = measured().expected_seconds("study", study_of_seed(wildcards))
    return costs.requested_minutes(expected, attempt, None, site().longest_minutes)


cluster.mend_targets(workflow, WILDCARDS)
