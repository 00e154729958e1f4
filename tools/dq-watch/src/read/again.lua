-- Reads a job as a table of its fields; nil if it is not there.
local function read(id, ...)
    local reply = redis.call('DQ.GET', KEYS[1], id, ...)
    if not reply then return nil end
    local job = {}
    for at = 1, #reply, 2 do job[reply[at]] = reply[at + 1] end
    return job
end

-- The command that adds a job once more with all its options but due and TTL, and these words.
local function again(to, id, job, words)
    local add = {'DQ.ADD', to, id, job['payload']}
    local function give(...)
        for _, word in ipairs({...}) do
            add[#add + 1] = type(word) == 'number' and string.format('%.0f', word) or word
        end
    end
    give('PRIORITY', job['priority'], 'TTR', job['ttr'], 'ATTEMPTS', job['max-attempts'])
    if #job['backoff'] > 0 then
        local ladder = job['backoff']
        if #ladder == 1 and ladder[1] == 0 then give('BACKOFF', 0) else give('BACKOFF', #ladder, unpack(ladder)) end
    end
    for _, name in ipairs({SAID 'group'}) do
        if job[name] then give(string.upper(name), job[name]) end
    end
    give(unpack(words))
    return add
end

-- How long until the job's TTL ends.
local function left(job)
    local now = redis.call('TIME')
    return job['expires'] - now[1] * 1000 - math.floor(now[2] / 1000)
end

