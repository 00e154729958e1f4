package io.github.redisdq;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BiPredicate;
import java.util.zip.CRC32;

/** All recurring jobs of a program. */
final class RuleSet {
    /** The header with the time at which a rule was said last, and the checksum of what was said. */
    private static final String SAID = "dq:said";

    private static final long RECENT_MS = 600_000;
    private static final int AT_ONCE = 1000;
    private static final int MOST_SHOWN = 10;

    /** Removes a job that is still as it was read: one that is said again has another payload. */
    private static final String REMOVE =
            """
            local rule = redis.call('DQ.GET', KEYS[1], ARGV[1]) or {}
            for at = 1, #rule, 2 do
              if rule[at] == 'payload' and rule[at + 1] == ARGV[2] then
                return redis.call('DQ.DEL', KEYS[1], 'UNRESERVED', 'IDS', 1, ARGV[1])
              end
            end
            return 0
            """;

    private record Said(String id, String sum, Words words) {}

    private record Stamp(Long at, String sum) {}

    private final QueueCommands queue;
    private final Adding.To adds;
    private final String prefix;
    private final long now = Instant.now().toEpochMilli();

    RuleSet(QueueCommands queue, Adding.To adds, String program) {
        Words.check("program", Bytes.of(program).length, " bytes", 1, 1022);
        this.queue = queue;
        this.adds = adds;
        this.prefix = program + ":";
    }

    RuleChanges say(Map<String, NewRule> rules, RulesOptions options) {
        List<Said> said = new ArrayList<>();
        new TreeMap<>(rules).forEach((name, rule) -> said.add(said(name, rule)));
        List<Stamp> before = new ArrayList<>();
        jobs(said.stream().map(Said::id).toList()).forEach(job -> before.add(stamp(job)));
        if (!options.isDry() && !said.isEmpty()) {
            queue.shards.all(said.stream().map(Said::words).toList(), null);
        }
        Set<String> others = others();
        said.forEach(each -> others.remove(each.id));
        List<String> removed = options.prunes(rules.isEmpty()) ? pruned(List.copyOf(others), options.isDry()) : List.of();
        removed.forEach(others::remove);
        warn(names(others));
        return new RuleChanges(
                which(said, before, (each, stamp) -> stamp == null),
                which(said, before, (each, stamp) -> stamp != null && !each.sum.equals(stamp.sum)),
                which(said, before, (each, stamp) -> stamp != null && each.sum.equals(stamp.sum)),
                names(removed),
                names(others));
    }

    private List<String> which(List<Said> said, List<Stamp> before, BiPredicate<Said, Stamp> is) {
        List<String> found = new ArrayList<>();
        for (int at = 0; at < said.size(); at++) {
            if (is.test(said.get(at), before.get(at))) {
                found.add(said.get(at).id);
            }
        }
        return names(found);
    }

    private List<String> names(Collection<String> ids) {
        return ids.stream().map(id -> id.substring(prefix.length())).sorted().toList();
    }

    private void warn(List<String> names) {
        if (!names.isEmpty()) {
            String more = names.size() > MOST_SHOWN ? " and " + (names.size() - MOST_SHOWN) + " more" : "";
            String some = String.join(", ", names.subList(0, Math.min(names.size(), MOST_SHOWN)));
            Guard.warn(queue + " has rules of program " + prefix + " that are not in this set: " + some + more);
        }
    }

    private Said said(String name, NewRule rule) {
        JobOptions given = rule.options;
        if (name.isEmpty() || name.contains(":")) {
            throw new IllegalArgumentException("the name of a rule is not empty and has no colon, not \"" + name + "\"");
        }
        if (given.id() != null || given.hasFirst()) {
            throw new IllegalArgumentException("rule " + name + " has its id and its time by the set: leave out id and first");
        }
        JobOptions options = given.copy().id(prefix + name);
        CRC32 sum = new CRC32();
        sum.update(Envelope.write(adds.codec(), rule.data, options.kind(), options.headers()));
        for (byte[] word : options.words().all()) {
            sum.update(word);
            sum.update(0);
        }
        String checksum = Long.toHexString(sum.getValue());
        options.header(SAID, now + " " + checksum);
        Adding adding = new Adding(adds, rule.data, options);
        return new Said(adding.id(), checksum, adding.words());
    }

    private List<Map<String, Object>> jobs(List<String> ids) {
        List<Words> gets = ids.stream().map(id -> new Words("DQ.GET").add(queue.key(id)).add(id)).toList();
        List<Object> replies = gets.isEmpty() ? List.of() : queue.shards.all(gets, null);
        List<Map<String, Object>> found = new ArrayList<>();
        replies.forEach(reply -> found.add(Reply.map(reply))); // null where there is none
        return found;
    }

    /** The ids of the program's rules. What has another colon is of a program whose name is longer. */
    private Set<String> others() {
        Set<String> found = new TreeSet<>();
        String pattern = prefix.replaceAll("([*?\\[\\\\])", "\\\\$1") + "*";
        queue.ids(new ScanOptions().match(pattern).recurring().count(AT_ONCE), id -> {
            if (id.indexOf(':', prefix.length()) < 0) {
                found.add(id);
            }
        });
        return found;
    }

    /** Those of the jobs that were removed, or would be. */
    private List<String> pruned(List<String> ids, boolean isDry) {
        List<String> removed = new ArrayList<>();
        for (int from = 0; from < ids.size(); from += AT_ONCE) {
            List<String> some = ids.subList(from, Math.min(ids.size(), from + AT_ONCE));
            List<Map<String, Object>> jobs = jobs(some);
            for (int at = 0; at < some.size(); at++) {
                if (isOld(jobs.get(at)) && (isDry || isRemoved(some.get(at), jobs.get(at)))) {
                    removed.add(some.get(at));
                }
            }
        }
        return removed;
    }

    private boolean isRemoved(String id, Map<String, Object> job) {
        Words script = new Words("EVAL").add(REMOVE).add(1).add(queue.key(id)).add(id).add((byte[]) job.get("payload"));
        return !Long.valueOf(0).equals(queue.shards.one(script));
    }

    private boolean isOld(Map<String, Object> job) {
        Stamp stamp = stamp(job);
        boolean isSaid = stamp != null && stamp.at != null;
        return isSaid && now - stamp.at >= RECENT_MS && State.of(job.get("state")) != State.RESERVED;
    }

    /** When the set said the job, and its checksum, if nothing else added it. Null: there is no job. */
    private static Stamp stamp(Map<String, Object> job) {
        if (job == null) {
            return null;
        }
        Envelope found = Envelope.read((byte[]) job.get("payload"));
        String said = Objects.toString(found == null ? null : found.headers().get(SAID), "");
        if (!said.matches("\\d{1,15} [0-9a-f]{1,8}")) {
            return new Stamp(null, "");
        }
        String[] parts = said.split(" ");
        return new Stamp(Long.valueOf(parts[0]), parts[1]);
    }
}
