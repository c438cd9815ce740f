# What jobs ask of a cluster, from measured costs, and which of them are submitted together.
# On this machine alone nothing of it counts but the order and the memory.

import dataclasses

from dpmc.experiments.pipeline import costs, order

# A submission should take about two minutes: a scheduler of a cluster takes seconds for each,
# and starting Snakemake on a node takes some more.
SECONDS_PER_SUBMISSION = 120
MOST_JOBS_PER_SUBMISSION = 60
# The profile of a cluster joins groups of this name; without it every job goes alone.
BATCH = "batch"
# Rules whose jobs share submissions; those of a line may follow one another in one.
FAMILIES = {
    "problems": ("data", "reference", "baseline"),
    "chains": ("chain",),
    "studies": ("study",),
    "metrics": ("metrics",),
    "accounting": ("accounting",),
    "outputs": ("figure", "table", "verdict", "guarantees"),
    "pages": ("page",),
}
OUTPUTS = ("figure", "table", "verdict", "guarantees", "page")
MANY = 1000

# On a node, the jobs of a submission are one group again: otherwise each would be a step of its
# own, and start Snakemake once more. The executor does not hand the option on.
if workflow.remote_exec:
    workflow.group_settings = dataclasses.replace(
        workflow.group_settings, group_components={BATCH: MANY}
    )


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
    if not main_process():
        return {}
    works = [workload(scale, paper) for paper in settings(scale).papers]
    return order.priorities(works, measured())


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
def largest_memory_mb():
    """Return what the largest node of the cluster has, None if nobody said."""
    site = ROOT / "profiles" / "slurm" / "site.yaml"
    try:
        return (
            reader.read_yaml(site).get("largest_memory_mb") if site.exists() else None
        )
    except DpmcError as error:
        sys.exit(f"dpmc: {error}")


def rule_entries(work, kind):
    """Return what a rule makes for a paper, in the order of the configuration."""
    if kind in ("data", "reference", "baseline"):
        return [entry for entry in work.problems.values() if getattr(entry, kind)]
    if kind in OUTPUTS:
        return [entry for entry in work.outputs.values() if entry.reads.kind == kind]
    return {
        "chain": work.jobs,
        "study": work.studies,
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
    return "output" if kind in OUTPUTS else kind


@functools.cache
def submissions(scale, paper, family):
    """Return the number of the submission of each job of a family of rules."""
    work, known, seconds = workload(scale, paper), measured(), {}
    for kind in FAMILIES[family]:
        for entry in rule_entries(work, kind):
            key = key_of(kind, entry)
            expected = known.expected_seconds(job_cost(kind), entry)
            seconds[key] = seconds.get(key, 0.0) + expected
    jobs_each = len(FAMILIES[family]) if family == "problems" else 1
    numbers = costs.batches(
        list(seconds.values()),
        SECONDS_PER_SUBMISSION,
        MOST_JOBS_PER_SUBMISSION // jobs_each,
    )
    return dict(zip(seconds, numbers, strict=True))


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
        "metrics": METRICS,
        "accounting": CURVES,
    }[kind]
    return path.format(**wildcards)


def submission_of(kind):
    """Return a function from wildcards to the name of the submission of a job.

    It is None where nothing joins jobs, as on one machine.
    """
    (family,) = [name for name, rules in FAMILIES.items() if kind in rules]

    def look_up(wildcards):
        if workflow.remote_exec:
            return BATCH
        if workflow.group_settings.group_components.get(BATCH, 1) < 2:
            return None
        numbers = submissions(wildcards.scale, wildcards.paper, family)
        number = numbers.get(wanted_key(kind, wildcards))
        if number is None:
            return None
        name = f"{family}_{wildcards.scale}_{wildcards.paper}_{number}"
        # All of one name are joined: the option for groups of this kind holds for each.
        workflow.parent_groupids[name] = BATCH
        return name

    return look_up


def memory_of(kind):
    """Return a function to the megabytes that a job asks for, more at every attempt."""

    def look_up(wildcards, attempt):
        entry = entry_of(kind, wildcards)
        expected = measured().expected_memory_mb(job_cost(kind), entry)
        return costs.requested_memory_mb(expected, attempt, largest_memory_mb())

    return look_up


def minutes_of(kind):
    """Return a function to the time limit of a job, longer at every attempt."""

    def look_up(wildcards, attempt):
        expected = measured().expected_seconds(
            job_cost(kind), entry_of(kind, wildcards)
        )
        return costs.requested_minutes(expected, attempt)

    return look_up
