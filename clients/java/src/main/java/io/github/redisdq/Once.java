package io.github.redisdq;

import java.util.List;

/** A script of the program's with a step around it, fenced by the job's token. */
final class Once {
    private static final String BEFORE =
            """
            if not redis.call('DQ.TOUCH', KEYS[1], ARGV[1], 'TOKEN', ARGV[2]) then return nil end
            if redis.call('DQ.SIGNAL', KEYS[1], ARGV[1], ARGV[3], '') == 0 then return 0 end
            local function once(KEYS, ARGV)
            """;
    private static final String AFTER =
            """

            end
            once({unpack(KEYS, 2)}, {unpack(ARGV, 4)})
            return 1
            """;

    private Once() {}

    /** Answers 1, 0 where it ran before, and nil where somebody else has the job. */
    static Words words(Job job, String name, String script, List<String> keys, List<String> arguments) {
        Words words = new Words("EVAL").add(BEFORE + script + AFTER).add(keys.size() + 1).add(job.rawKey).ids(keys);
        return words.add(job.rawId).add(job.rawToken).add(name).ids(arguments);
    }
}
