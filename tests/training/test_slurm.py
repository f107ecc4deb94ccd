"""The batch script of a cluster job: what it asks for, what a shell makes of it, and what happens at the time limit."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from oracle.errors import ConfigurationError, TrainingError
from training.config import Stage
from training.slurm import SlurmConfig, load_slurm, slurm_script, submit

NASTY = 'o\'ut; touch owned $(touch owned) `touch owned` "x" é'

ONE_GPU = """\
#!/bin/bash -l
#SBATCH --job-name=landoracle
#SBATCH --time=4-00:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=64G
#SBATCH --gpus-per-node=a100:1
#SBATCH --partition=gpu
#SBATCH --account=def-lab
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append

set -eo pipefail
out=/runs/mine
mkdir -p "$out"
exec >>"$out/slurm-$SLURM_JOB_ID.log" 2>&1
echo "job $SLURM_JOB_ID on $SLURM_JOB_NODELIST, start ${SLURM_RESTART_COUNT:-0}, $(date)"
module load StdEnv/2023
module load cuda/12.6
source env/bin/activate
export HF_HUB_OFFLINE=1
export WANDB_MODE=offline
export HF_HOME='/scratch/a b'
"""
ONE_GPU_STEPS = """\
stage sft srun \\
    --kill-on-bad-exit=1 \\
    --cpus-per-task=8 python -m training sft \\
    --dataset /data/prompts \\
    --config gpu \\
    --out /runs/mine/sft \\
    --set processes=1
stage grpo srun \\
    --kill-on-bad-exit=1 \\
    --cpus-per-task=8 python -m training grpo \\
    --dataset /data/prompts \\
    --config gpu \\
    --out /runs/mine/grpo \\
    --start /runs/mine/sft \\
    --set processes=1
"""
TWO_NODES_STEP = """\
stage grpo srun \\
    --kill-on-bad-exit=1 \\
    --cpus-per-task=8 bash -c 'exec "$0" -m accelerate.commands.launch --machine_rank "$SLURM_NODEID" \
--rdzv_conf is_host=$((SLURM_NODEID == 0)) "$@"' python \\
    --multi_gpu \\
    --num_machines 2 \\
    --num_processes 8 \\
    --mixed_precision bf16 \\
    --dynamo_backend no \\
    --rdzv_backend c10d \\
    --main_process_ip "$head" \\
    --main_process_port "$port" \\
    --module training grpo \\
    --dataset /data/prompts \\
    --config gpu \\
    --out /runs/mine/grpo \\
    --start /runs/mine/sft \\
    --set grpo.beta=0.02 \\
    --set processes=8
