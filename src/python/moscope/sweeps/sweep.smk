# SPDX-License-Identifier: BSD-3-Clause
# The workflow of a moscope sweep, for Snakemake 9. config.json, beside this file, lists the points with all their parameters.
#
#     snakemake --snakefile workflow/Snakefile --directory . --cores 4 --keep-going --rerun-triggers mtime --ignore-incomplete
#
# in the sweep's folder does what `moscope sweep` does, except for the tables and the report.

configfile: "workflow/config.json"

POINTS, BATCHES, BOOTS = config["points"], config["batches"], config["boots"]


rule all:
    input:
        expand("marks/{point}", point=config["single"]),
        expand("batches/{batch}.json", batch=BATCHES),


# A guest that several points start from: the machine at its shell's first prompt.
rule boot:
    output:
        "boots/{boot}.ckpt",
        "boots/{boot}.console",
    resources:
        mem_mb=lambda wildcards: BOOTS[wildcards.boot]["memory_mb"],
        runtime=config["runtime_minutes"],
    shell:
        "exec {config[worker]} boot {wildcards.boot}"


# One point. Its folder, points/POINT, is complete or absent. It is no output here, as Snakemake deletes outputs that it did not expect, such
# as those of a job that has outlived its own Snakemake.
rule point:
    input:
        lambda wildcards: [ancient(f"boots/{boot}.ckpt") for boot in [POINTS[wildcards.point]["boot"]] if boot],
    output:
        "marks/{point}",
    threads: lambda wildcards: POINTS[wildcards.point]["threads"]
    resources:
        mem_mb=lambda wildcards: POINTS[wildcards.point]["memory_mb"],
        runtime=config["runtime_minutes"],
    shell:
        "exec {config[worker]} point {wildcards.point}"


# Many short points, one after the other in one process.
rule batch:
    output:
        "batches/{batch}.json",
    resources:
        mem_mb=1000,
        runtime=config["runtime_minutes"],
    shell:
        "exec {config[worker]} batch {wildcards.batch}"
