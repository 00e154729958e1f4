#!/usr/bin/env python3
"""A job moved to another queue, in one atomic step: at any moment it is in exactly one of them.

Kept: id, payload, state, due, priority, ttr, group, keep, cost, when it expires (to a few milliseconds), and how
many attempts and which steps of its own ladder are left. Not kept: the number of attempts made, which begins at 0 again;
the place among jobs of equal priority and due. A job that cannot be moved whole, or that others wait for, stays: jobs
AFTER it would die. (A client that waits for its end in DQ.AWAIT is told that it was removed.)
"""

from typing import Any

from commands import Queue, demo

# A script, not MULTI: there DQ.DEL would go on where DQ.ADD was refused, and the job would be lost.
MOVE = """
local fields, job = redis.call('DQ.GET', KEYS[1], ARGV[1]), {}
if not fields then return 'absent' end
for n = 1, #fields, 2 do job[fields[n]] = fields[n + 1] end
if job.state ~= 'delayed' and job.state ~= 'ready' then return job.state end

-- What DQ.ADD cannot give to a job: it would be lost, and a job that waits for a signal would wait for ever.
if job.every or job.cron then return 'a recurring job cannot be moved' end
if job.awaits then return 'a job that waits for a signal cannot be moved' end
if job.steps and #job.steps > 0 then return 'a job with steps cannot be moved' end
if job.results and #job.results > 0 then return 'a job with results of others cannot be moved' end
if job.next then return 'a job with a successor cannot be moved' end

-- Who waits for it? Of more than 500 blocked jobs that takes too long to see.
local blocked = redis.call('DQ.PEEK', KEYS[1], 'BLOCKED', 'COUNT', 501, 'PREFIX', 0)
if #blocked > 500 then return 'more than 500 jobs are blocked, and some may wait for it' end
for _, each in ipairs(blocked) do
    local waiter = redis.call('DQ.GET', KEYS[1], each[1], 'PREFIX', 0)
    for n = 1, #waiter, 2 do
        if waiter[n] == 'after-group' and waiter[n + 1] and waiter[n + 1] == job.group then
            return 'blocked jobs wait for its group'
        end
        for _, id in ipairs(waiter[n] == 'after' and waiter[n + 1] or {}) do
            if id == ARGV[1] then return 'blocked jobs wait for it, and would die' end
        end
    end
end

-- DQ.ADD begins with no attempts. So the new job may make those that are left, on the ladder's steps that are left.
-- (0 is without limit. A job that has none left is dead.)
local attempts = job['max-attempts']
if attempts > 0 then attempts = attempts - job.attempts end
local steps, first = {}, math.min(job.attempts + 1, math.max(1, #job.backoff))
for n = first, #job.backoff do steps[#steps + 1] = job.backoff[n] end

local add = {'DQ.ADD', KEYS[2], ARGV[1], job.payload, 'AT', job.due, 'PRIORITY', job.priority, 'TTR', job.ttr,
             'ATTEMPTS', attempts}
if steps[1] == 0 then steps = {} end -- BACKOFF 0
if #job.backoff > 0 then
    add[#add + 1] = 'BACKOFF'
    add[#add + 1] = #steps
end
for _, step in ipairs(steps) do add[#add + 1] = step end
for _, name in ipairs({'group', 'label', 'keep', 'cost'}) do
    if job[name] then
        add[#add + 1] = string.upper(name)
        add[#add + 1] = job[name]
    end
end
if job.expires then
    local time = redis.call('TIME')
    add[#add + 1] = 'TTL'
    add[#add + 1] = math.max(1, job.expires - time[1] * 1000 - math.floor(time[2] / 1000))
end
if not redis.call(unpack(add)) then return 'refused' end     -- an error (MAXLEN) ends the script here, too
redis.call('DQ.DEL', KEYS[1], 'IDS', 1, ARGV[1])
return 'moved'
"""


def move(source: Queue, target: Queue, id: str) -> Any:
    """'moved', or why not: 'absent'; 'reserved' (a worker has it), 'dead' (DQ.KICK it first), 'blocked' or 'done';
    'refused' (the target holds or remembers that id); or a sentence that says what would be lost. Raises
    redis.ResponseError if the target is full."""
    if source.key == target.key:
        raise ValueError("the same queue")
    return source.db.register_script(MOVE)(keys=[source.key, target.key], args=[id])


if __name__ == "__main__":
    db, options = demo(__doc__, delay=60)
    night, day = Queue(db, "{demo:jobs}:night"), Queue(db, "{demo:jobs}:day")
    night.add("report", "of May", "DELAY", int(options.delay * 1000), "PRIORITY", -1, "ATTEMPTS", 3, "TTL", 3_600_000)
    print(move(night, day, "report"), day.get("report"))
    print(move(night, day, "report"))
    day.run("DEL", "report")
