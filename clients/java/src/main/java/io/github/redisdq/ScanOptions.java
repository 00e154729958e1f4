package io.github.redisdq;

/** Which ids {@link DqQueue#scan(String, int, ScanOptions)} shows. The patterns are those of KEYS. */
public final class ScanOptions {
    private final Words words = new Words();

    public ScanOptions state(State state) {
        words.value("STATE", state);
        return this;
    }

    /** A pattern for ids. */
    public ScanOptions match(String pattern) {
        words.value("MATCH", pattern);
        return this;
    }

    /** The name of a group. */
    public ScanOptions group(String name) {
        words.value("GROUP", name);
        return this;
    }

    /** A pattern for payloads. */
    public ScanOptions payload(String pattern) {
        words.value("PAYLOAD", pattern);
        return this;
    }

    /** A pattern for labels. */
    public ScanOptions label(String pattern) {
        words.value("LABEL", pattern);
        return this;
    }

    /** A pattern for the names of the signals that jobs wait for. */
    public ScanOptions awaits(String pattern) {
        words.value("AWAITS", pattern);
        return this;
    }

    /** A pattern for why jobs failed last. */
    public ScanOptions reason(String pattern) {
        words.value("REASON", pattern);
        return this;
    }

    /** Only jobs with a rule. */
    public ScanOptions recurring() {
        words.add("RECURRING");
        return this;
    }

    /** About how many jobs one step looks at. */
    public ScanOptions count(Integer jobs) {
        words.value("COUNT", jobs);
        return this;
    }

    Words words() {
        return words;
    }
}
