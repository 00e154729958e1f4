package io.github.redisdq;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * One group of a queue, such as a tenant, on each of the queue's shards: {@link DqQueue#group}.
 *
 * <p>What changes it returns false if the server's ACL denies this user the command, which is logged once.
 */
public final class QueueGroup {
    private final Shards shards;
    private final String name;

    QueueGroup(Shards shards, String name) {
        Words.checkName("group", Objects.requireNonNull(name, "a group needs a name"));
        this.shards = shards;
        this.name = name;
    }

    public String name() {
        return name;
    }

    /** Gives the group settings of its own, which hold instead of the queue's. */
    public boolean set(GroupSettings settings) {
        if (settings.words().all().length == 0) {
            throw new IllegalArgumentException("set needs a weight, max, rate or maxLen");
        }
        return change("DQ.GROUPSET", new Words().add(name).add(settings.words()));
    }

    /** Takes its settings and its pause away: the queue's settings hold. */
    public boolean clear() {
        return change("DQ.GROUPSET", new Words().add(name).add("CLEAR"));
    }

    /** Passes the group over until {@link #resume}. */
    public boolean pause() {
        return change("DQ.PAUSE", new Words().add("GROUP").add(name));
    }

    /** Passes the group over for a duration. */
    public boolean pause(Duration duration) {
        return change("DQ.PAUSE", new Words().add(Words.wait("a pause", duration)).add("GROUP").add(name));
    }

    /** Ends its pause. */
    public boolean resume() {
        return change("DQ.RESUME", new Words().add("GROUP").add(name));
    }

    /** Its settings and figures; null if it has neither settings nor jobs. */
    public GroupStats stats() {
        List<Object> replies = shards.each("DQ.GROUPGET", new Words().add(name));
        List<Map<String, Object>> found = replies.stream().map(Reply::map).filter(Objects::nonNull).toList();
        return GroupStats.of(found);
    }

    private boolean change(String command, Words rest) {
        try {
            shards.each(command, rest);
            return true;
        } catch (RefusedException error) {
            if (!error.begins("NOPERM")) {
                throw error;
            }
            if (shards.denied.add(command)) {
                Guard.warn("queue " + shards.name + ": the server refuses " + command + " of a group: nothing is changed ("
                        + error.getMessage() + ")");
            }
            return false;
        }
    }
}
