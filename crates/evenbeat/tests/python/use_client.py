"""Uses a client that was generated from the API document, against a running server."""

import sys
import time

from evenbeat_client import AuthenticatedClient
from evenbeat_client.api.jobs import get_job, list_jobs, list_runs_of_job, pause_job, put_job, resume_job, trigger_job
from evenbeat_client.api.runs import get_run, get_run_log
from evenbeat_client.api.scheduler import apply_rebalance, get_distribution, preview_rebalance
from evenbeat_client.models import (
    JobDefinition,
    PauseRequest,
    PreviewRequest,
    Problem,
    RebalanceRequest,
    TriggerRequest,
)

url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, timeout=30.0)


def say(*words):
    print(*words)


jobs = list_jobs.sync(client=client, limit=500)
say("listed", len(jobs.items), "jobs; more:", bool(jobs.next_))

definition = JobDefinition(command=["true"], every="1h", contact="team@example.org")
added = put_job.sync_detailed("added", client=client, body=definition)
say("added", added.parsed.key, int(added.status_code), "with", len(added.parsed.warnings), "warnings")
say("its definition", dict(sorted(added.parsed.definition.to_dict().items())))

wrong = put_job.sync("wrong", client=client, body=JobDefinition(command=["true"], every="0s"))
assert isinstance(wrong, Problem), wrong
say("refused", wrong.code, wrong.errors[0].pointer)

paused = pause_job.sync("added", client=client, body=PauseRequest(reason="holiday"))
say("paused", paused.status.value, paused.pause_reason, paused.paused_by)
stale = put_job.sync("added", client=client, body=definition, if_match='"1"')
say("stale", stale.code)
say("resumed", resume_job.sync("added", client=client).status.value)

triggered = trigger_job.sync("added", client=client, body=TriggerRequest(), idempotency_key="one")
again = trigger_job.sync("added", client=client, body=TriggerRequest(), idempotency_key="one")
say("triggered", triggered.job, "twice with one key, the same run:", triggered.id == again.id)

deadline = time.monotonic() + 60
while True:
    run = get_run.sync(triggered.id, client=client)
    if run.outcome:
        break
    assert time.monotonic() < deadline, run
say("followed", run.job, run.status.value, run.trigger.value, run.started_at.tzinfo)
say("its log has", len(get_run_log.sync_detailed(triggered.id, client=client).content), "bytes")
say("its runs:", [it.status.value for it in list_runs_of_job.sync("added", client=client).items])
job = get_job.sync("added", client=client)
say("the job ended", job.last_outcome.value, "and runs again:", job.next_run_at is not None)

preview = preview_rebalance.sync(client=client, body=PreviewRequest())
say("previewed", len(preview.preview) == preview.would_move, 0 <= preview.projected_score <= 1)
applied = apply_rebalance.sync(client=client, body=RebalanceRequest(plan_id=preview.plan_id))
say("applied", len(applied.moved) == preview.would_move)
used = apply_rebalance.sync(client=client, body=RebalanceRequest(plan_id=preview.plan_id))
say("applied again:", getattr(used, "code", "moved"))
say("spread over", get_distribution.sync(client=client, window_hours=24).window_hours, "hours")