"""


def script(out: Path | str = "/runs/mine", dataset: Path | str = "/data/prompts", **settings: object) -> str:
    config = SlurmConfig.model_validate({"python": "python"} | settings)
    return slurm_script(config, Path(dataset), "gpu", Path(out))


def test_one_gpu_as_text() -> None:
    text = script(
        time="4-00:00",
        memory="64G",
        gpu_type="a100",
        partition="gpu",
        account="def-lab",
        modules=["StdEnv/2023", "cuda/12.6"],
        activate="env/bin/activate",
        environment={"HF_HOME": "/scratch/a b"},
    )
    assert text.startswith(ONE_GPU)
    assert text.endswith(ONE_GPU_STEPS)
    for absent in ("accelerate", "rdzv", "$head", "scontrol show hostnames"):
        assert absent not in text


def test_two_nodes_as_text() -> None:
    config = SlurmConfig(nodes=2, gpus_per_node=4, python="python")
    text = slurm_script(
        config, Path("/data/prompts"), "gpu", Path("/runs/mine"), stages=[Stage.GRPO], overrides=["grpo.beta=0.02"]
    )
    assert text.endswith(TWO_NODES_STEP)
    assert "#SBATCH --nodes=2\n" in text
    assert "#SBATCH --gpus-per-node=4\n" in text
    assert 'head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\n' in text
    assert "stage sft" not in text


def test_one_node_of_four_gpus_needs_no_rendezvous() -> None:
    text = script(gpus_per_node=4)
    assert "python -m accelerate.commands.launch" in text
    assert "--num_processes 4" in text
    assert "rdzv" not in text


@pytest.mark.parametrize(("nodes", "gpus"), [(1, 1), (1, 4), (2, 4), (3, 0)])
def test_bash_reads_the_script(nodes: int, gpus: int) -> None:
    text = script(NASTY, NASTY, nodes=nodes, gpus_per_node=gpus)
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_accelerate_knows_every_option_of_a_step_over_nodes() -> None:
    from accelerate.commands.launch import launch_command_parser

    words = shlex.split(TWO_NODES_STEP.replace("\\\n", "").replace("$port", "20007"))
    options = words[words.index("python") + 1 :]
    parsed = launch_command_parser().parse_args(
        ["--machine_rank", "1", *options[: options.index("training")], "training"]
    )
    assert (parsed.num_machines, parsed.num_processes, parsed.machine_rank) == (2, 8, 1)
    assert (parsed.rdzv_backend, parsed.multi_gpu, parsed.module) == ("c10d", True, True)


class Cluster:
    """Stand-ins for Slurm's commands, in front of ``PATH``: ``srun`` runs its command here and says with what."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir()
        self.command("srun", 'while [[ $1 == --* ]]; do shift; done; exec "$@"')
        self.command("scontrol", f'echo "$@" >> {self.folder}/scontrol; if [[ $1 == show ]]; then echo node1; fi')
        self.command("python", f'printf "%s\\n" "$SLURM_NODEID $HF_HUB_OFFLINE" "$@" "" >> {self.folder}/ran')

    def command(self, name: str, body: str) -> None:
        (self.bin / name).write_text(f"#!/bin/bash\n{body}\n")
        (self.bin / name).chmod(0o755)

    def run(self, text: str, **variables: str) -> int:
        job = self.folder / "job"
        job.write_text(text.replace("#!/bin/bash -l", "#!/bin/bash"))
        environment = os.environ | {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_NODEID": "1"}
        environment |= {"PATH": f"{self.bin}:{os.environ['PATH']}"} | variables
        return subprocess.run(["bash", str(job)], cwd=self.folder, env=environment, timeout=20, check=False).returncode

    def ran(self) -> list[list[str]]:
        text = (self.folder / "ran").read_text()
        return [block.splitlines() for block in text.strip("\n").split("\n\n")]


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_names_reach_the_trainer_as_they_are_and_nothing_in_them_runs(cluster: Cluster, tmp_path: Path) -> None:
    out, dataset = tmp_path / NASTY, tmp_path / f"data {NASTY}"
    assert cluster.run(script(out, dataset, nodes=2, gpus_per_node=4, environment={"A": NASTY})) == 0
    sft, grpo = cluster.ran()
    assert sft[:5] == ["1 1", "-m", "accelerate.commands.launch", "--machine_rank", "1"]
    for words in (sft, grpo):
        assert words[words.index("--dataset") + 1] == str(dataset)
        assert words[words.index("--main_process_ip") + 1] == "node1"
        assert words[words.index("--main_process_port") + 1] == "20007"
    assert sft[sft.index("--out") + 1] == grpo[grpo.index("--start") + 1] == str(out / "sft")
    assert "job 7 on node[1-2], start 0" in (out / "slurm-7.log").read_text()
    assert not [path for path in tmp_path.rglob("owned")]


def test_a_requeued_job_goes_on_with_the_stage_that_was_cut_off(cluster: Cluster, tmp_path: Path) -> None:
    """USR1, as Slurm sends it before the limit: the step is told, the job goes back, SFT is not done a second time."""
    text = script(tmp_path / "out")
    cluster.command("scancel", f"kill -TERM $(cat {tmp_path}/step)")
    cluster.command(
        "python",
        f'echo "$3" >> {tmp_path}/ran; if [[ $3 == grpo && ! -e {tmp_path}/step ]]; then\n'
        f"trap 'exit 75' TERM; echo $$ > {tmp_path}/step; kill -USR1 $PPID; while :; do sleep 0.05; done; fi",
    )
    assert cluster.run(text) == 0
    assert (tmp_path / "scontrol").read_text() == "requeue 7\n"
    assert cluster.run(text, SLURM_RESTART_COUNT="1") == 0
    assert (tmp_path / "ran").read_text().split() == ["sft", "grpo", "grpo"]
    assert "requeued" in (tmp_path / "out/slurm-7.log").read_text()


def test_a_stage_that_fails_ends_the_job_with_its_status(cluster: Cluster, tmp_path: Path) -> None:
    cluster.command("python", f'echo "$3" >> {tmp_path}/ran; exit 2')
    assert cluster.run(script(tmp_path / "out")) == 2
    assert (tmp_path / "ran").read_text().split() == ["sft"]
    assert not (tmp_path / "scontrol").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("partition", "gpu; rm -rf x"),
        ("partition", "gpu\n#SBATCH --uid=0"),
        ("account", "$(id)"),
        ("account", "-x"),
        ("modules", ["cuda; id"]),
        ("time", "two days"),
        ("memory", "64 GB"),
        ("environment", {"A B": "1"}),
        ("environment", {"A;id": "1"}),
        ("nodes", 0),
        ("time", "9"),  # minutes, less than twice the five of grace_s
        ("gpu", 4),
    ],
)
def test_values_that_a_shell_or_slurm_would_misread_are_refused_by_name(key: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=key):
        load_slurm(None, {key: value})


