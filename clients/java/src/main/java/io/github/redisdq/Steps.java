package io.github.redisdq;

import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * What is kept with a job, and which names the attempt has used. It decides whether the attempt goes on or ends, and
 * with which commands; it sends nothing.
 */
final class Steps {
    private static final String OURS = "dq:";
    private static final String WAITS = "dq:wait:";
    private static final String AFTER = "dq:after:";
    private static final byte[] UNKNOWN = Bytes.of("dq:unknown");
    private static final Pattern COUNT = Pattern.compile("[0-9]{1,9}");
    private static final int LONGEST_NAME = 256;
    private static final byte[] WAITING = Bytes.of("waiting");
    private static final byte[] OVER = Bytes.of("over");

    private final byte[] key;
    private final byte[] id;
    private final byte[] token;
    private final Map<String, byte[]> kept;
    private final Set<String> used = new HashSet<>();
    private int ordinal;

    Steps(byte[] key, byte[] id, byte[] token, Map<String, Object> kept) {
        this.key = key;
        this.id = id;
        this.token = token;
        this.kept = new LinkedHashMap<>();
        kept.forEach((name, value) -> this.kept.put(name, (byte[]) value));
    }

    /**
     * How an attempt ends: the commands that go before its NACK, and the NACK's words. They are sent as one command.
     */
    record End(List<Words> before, Words nack, List<String> waitedFor) {
        End(List<Words> before, Words nack) {
            this(before, nack, List.of());
        }
    }

    /** How many deliveries went to workers that did not know the kind of the job that has kept these. */
    static int unknown(List<Object> kept) {
        for (int at = 0; at + 1 < kept.size(); at += 2) {
            String count = Arrays.equals((byte[]) kept.get(at), UNKNOWN) ? Reply.text(kept.get(at + 1)) : "";
            if (COUNT.matcher(count).matches()) {
                return Integer.parseInt(count);
            }
        }
        return 0;
    }

    /** Counts one more such delivery. */
    static Words countUnknown(byte[] key, byte[] id, byte[] token, int before) {
        return new Words("DQ.STEP").add(key).add(id).add(token).add(UNKNOWN).add(before + 1);
    }

    /** The steps and signals of the program, without the library's own. */
    Map<String, byte[]> all() {
        Map<String, byte[]> found = new LinkedHashMap<>(kept);
        found.keySet().removeIf(name -> name.startsWith(OURS));
        return Collections.unmodifiableMap(found);
    }

    /** Reaches a step; a name may be used once in each attempt. */
    void begin(String name) {
        if (name.startsWith(OURS)) {
            throw new IllegalArgumentException("names of steps that begin with dq: are the library's own: " + name);
        }
        use(name);
    }

    private void use(String name) {
        int size = Bytes.of(name).length;
        if (size == 0 || size > LONGEST_NAME) {
            throw new IllegalArgumentException("the name of a step has 1 to " + LONGEST_NAME + " bytes, not " + size);
        }
        if (!used.add(name)) {
            throw new IllegalStateException("step " + name + " is used twice in one attempt: each needs a name of its own");
        }
    }

    boolean has(String name) {
        return kept.containsKey(name);
    }

    byte[] value(String name) {
        return kept.get(name);
    }

    Words keeping(String name, byte[] value) {
        return new Words("DQ.STEP").add(key).add(id).add(token).add(name).add(value);
    }

    void keep(String name, byte[] value) {
        kept.put(name, value);
    }

    // --- Sleeps, and waits for signals

    End sleep(String name, long ms) {
        return new End(List.of(keeping(name, Values.NOTHING)), new Words("SILENT").add("DELAY").add(ms));
    }

    End waitSignal(String name) {
        return new End(List.of(), awaiting(name));
    }

    private static Words awaiting(String name) {
        return new Words("SILENT").add("AWAIT").add(name);
    }

    /** The state of a wait with a timeout. Each is passed once; the last one stays. */
    enum Wait {
        BEGINS,
        HAS_VALUE,
        RUNS_OUT,
        IS_OVER
    }

    Wait wait(String name) {
        byte[] marker = kept.get(WAITS + name);
        if (marker != null && Bytes.text(marker).equals(Bytes.text(OVER))) {
            return Wait.IS_OVER;
        }
        if (has(name)) {
            return Wait.HAS_VALUE;
        }
        return marker == null ? Wait.BEGINS : Wait.RUNS_OUT;
    }

    End waitSignal(String name, long ms) {
        return new End(List.of(keeping(WAITS + name, WAITING)), awaiting(name).add("DELAY").add(ms));
    }

    /** Records that the timeout is over without a signal. */
    Words over(String name) {
        keep(WAITS + name, OVER);
        return keeping(WAITS + name, OVER);
    }

    // --- Other jobs

    /** The name of a wait for other jobs; without a given one, its number in the attempt. */
    String nameOfWait(String given) {
        ordinal++;
        String name = given == null ? String.valueOf(ordinal) : given;
        use(AFTER + name);
        return name;
    }

    /** The results with which a wait has ended, or null. */
    List<JobResult> resultsOf(String name, Codec codec) {
        byte[] raw = kept.get(AFTER + name);
        return raw == null ? null : Results.read(raw, codec);
    }

    Words keepingResults(String name, List<JobResult> results) {
        byte[] raw = Results.write(results);
        keep(AFTER + name, raw);
        return keeping(AFTER + name, raw);
    }

    /** {@code there}: the jobs that the queue must hold. */
    static End after(List<Words> adds, List<String> ids, JobOptions.OnDead onDead, Collection<String> there) {
        Words nack = new Words("SILENT").add("AFTER").add(ids.size()).ids(ids);
        return new End(adds, nack.value("ONDEAD", onDead), there.stream().distinct().toList());
    }
}
