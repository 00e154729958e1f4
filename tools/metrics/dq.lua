-- What redis_exporter shows of dq: `redis_exporter --script tools/metrics/dq.lua`.
--
-- The exporter exports only those fields of INFO that it knows by name, and dq's are not among them. It exports what a
-- script returns: names and numbers in turn, both as strings.
--   dq_jobs_ready                               a field of INFO dq
--   dq_queue_ready:mails                        a field of DQ.STATS mails
--   dq_queue_lateness_us_bucket:le=1000:mails   one of its buckets
--   dq_group_reserved:group=acme:mails          a field of DQ.GROUPGET mails acme
-- prometheus.yml turns them into names and labels.
--
-- Which queues: those in the set dq-metrics (SADD dq-metrics mails orders). Without that set, all queues of the
-- database, if they are few and found soon: searching millions of keys with every scrape would be too much. Otherwise
-- dq_queues_unnamed is 1, and only the sums are exported.
--
-- Which groups: those in the set dq-metrics:mails (SADD dq-metrics:mails acme), and no others: there may be a million.

local MOST_QUEUES, MOST_STEPS, STEP = 50, 10, 1000

local result = {}

local function add(name, value)
    result[#result + 1] = name
    result[#result + 1] = string.format("%.0f", value)
end

local sums = {}
for name, value in string.gmatch(redis.call("INFO", "dq"), "(dq_[a-z_]+):(%d+)") do
    sums[name] = tonumber(value)
    add(name, sums[name])
end

local gauges = { "delayed", "ready", "reserved", "dead", "waiting-clients", "paused", "oldest-ready-ms",
    "bytes", "recurring", "groups" }
local totals = { "added", "delivered", "acked", "nacked", "timed-out", "died", "deleted", "expired", "missed" }

local function name_of(field)
    return (string.gsub(field, "-", "_"))
end

local function add_queue(queue)
    local reply = redis.pcall("DQ.STATS", queue)
    if not reply or reply.err then return end -- not there now, or no queue
    local stats = {}
    for at = 1, #reply, 2 do stats[reply[at]] = reply[at + 1] end
    for _, field in ipairs(gauges) do
        add("dq_queue_" .. name_of(field) .. ":" .. queue, stats[field] or 0)
    end
    for _, field in ipairs(totals) do
        add("dq_queue_" .. name_of(field) .. "_total:" .. queue, stats[field] or 0)
    end
    add("dq_queue_lateness_us_count:" .. queue, stats["lateness-count"])
    add("dq_queue_lateness_us_sum:" .. queue, stats["lateness-sum"])
    add("dq_queue_lateness_us_max:" .. queue, stats["lateness-max"])
    for _, bucket in ipairs(stats["lateness-buckets"]) do
        local bound = bucket[1] and string.format("%.0f", bucket[1]) or "+Inf"
        add("dq_queue_lateness_us_bucket:le=" .. bound .. ":" .. queue, bucket[2])
    end
end

local function add_groups(queue)
    for _, group in ipairs(redis.call("SMEMBERS", "dq-metrics:" .. queue)) do
        local reply = redis.pcall("DQ.GROUPGET", queue, group) or {}
        if reply.err then return end -- an older module
        local of = {}
        for at = 1, #reply, 2 do of[reply[at]] = reply[at + 1] end
        -- The colon ends a group's name here.
        local name = string.gsub(group, "[%%:%c]", function(byte) return string.format("%%%02x", string.byte(byte)) end)
        for _, field in ipairs({ "waiting", "reserved", "rate-used", "paused" }) do
            add("dq_group_" .. name_of(field) .. ":group=" .. name .. ":" .. queue, of[field] or 0)
        end
    end
end

-- nil: there are too many queues, or too many other keys before them.
local function found()
    local queues, seen, cursor = {}, {}, "0"
    for _ = 1, MOST_STEPS do
        local reply = redis.call("SCAN", cursor, "TYPE", "dq-queue1", "COUNT", STEP)
        cursor = reply[1]
        for _, queue in ipairs(reply[2]) do
            if not seen[queue] then queues[#queues + 1] = queue end
            seen[queue] = true
        end
        if #queues > MOST_QUEUES then return nil end
        if cursor == "0" or #queues == sums.dq_queues then return queues end
    end
    return nil
end

local queues = redis.call("SMEMBERS", "dq-metrics")
if #queues == 0 then queues = found() end
add("dq_queues_unnamed", queues and 0 or 1)
for _, queue in ipairs(queues or {}) do
    add_queue(queue)
    add_groups(queue)
end

return result
