"""taskiq-redis' tests of its schedule source, restated: the server sends what is due."""

import datetime

import pytest
from taskiq import ScheduledTask
from test_broker import field, run, when

from dq_taskiq import DqScheduleSource


def schedule(**when):
    return ScheduledTask(schedule_id="s", task_name="tick", labels={"kept": "yes"}, args=[1], kwargs={"a": 2}, **when)


def in_seconds(seconds):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "rule",
    [
        {"cron": "0 9 * * 1-5", "cron_offset": "Europe/Berlin"},
        {"interval": datetime.timedelta(seconds=3600)},
        {"time": in_seconds(3600).replace(microsecond=0)},
    ],
    ids=["cron", "interval", "time"],
)
def test_schedules_are_kept_listed_and_deleted(server, db, rule):
    async def scenario(broker):
        source = DqScheduleSource(broker)
        await source.add_schedule(schedule(**rule))
        assert await source.schedules() == [schedule(**rule)]
        assert await source.get_schedules() == []  # a scheduler has nothing to send
        due = field(db, "due", "schedule:s")
        await source.add_schedule(schedule(**rule))
        assert field(db, "due", "schedule:s") == due
        await source.delete_schedule("s")
        assert await source.schedules() == []

    run(server, scenario)


def test_each_run_of_a_schedule_has_a_task_id_of_its_own(server, db):
    async def scenario(broker):
        await DqScheduleSource(broker).add_schedule(schedule(interval=3600))
        listener, seen = broker.listen(), set()
        for _ in range(2):
            db.execute_command("DQ.RESCHEDULE", "taskiq", "DELAY", 0, "schedule:s")
            found = await anext(listener)
            run = broker.formatter.loads(found.data)
            run.parse_labels()
            assert (run.task_name, run.args, run.kwargs) == ("tick", [1], {"a": 2})
            assert run.labels == {"kept": "yes", "schedule_id": "s"}
            seen.add(run.task_id)
            found.ack()
            await when(lambda: field(db, "state", "schedule:s") == b"delayed")
        assert len(seen) == 2
        assert all(id.startswith("s@") for id in seen)

    run(server, scenario)


def test_a_schedule_in_the_past_runs_once_with_the_id_that_it_names(server, db):
    async def scenario(broker):
        source = DqScheduleSource(broker)
        await source.add_schedule(schedule(time=in_seconds(-240), task_id="mine"))
        found = await anext(broker.listen())
        assert broker.formatter.loads(found.data).task_id == "mine"
        found.ack()
        await when(lambda: db.execute_command("DQ.LEN", "taskiq") == 0)
        assert await source.schedules() == []

    run(server, scenario)


def test_the_kickers_of_tasks_schedule(server):
    async def scenario(broker):
        @broker.task(task_name="tick")
        async def tick(number): ...

        source = DqScheduleSource(broker)
        created = await tick.kicker().with_labels(queue_name="taskiq").schedule_by_cron(source, "* * * * *", 1)
        [found] = await source.schedules()
        assert (found.cron, found.args, found.schedule_id) == ("* * * * *", [1], created.schedule_id)
        await created.unschedule()
        assert await source.schedules() == []

    run(server, scenario)


def test_what_cannot_be_kept_is_an_error(server):
    async def scenario(broker):
        source = DqScheduleSource(broker)
        with pytest.raises(ValueError, match="time zone"):
            await source.add_schedule(schedule(cron="* * * * *", cron_offset=datetime.timedelta(hours=1)))

    run(server, scenario)