def test_the_section_of_a_file_with_options_on_top(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("slurm: {nodes: 2, time: '12:00:00', modules: [cuda], environment: {HF_HOME: /scratch}}\n")
    config = load_slurm(file, {"nodes": 4})
    assert (config.nodes, config.time, config.modules) == (4, "12:00:00", ("cuda",))
    assert config.environment == {"HF_HOME": "/scratch"}
    file.write_text("slurm: {node: 2}\n")
    with pytest.raises(ConfigurationError, match=r"cluster\.yaml.*\n.*node"):
        load_slurm(file)
    file.write_text("nodes: 2\n")
    with pytest.raises(ConfigurationError, match="section `slurm:`"):
        load_slurm(file)


def test_processes_follow_from_the_nodes() -> None:
    with pytest.raises(ConfigurationError, match="nodes and gpus_per_node"):
        slurm_script(SlurmConfig(), Path("d"), "gpu", Path("o"), overrides=["processes=2"])


def test_submitting_hands_the_script_to_sbatch(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.command("sbatch", f'echo "$2" > {tmp_path}/option; cp "$3" {tmp_path}/submitted; echo "41;cluster"')
    monkeypatch.setenv("PATH", str(cluster.bin), prepend=os.pathsep)
    text = script(tmp_path / "o %ut")
    assert submit(text, tmp_path / "o %ut") == "41"
    assert (tmp_path / "submitted").read_text() == text
    assert (tmp_path / "option").read_text() == f"--output={tmp_path}/o %%ut/slurm-%j.log\n"
    cluster.command("sbatch", "echo 'no such partition' >&2; exit 1")
    with pytest.raises(TrainingError, match="no such partition"):
        submit(text, tmp_path / "o %ut")
    shutil.rmtree(cluster.bin)
    monkeypatch.setenv("PATH", str(cluster.bin))
    with pytest.raises(TrainingError, match=r"sbatch is not installed here; .*slurm\.sh is written"):
        submit(text, tmp_path / "o %ut")


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("90", 5400),
        ("90:30", 5430),
        ("01:00:30", 3630),
        ("4-00", 345_600),
        ("4-00:30", 347_400),
        ("1-02:03:04", 93_784),
    ],
)
def test_every_form_of_slurm_s_time_limit(time: str, seconds: int) -> None:
    assert SlurmConfig(time=time).time_s == seconds
