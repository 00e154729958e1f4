package io.github.redisdq;

import java.nio.charset.StandardCharsets;
import java.util.List;

/** A Lua script of the user's with a step around it, fenced by the job's token. */
final class Once {
    /**
     * The value of the step of a script that has ended. Before the script runs, the step is set to "begun", so it has
     * its place.
     */
    static final byte[] ENDED = "ended".getBytes(StandardCharsets.UTF_8);

    private static final String BEFORE =
            """
            local function ended()
              local job = redis.call('DQ.GET', KEYS[1], ARGV[1])
              for n = 1, #job, 2 do
                if job[n] == 'steps' then
                  for m = 1, #job[n + 1], 2 do
                    if job[n + 1][m] == ARGV[3] then return job[n + 1][m + 1] == 'ended' end
                  end
                end
              end
            end
            if not redis.call('DQ.TOUCH', KEYS[1], ARGV[1], 'TOKEN', ARGV[2]) then return nil end
            if redis.call('DQ.SIGNAL', KEYS[1], ARGV[1], ARGV[3], 'begun') == 0 and ended() then return 0 end
            local function once(KEYS, ARGV)
            """;
    private static final String AFTER =
            """

            end
            local done, why = pcall(once, {unpack(KEYS, 2)}, {unpack(ARGV, 4)})
            if not done or type(why) == 'table' and why.err then return {type(why) == 'table' and why.err or tostring(why)} end
            redis.call('DQ.STEP', KEYS[1], ARGV[1], ARGV[2], ARGV[3], 'ended')
            return 1
            """;

    private Once() {}

    /**
     * The script's reply: 1; 0 if it ran before; nil if another worker has the job; a list with the error if the script
     * failed.
     */
    static Words words(Delivery job, String name, String script, List<String> keys, List<String> arguments) {
        Words words = new Words("EVAL").add(BEFORE + script + AFTER).add(keys.size() + 1).add(job.rawKey).ids(keys);
        return words.add(job.rawId).add(job.rawToken).add(name).ids(arguments);
    }
}
