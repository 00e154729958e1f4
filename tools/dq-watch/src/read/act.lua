-- An action on jobs that are still in the state for which it was asked.
-- KEYS: the queue, and where jobs move to. ARGV: the command, how many options, the options (of a move: groups that blocked
-- jobs wait for), then an id and its state ('' any) for each job. Returns how many were changed, why the last of the others was not, and an error that ended it.
local command, options = ARGV[1], tonumber(ARGV[2])
local why, moved, waited = '', 0, nil
local AWAITED = 'blocked jobs wait for it, and would die'

-- Of more blocked jobs it takes too long to see here what they wait for.
local BLOCKED_MAX = 500

local of_groups = {}
for at = 3, 2 + options do of_groups[ARGV[at]] = true end

-- What blocked jobs wait for; false: too many to see. Then the groups are as they were seen just before, and a job that has begun
-- to wait for one since then waits for it without those that move.
local function find_waited()
    local blocked = redis.call('DQ.PEEK', KEYS[1], 'BLOCKED', 'COUNT', BLOCKED_MAX + 1, 'PREFIX', 0)
    if #blocked > BLOCKED_MAX then return false end
    local found = {ids = {}, groups = {}}
    for _, it in ipairs(blocked) do
        local job = read(it[1], 'PREFIX', 0)
        for _, id in ipairs(job['after'] or {}) do found.ids[id] = true end
        if job['after-group'] then found.groups[job['after-group']] = true end
    end
    return found
end

-- Why a job cannot be moved whole; nil if it can.
local function cannot_move(id, job)
    local state = job['state']
    if state ~= 'delayed' and state ~= 'ready' and state ~= 'dead' then return 'a ' .. state .. ' job cannot be moved' end
    if job['every'] or job['cron'] then return 'a recurring job cannot be moved' end
    if job['awaits'] then return 'a job that waits for a signal cannot be moved' end
    if job['steps'] and #job['steps'] > 0 then return 'a job with steps cannot be moved' end
    if job['next'] then return 'a job with a successor cannot be moved' end
    if job['results'] and #job['results'] > 0 then return 'a job with results of others cannot be moved' end
    if waited == nil then waited = find_waited() end
    local group = state ~= 'dead' and job['group']
    if waited and waited.ids[id] then return AWAITED end
    if group and (waited and waited.groups or of_groups)[group] then return 'blocked jobs wait for its group' end
    return nil
end

-- Whether a job that is about to go is awaited: such a job takes no rule. Any other may have one now.
local function is_awaited(id)
    local ruled = redis.pcall('DQ.ADD', KEYS[1], id, '', 'XX', 'EVERY', 86400000)
    return type(ruled) == 'table' and ruled.err and not string.find(ruled.err, '^MAX')
end

-- Returns an error, or nil.
local function move(id)
    local job = read(id)
    -- A dead job there would be replaced.
    if redis.call('DQ.GET', KEYS[2], id, 'PREFIX', 0) then why = 'its id is taken there' return nil end
    local words = {'NX'}
    if job['state'] == 'delayed' then words = {'NX', 'AT', job['due']} end
    if job['expires'] then
        local ms = left(job)
        if ms < 1 then why = 'its TTL has ended' return nil end
        words[#words + 1], words[#words + 2] = 'TTL', ms
    end
    local added = redis.pcall(unpack(again(KEYS[2], id, job, words)))
    if not added then why = 'its id is taken there' return nil end
    if type(added) == 'table' and added.err then return added.err end
    if not waited and is_awaited(id) then
        redis.call('DQ.DEL', KEYS[2], 'IDS', 1, id)
        why = AWAITED
        return nil
    end
    redis.call('DQ.DEL', KEYS[1], 'IDS', 1, id)
    moved = moved + 1
    return nil
end

-- That its due has come is no change.
local function is_still(now, asked)
    local waits = {delayed = true, ready = true}
    return asked == '' or now == asked or (waits[now] and waits[asked])
end

local fit = {}
for at = 3 + options, #ARGV, 2 do
    local id, state = ARGV[at], ARGV[at + 1]
    local job = read(id, 'PREFIX', 0)
    if not job then
        why = 'the job no longer exists'
    elseif not is_still(job['state'], state) then
        why = 'the job is ' .. job['state'] .. ' now, not ' .. state
    elseif command ~= 'move' then
        fit[#fit + 1] = id
    else
        local refused = cannot_move(id, job)
        if refused then
            why = refused
        else
            local failed = move(id)
            if failed then return {moved, why, failed} end
        end
    end
end
if command == 'move' then return {moved, why, ''} end
if #fit == 0 then return {0, why, ''} end
local words = {command, KEYS[1], unpack(ARGV, 3, 2 + options)}
words[#words + 1], words[#words + 2] = 'IDS', #fit
for _, id in ipairs(fit) do words[#words + 1] = id end
local changed = redis.pcall(unpack(words))
if type(changed) == 'table' then return {0, why, changed.err} end
if changed < #fit and why == '' then why = 'a worker has it' end
return {changed, why, ''}
