package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** How a job is added. What is not said is the queue's, or the worker's handler's. */
public class JobOptions {
    private String id;
    private IfExists ifExists = IfExists.REFUSE;
    private Duration delay;
    private Instant at;
    private Integer priority;
    private Duration ttr;
    private Integer attempts;
    private List<Duration> backoff;
    private Duration ttl;
    private String group;
    private List<String> after = List.of();
    private String afterGroup;
    private OnDead onDead;
    private Duration keep;
    private Integer cost;
    private String kind;
    private final Map<String, String> headers = new LinkedHashMap<>();

    JobOptions() {}

    /** What becomes of a job whose id is there already. */
    public enum IfExists {
        /** The new one is not added, so adding twice does no harm. */
        REFUSE(null),
        /** Whatever is there is replaced. */
        REPLACE("REPLACE"),
        /** And where nothing is there, nothing is added. */
        ONLY_REPLACE("XX"),
        /** The job runs once more when its current run is over. */
        RUN_AGAIN("NEXT");

        final String word;

        IfExists(String word) {
            this.word = word;
        }
    }

    /** What a job does if one of those that it is after dies, or goes without being done. */
    public enum OnDead {
        /** It waits on, as a dead job may be kicked; if one is deleted or expires, it dies. */
        WAIT,
        /** It runs in any case. */
        RUN,
        /** It dies too. */
        DIE
    }

    /** A job with a given id, unique in its queue. */
    public static JobOptions withId(String id) {
        return new JobOptions().id(id);
    }

    /** A job that gets an id: a UUID that begins with the time. */
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

    /** It is due so long from now. */
    public JobOptions delay(Duration delay) {
        this.delay = delay;
        return this;
    }

    /** It is due then. */
    public JobOptions at(Instant at) {
        this.at = at;
        return this;
    }

    /** Smaller is served first. */
    public JobOptions priority(int priority) {
        this.priority = priority;
        return this;
    }

    /** The length of a lease. */
    public JobOptions ttr(Duration ttr) {
        this.ttr = ttr;
        return this;
    }

    /** Deliveries allowed; 0: no limit. */
    public JobOptions attempts(int attempts) {
        this.attempts = attempts;
        return this;
    }

    /** The waits after the 1st, 2nd, ... failure; the last one repeats. None given: no wait. */
    public JobOptions backoff(Duration... steps) {
        this.backoff = List.of(steps);
        return this;
    }

    /** The job vanishes so long after it was added. */
    public JobOptions ttl(Duration ttl) {
        this.ttl = ttl;
        return this;
    }

    /** Whose job it is: groups take turns. */
    public JobOptions group(String group) {
        this.group = group;
        return this;
    }

    /** It waits until all those jobs of the same queue have ended. */
    public JobOptions after(String... ids) {
        this.after = List.of(ids);
        return this;
    }

    /** It waits until no job of that group is blocked, delayed, ready or reserved. */
    public JobOptions afterGroup(String group) {
        this.afterGroup = group;
        return this;
    }

    /** For {@link #after}; {@link OnDead#WAIT} unless said. */
    public JobOptions onDead(OnDead onDead) {
        this.onDead = onDead;
        return this;
    }

    /** So long after it is done, the job and its result are kept. */
    public JobOptions keep(Duration keep) {
        this.keep = keep;
        return this;
    }

    /** What a delivery of it counts in the rates of the queue and of its group; 1 unless said. */
    public JobOptions cost(int cost) {
        this.cost = cost;
        return this;
    }

    /** It chooses the worker's handler. */
    public JobOptions kind(String kind) {
        this.kind = kind;
        return this;
    }

    public JobOptions header(String name, String value) {
        headers.put(Objects.requireNonNull(name, "a header has a name"), Objects.requireNonNull(value, "a header has a value"));
        return this;
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

    boolean isKept() {
        return keep != null;
    }

    /** Whether DQ.MADD knows all that is said. */
    boolean isPlain() {
        return after.isEmpty() && afterGroup == null && ifExists != IfExists.RUN_AGAIN;
    }

    Map<String, String> headers() {
        return headers;
    }

    Words words() {
        if (delay != null && at != null) {
            throw new IllegalArgumentException("delay and at cannot be combined");
        }
        Words words = new Words().value("PRIORITY", priority).value("TTR", ttr).value("ATTEMPTS", attempts);
        words.ladder(backoff).value("TTL", ttl).value("GROUP", group).value("KEEP", keep).value("COST", cost);
        words.flag(ifExists.word, ifExists != IfExists.REFUSE);
        words.value("DELAY", delay).value("AT", at);
        return after(words);
    }

    private Words after(Words words) {
        if (afterGroup != null && (!after.isEmpty() || onDead != null)) {
            throw new IllegalArgumentException("afterGroup cannot be combined with after and onDead");
        }
        if (!after.isEmpty()) {
            words.add("AFTER").add(after.size()).ids(after);
        }
        return afterGroup == null ? words.value("ONDEAD", onDead) : words.add("AFTER").value("GROUP", afterGroup);
    }
}
