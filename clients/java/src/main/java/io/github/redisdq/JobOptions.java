package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** Options of a job. What is not set is decided by the queue's settings or the worker's handler. */
public class JobOptions extends Said<JobOptions> implements Cloneable {
    private String id;
    private IfExists ifExists = IfExists.REFUSE;
    private Duration delay;
    private Instant at;
    private List<String> after = List.of();
    private String afterGroup;
    private OnDead onDead;
    private String kind;
    private Map<String, String> headers = Map.of();
    private Words rule;
    private String tz;
    private Instant first;
    private Instant until;
    private Integer times;
    private Duration grace;
    private Duration jitter;

    JobOptions() {}

    @Override
    JobOptions self() {
        return this;
    }

    /** Whose changes the caller does not see. */
    JobOptions copy() {
        try {
            return (JobOptions) clone();
        } catch (CloneNotSupportedException never) {
            throw new AssertionError(never);
        }
    }

    /** What happens if a job with this id exists. */
    public enum IfExists {
        /** The new job is not added, so adding twice does no harm. A dead or done job is replaced. */
        REFUSE(null),
        /** The new job replaces the old one, in any state, if there is one. */
        REPLACE("REPLACE"),
        /** The new job replaces the old one, in any state; without one, nothing is added. */
        ONLY_REPLACE("XX"),
        /**
         * As {@link #REFUSE}, but while the job is reserved, the new one is kept, and runs when the current run is
         * over.
         */
        RUN_AGAIN("NEXT");

        final String word;

        IfExists(String word) {
            this.word = word;
        }
    }

    /** What a job does if a job that it is after dies, is deleted or expires. */
    public enum OnDead {
        /** It waits, as the dead job may be kicked. If the other job is deleted or expires, it dies. */
        WAIT,
        /** It runs: {@link Job#results} says how the others ended. */
        RUN,
        /** It dies too. */
        DIE
    }

    /** Options with an id, unique in the queue. */
    public static JobOptions withId(String id) {
        return new JobOptions().id(id);
    }

    /** Options without an id: the job gets a UUID that begins with the time. */
    public static JobOptions create() {
        return new JobOptions();
    }

    public JobOptions id(String id) {
        this.id = id;
        return this;
    }

    public JobOptions ifExists(IfExists ifExists) {
        this.ifExists = ifExists;
        return this;
    }

    /** How long from now the job is due (default: now). */
    public JobOptions delay(Duration delay) {
        this.delay = delay;
        return this;
    }

    /** When the job is due (default: now). */
    public JobOptions at(Instant at) {
        this.at = at;
        return this;
    }

    /** Blocks the job until these jobs of its queue have ended. */
    public JobOptions after(String... ids) {
        this.after = List.of(ids);
        return this;
    }

    /** Blocks the job until no job of that group is blocked, delayed, ready or reserved. */
    public JobOptions afterGroup(String group) {
        this.afterGroup = group;
        return this;
    }

    /** What the job does if a job of {@link #after} dies (default: {@link OnDead#WAIT}). */
    public JobOptions onDead(OnDead onDead) {
        this.onDead = onDead;
        return this;
    }

    /** The job's kind, which chooses the worker's handler. It is the job's label, too, unless that is another. */
    public JobOptions kind(String kind) {
        this.kind = kind;
        return this;
    }

    public JobOptions header(String name, String value) {
        Map<String, String> more = new LinkedHashMap<>(headers); // a copy of these options may have the others
        more.put(Objects.requireNonNull(name, "a header has a name"), Objects.requireNonNull(value, "a header has a value"));
        headers = more;
        return this;
    }

    /** For {@link DqQueue#cron}: the IANA name of its time zone (default: UTC). */
    public JobOptions tz(String zone) {
        tz = zone;
        return this;
    }

    /** For a recurring job: the first occurrence. Each call of {@link DqQueue#every} with it begins the rule anew. */
    public JobOptions first(Instant first) {
        this.first = first;
        return this;
    }

    /** For a recurring job: no occurrence comes after this instant. */
    public JobOptions until(Instant until) {
        this.until = until;
        return this;
    }

    /** For a recurring job: the number of occurrences in all. */
    public JobOptions times(int times) {
        this.times = times;
        return this;
    }

    /** For a recurring job: an occurrence that is not delivered within this time of its due time is skipped. */
    public JobOptions grace(Duration grace) {
        this.grace = grace;
        return this;
    }

    /** For a recurring job: each occurrence is delayed by up to this time. */
    public JobOptions jitter(Duration jitter) {
        this.jitter = jitter;
        return this;
    }

    JobOptions every(Duration interval) {
        return recurring(new Words().value("EVERY", interval));
    }

    JobOptions cron(String expression) {
        return recurring(new Words().value("CRON", expression));
    }

    private JobOptions recurring(Words rule) {
        if (delay != null || at != null) {
            throw new IllegalArgumentException("a recurring job comes by its rule: leave out delay and at");
        }
        JobOptions options = copy().ifExists(IfExists.REPLACE);
        options.rule = rule;
        return options;
    }

    String id() {
        return id;
    }

    IfExists ifExists() {
        return ifExists;
    }

    String kind() {
        return kind;
    }

    List<String> after() {
        return after;
    }

    boolean hasFirst() {
        return first != null;
    }

    boolean hasOnDead() {
        return onDead != null;
    }

    boolean isKept() {
        return keep != null;
    }

    /** Whether DQ.MADD has all of these options. */
    boolean isPlain() {
        return after.isEmpty() && afterGroup == null && ifExists != IfExists.RUN_AGAIN;
    }

    boolean isAfterGroup() {
        return afterGroup != null;
    }

    Map<String, String> headers() {
        return headers;
    }

    Words words() {
        if (delay != null && at != null) {
            throw new IllegalArgumentException("delay and at cannot be combined");
        }
        Words.checkName("afterGroup", afterGroup);
        Words.check("after", after.size(), " jobs", 0, 1000);
        Words words = new Words();
        say(words::value);
        words.value("LABEL", label == null && isLabel(kind) ? kind : null);
        words.flag(ifExists.word, ifExists != IfExists.REFUSE);
        words.value("DELAY", delay).value("AT", at);
        return ruled(after(words));
    }

    private Words ruled(Words words) {
        Words limits = new Words().value("TZ", tz).value("UNTIL", until).value("TIMES", times);
        limits.value("GRACE", grace).value("JITTER", jitter).value("AT", first);
        if (rule == null && limits.all().length > 0) {
            throw new IllegalArgumentException("tz, first, until, times, grace and jitter are for every and cron");
        }
        return rule == null ? words : words.add(rule).add(limits);
    }

    private static boolean isLabel(String kind) {
        int length = kind == null ? 0 : Bytes.of(kind).length;
        return 0 < length && length <= BOUNDS.get("LABEL")[1];
    }

    private Words after(Words words) {
        if (afterGroup != null && (!after.isEmpty() || onDead != null)) {
            throw new IllegalArgumentException("afterGroup cannot be combined with after and onDead");
        }
        if (!after.isEmpty()) {
            words.option("AFTER").add(after.size()).ids(after);
        }
        return afterGroup == null ? words.value("ONDEAD", onDead) : words.option("AFTER").value("GROUP", afterGroup);
    }
}
